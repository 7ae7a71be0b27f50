"""The serving side: every stream that a client opens is handled by a task of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Final, cast

from h2 import events
from h2.errors import ErrorCodes

from isvc.wire.http2.connection import Connection
from isvc.wire.http2.quota import Quota
from isvc.wire.http2.stream import Broken, Headers, Stream

log = logging.getLogger(__name__)

_MAX_TASKS: Final = 512  # also those whose stream is gone, and which have not ended yet


class ServerConnection(Connection):
    idle_seconds = 300.0

    def __init__(
        self, handle: Callable[[Stream, ServerConnection], Awaitable[None]], connections: set[ServerConnection]
    ) -> None:
        """Is in `connections` for as long as it is open."""
        super().__init__(client_side=False)
        self._handle = handle
        self._all = connections
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._resets = Quota(burst=500, per_second=100)
        self._last_used = self._loop.time()
        self._idle_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._all.add(self)
        self._close_if_idle()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._all.discard(self)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        for task in list(self._tasks.values()):
            task.cancel()

    async def leave(self, seconds: float) -> None:
        """Gives the requests under way some time to end."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=seconds)
        self.close()

    def _on_request(self, event: events.RequestReceived) -> None:
        number = event.stream_id or 0
        stream = self.streams[number] = Stream(self, number)
        if len(self._tasks) >= _MAX_TASKS:
            stream.reset(ErrorCodes.REFUSED_STREAM)
            return
        stream.received_head(cast("Headers", event.headers or []))
        task = self._tasks[number] = self._loop.create_task(self._serve(stream))
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    async def _serve(self, stream: Stream) -> None:
        try:
            await self._handle(stream, self)
        except Broken:
            pass  # the client is gone
        except Exception:
            log.exception("a request was not answered")
            stream.reset(ErrorCodes.INTERNAL_ERROR)
        finally:
            self._last_used = self._loop.time()
            stream.close()

    def _on_reset(self, event: events.StreamReset) -> None:
        super()._on_reset(event)
        if task := self._tasks.get(event.stream_id or 0):
            task.cancel()
        if not self._resets.spend():
            self.abandon("the client opens streams only to reset them")

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        **Connection._HANDLERS,
        events.RequestReceived: _on_request,
        events.StreamReset: _on_reset,
    }

    def _close_if_idle(self) -> None:
        if self._tasks:
            self._last_used = self._loop.time()
        left = self._last_used + self.idle_seconds - self._loop.time()
        if left <= 0:
            self.close()
        else:
            self._idle_timer = self._loop.call_later(left + 0.01, self._close_if_idle)
