"""Bytes to the gateway as they are written, and servers: one that says who it is, one that answers in capitals."""

from __future__ import annotations

import asyncio
import contextlib

from aiohttp import web


def named(name: str):
    async def handler(request):
        return web.Response(text=name)

    return handler


async def upper(request: web.BaseRequest) -> web.StreamResponse:
    """Answers piece by piece while the request still comes."""
    response = web.StreamResponse()
    await response.prepare(request)
    async for chunk in request.content.iter_any():
        await response.write(chunk.upper())
    return response


async def exchange(port: int, request: bytes) -> bytes:
    """What is answered to these very bytes, up to the end of the announced body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(30):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        body = await reader.readexactly(int(length.split(b":")[1]))
    writer.close()
    return head + body


class Backend:
    """Reads bytes as they come, and answers with what it is given."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") -> None:
        self.answer = answer
        self.heard = b""
        self.port = 0

    async def __aenter__(self) -> Backend:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            self.heard += await reader.readuntil(b"\r\n\r\n")
            writer.write(self.answer)
            await writer.drain()
        writer.close()
