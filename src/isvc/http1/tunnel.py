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
        """What has arrived; empty at the end."""
        return await self._reader.read(_BUFFER)

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def backlog(self) -> int:
        """Bytes that the peer has not taken yet."""
        return self._transport.get_write_buffer_size()

    async def drain(self) -> None:
        """Returns when the peer keeps up, or is gone."""
        await self._drained()
