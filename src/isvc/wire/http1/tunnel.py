"""A connection that has left HTTP: bytes in both directions, with back-pressure in both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

_BUFFER = 1 << 16


class Tunnel:
    def __init__(
        self, transport: asyncio.Transport, drained: Callable[[], Awaitable[object]], gone: asyncio.Future[None]
    ) -> None:
        """`drained` waits until the transport's peer keeps up."""
        self._transport = transport
        self._drained = drained
        self._reader = asyncio.StreamReader(_BUFFER)
        self._reader.set_transport(transport)
        self.gone = gone  # done when the peer has left or the server stops

    def feed(self, data: bytes) -> None:
        self._reader.feed_data(data)

    def feed_eof(self) -> None:
        self._reader.feed_eof()

    async def read(self) -> bytes:
        """Returns what has arrived; empty at the end."""
        return await self._reader.read(_BUFFER)

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def backlog(self) -> int:
        """Returns how many bytes the peer has not taken yet."""
        return self._transport.get_write_buffer_size()

    async def drain(self) -> None:
        """Returns when the peer keeps up, or is gone."""
        await self._drained()

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copies bytes to and from another connection, until one of the two peers leaves."""

        async def up() -> None:
            while data := await self.read():
                writer.write(data)
                await writer.drain()

        async def down() -> None:
            while data := await reader.read(_BUFFER):
                self.write(data)
                await self.drain()

        copies = [asyncio.create_task(up()), asyncio.create_task(down())]
        try:
            await asyncio.wait((*copies, self.gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in copies:
                task.cancel()
            await asyncio.gather(*copies, return_exceptions=True)
            writer.transport.abort()  # what is on its way has nobody left who waits for it
