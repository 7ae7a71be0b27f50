"""Server-sent events to one client, which is cut off when it does not read them.

A sequence keeps its place in llama.cpp until its last event is taken; clients that ask and do not read would keep
everybody else from theirs.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from aiohttp import web

_PATIENCE = 30.0  # seconds for an event to be taken


class EventStream:
    def __init__(self, request: web.Request, patience: float = _PATIENCE) -> None:
        self._request = request
        self._patience = patience
        self.response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})

    async def open(self) -> None:
        await self.response.prepare(self._request)

    async def send(self, body: dict[str, Any]) -> None:
        await self._write(b"data: " + orjson.dumps(body) + b"\n\n")

    async def close(self) -> None:
        await self._write(b"data: [DONE]\n\n")
        await self.response.write_eof()

    async def _write(self, event: bytes) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self.response.write(event)
        except TimeoutError:
            if self._request.transport is not None:
                self._request.transport.abort()
            raise ConnectionResetError("the client does not read its stream") from None
