"""A server made of a plain socket, which sends what a test tells it to, at any point of the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from isvc.wire.http1.client_connection import MAX_BODY
from isvc.wire.http1.pool import Pool

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
GET = b"GET / HTTP/1.1\r\nHost: peer\r\n\r\n"


class Conversation:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def request(self) -> bytes:
        """The head of the next request."""
        return await self.reader.readuntil(b"\r\n\r\n")

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        self.writer.transport.abort()


Behaviour = Callable[[Conversation], Awaitable[None]]


@asynccontextmanager
async def peer(*behaviours: Behaviour, max_body: int = MAX_BODY) -> AsyncIterator[tuple[Pool, list[int]]]:
    """A pool of connections to a server that behaves as told, connection by connection (the last again and again)."""
    seen: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(len(seen))
        try:
            await behaviours[min(len(seen), len(behaviours)) - 1](Conversation(reader, writer))
        except (OSError, EOFError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    pool = Pool("127.0.0.1", server.sockets[0].getsockname()[1], limit=4, idle_seconds=60, max_body=max_body)
    try:
        yield pool, seen
    finally:
        await pool.close()
        server.close()


def says(*answers: bytes) -> Behaviour:
    """Answers one request after the other, then hangs up."""

    async def behaviour(conversation: Conversation) -> None:
        for answer in answers:
            await conversation.request()
            await conversation.send(answer)

    return behaviour


async def answers_forever(conversation: Conversation) -> None:
    while True:
        await conversation.request()
        await conversation.send(OK)
