"""Who writes next when many want to: a bounded number of writes at a time, and the one that is due first goes first.

Creating hundreds of services at once is limited by the API server. What makes a service run then goes before what tells
of it: while half of the turns are taken, a status waits for a moment and an event for a little longer, nobody for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from heapq import heappop, heappush
from itertools import count


class Turns:
    def __init__(self, at_once: int, now: Callable[[], float]) -> None:
        self._free = at_once
        self._reserved = at_once // 2  # turns for what is due
        self._now = now
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._arrivals = count()
        self._alarm: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, due: float) -> AsyncIterator[None]:
        """Wait for a turn, and keep it for as long as the block runs."""
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (due, next(self._arrivals), called))
        self._call()
        try:
            if not called.done():
                await called
            yield
        finally:
            if called.done() and not called.cancelled():
                self._free += 1
                self._call()

    def _call(self) -> None:
        """Give free turns away."""
        while self._waiting and self._free:
            due, _, called = self._waiting[0]
            early = due - self._now()
            if self._free <= self._reserved and early > 0 and not called.done():
                if self._alarm is None:  # all others may hang
                    self._alarm = asyncio.get_running_loop().call_later(early, self._ring)
                return
            heappop(self._waiting)
            if not called.done():
                called.set_result(None)
                self._free -= 1

    def _ring(self) -> None:
        self._alarm = None
        self._call()
