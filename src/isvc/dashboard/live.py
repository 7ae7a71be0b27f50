"""Server-sent events: pieces of HTML for a page that is open.

Nothing is sent while nothing changes but a comment now and then, by which connections that have died are noticed. A
reader that is slow gets fewer, newer pieces; one that does not read at all is disconnected.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final, NamedTuple

from aiohttp import web

BEAT: Final = 20.0
PATIENCE: Final = 30.0  # for a reader that does not read


class Event(NamedTuple):
    """`id` comes back as Last-Event-ID when the browser connects again."""

    name: str
    html: str
    id: str = ""

    def encode(self) -> bytes:
        data = "".join(f"data: {line}\n" for line in self.html.splitlines())
        return f"event: {self.name}\n{f'id: {self.id}{chr(10)}' if self.id else ''}{data}\n".encode()


async def stream(request: web.Request, events: AsyncIterator[Event]) -> web.StreamResponse:
    """Sends events until either side ends."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
    await response.prepare(request)
    waiting: asyncio.Future[Event] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait((waiting,), timeout=BEAT)
            message = b":\n\n"
            if done:
                message, waiting = waiting.result().encode(), None
            await asyncio.wait_for(response.write(message), PATIENCE)
    except (StopAsyncIteration, ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
    finally:
        if waiting is not None:
            waiting.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await waiting
    return response
