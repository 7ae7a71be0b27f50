"""Limits concurrent writes to the API server, earliest deadline first.

Creating or changing hundreds of services at once is limited by the API server. Statuses and events may then wait a
bounded time, so that the children that make a service run go first: while some slots are taken, the rest are for writes
that are due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Final

_CALM: Final = 2  # so many writes at a time leave an API server with time for others


class WriteLimiter:
    def __init__(self, at_once: int, now: Callable[[], float]) -> None:
        self._free = at_once
        self._reserved = max(at_once - _CALM, at_once // 2)  # slots for writes that are due
        self._now = now
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._arrivals = count()
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, due: float) -> None:
        """Waits for a slot, until `due` at the latest if one of the reserved is free."""
        if self._free > self._reserved and not self._waiting:
            self._free -= 1
            return
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (due, next(self._arrivals), admitted))
        self._admit()
        try:
            await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Gives a slot back."""
        self._free += 1
        self._admit()

    def _admit(self) -> None:
        """Gives away the free slots."""
        while self._waiting and self._free:
            due, _, admitted = self._waiting[0]
            early = due - self._now()
            if self._free <= self._reserved and early > 0 and not admitted.done():
                if self._timer is None:  # the writes under way may hang
                    self._timer = asyncio.get_running_loop().call_later(early, self._due)
                return
            heappop(self._waiting)
            if not admitted.done():
                admitted.set_result(None)
                self._free -= 1

    def _due(self) -> None:
        self._timer = None
        self._admit()
