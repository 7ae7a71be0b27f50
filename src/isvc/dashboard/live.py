"""Server-sent events: what has changed on a page that is open, as pieces of HTML.

Nothing is sent while nothing changes but a comment now and then, by which connections that have died are noticed. A
reader that is slow gets fewer, newer pieces; one that does not read at all is disconnected.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final, NamedTuple

from aiohttp import web

from isvc.dashboard.cluster_view import ClusterView
from isvc.dashboard.pages import render
from isvc.dashboard.views.overview import Overview, Question

COALESCE: Final = 0.25  # seconds
BEAT: Final = 20.0
PATIENCE: Final = 30.0  # for a reader that does not read


class Event(NamedTuple):
    name: str
    html: str

    def encode(self) -> bytes:
        data = "".join(f"data: {line}\n" for line in self.html.splitlines())
        return f"event: {self.name}\n{data}\n".encode()


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


async def overview_events(view: ClusterView, question: Question, seen: str) -> AsyncIterator[Event]:
    """Single rows where they alone have changed, else the list of the page. `seen` is the digest of what it shows."""
    count, shown = view.changes.count, view.overview(question)
    if digest(shown) != seen:
        yield _list(shown)
    while True:
        await view.changes.since(count)
        await view.clock.sleep(COALESCE)
        count, now = view.changes.count, view.overview(question)
        if [row.place for row in now.rows] != [row.place for row in shown.rows] or now.found != shown.found:
            yield _list(now)
        elif now.rows != shown.rows or now.counts != shown.counts:
            changed = [row for row, before in zip(now.rows, shown.rows, strict=True) if row != before]
            yield Event("rows", render("rows.html", shown=now, changed=changed))
        shown = now


def digest(shown: Overview) -> str:
    return f"{hash((shown.rows, shown.found)) & 0xFFFFFFFFFFFF:x}"


def _list(shown: Overview) -> Event:
    return Event("list", render("list.html", shown=shown, live=True))
