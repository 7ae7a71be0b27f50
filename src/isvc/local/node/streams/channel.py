"""One of the byte streams that a client and a node exchange over one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

_AHEAD = 4  # messages that wait to be read before the connection is made to wait

Send = Callable[[bytes, bool], Awaitable[None]]
"""Sends bytes, and says whether they are the last. Raises ConnectionError when the client wants no more."""


class Channel:
    def __init__(self, send: Send) -> None:
        self._send = send
        self._incoming: asyncio.Queue[bytes] = asyncio.Queue(_AHEAD)
        self._ended = self._ignored = self._closed = False

    async def read(self) -> bytes:
        """Returns the next bytes of the client; empty at their end."""
        data = b"" if self._ended else await self._incoming.get()
        self._ended = not data
        return data

    async def write(self, data: bytes) -> None:
        if data and not self._closed:
            await self._send(data, False)

    async def close(self) -> None:
        """Ends our side."""
        if not self._closed:
            self._closed = True
            await self._send(b"", True)

    async def feed(self, data: bytes) -> None:
        """Takes what the client sent; empty for the end of it."""
        if not self._ignored:
            await self._incoming.put(data)

    def ignore(self) -> None:
        """Drops whatever comes: nobody reads any more."""
        self._ignored = True
        while not self._incoming.empty():
            self._incoming.get_nowait()
