"""Server-sent events: pieces of HTML for a page that is open.

Nothing is sent while nothing changes but a comment now and then, by which connections that have died are noticed. A
reader that is slow gets fewer, newer pieces; one that does not read at all is disconnected, and so is one who may not
look any more.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final, NamedTuple

from aiohttp import web

from isvc.dashboard.guard import HEADERS
from isvc.toolkit.tasks import cancel

log = logging.getLogger(__name__)

STILL_ADMITTED: Final[web.RequestKey[Callable[[], Awaitable[bool]]]] = web.RequestKey("still-admitted")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
BEAT: Final = 20.0
PATIENCE: Final = 30.0  # for a reader that does not read


class Event(NamedTuple):
    """`id` comes back as Last-Event-ID when the browser connects again."""

    name: str
    html: str
    id: str = ""

    def encode(self) -> bytes:
        data = "".join(f"data: {line}\n" for line in _LINE_END.split(self.html))
        return f"event: {self.name}\n{f'id: {self.id}{chr(10)}' if self.id else ''}{data}\n".encode()


async def stream(request: web.Request, events: AsyncGenerator[Event, None]) -> web.StreamResponse:
    """Sends events until there are no more, or nobody reads them."""
    response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
    await response.prepare(request)
    next_event: asyncio.Future[Event] | None = None
    try:
        while True:
            next_event = next_event or asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait((next_event,), timeout=BEAT)
            if not await _is_admitted(request):
                break
            message = b":\n\n"
            if done:
                message, next_event = next_event.result().encode(), None
            await asyncio.wait_for(response.write(message), PATIENCE)
    except StopAsyncIteration:
        pass
    except (ConnectionError, TimeoutError):
        _abort(request)
    except Exception:
        log.exception("%s ends", request.path)
        _abort(request)
    finally:
        await cancel(next_event)
        await events.aclose()
    return response


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


async def _is_admitted(request: web.Request) -> bool:
    """Returns whether its reader may go on reading."""
    ask = request.get(STILL_ADMITTED)
    return ask is None or await ask()
