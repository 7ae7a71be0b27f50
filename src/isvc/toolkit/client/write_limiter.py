"""Limits concurrent writes to the API server, earliest deadline first.

Creating or changing hundreds of services at once is limited by the API server. Statuses and events may then wait a
bounded time, so that the children that make a service run go first: until the writes that are due come seldom, and
half of the slots are free.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Final

_FEW: Final = 8  # so many writes that are due,
_LULL: Final = 0.25  # in so many seconds, leave an API server with time for others


class WriteLimiter:
    def __init__(self, at_once: int, now: Callable[[], float]) -> None:
        self._free = at_once
        self._reserved = at_once // 2  # slots for writes that are due
        self._now = now
        self._began: deque[float] = deque(maxlen=_FEW)  # when the latest that were due got their slots
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._arrivals = count()
        self._timer: asyncio.Handle | None = None

    async def acquire(self, due: float) -> None:
        """Waits for a slot, until `due` at the latest if one of the reserved is free."""
        if self._free and not self._waiting and not self._pause(due):
            return self._take(due)
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (due, next(self._arrivals), admitted))
        self._admit()
        try:
            return await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Gives a slot back."""
        self._free += 1
        self._admit()

    def _pause(self, due: float) -> float:
        """Returns for how many seconds a write lets others go first, unless a slot is given back before."""
        now = self._now()
        if due <= now:
            return 0.0
        if self._free <= self._reserved:
            return due - now
        if len(self._began) < _FEW:
            return 0.0
        return max(min(due, self._began[0] + _LULL) - now, 0.0)

    def _take(self, due: float) -> None:
        self._free -= 1
        if due <= (now := self._now()):
            self._began.append(now)

    def _admit(self) -> None:
        """Gives away the free slots."""
        while self._waiting and self._free:
            due, _, admitted = self._waiting[0]
            if not admitted.done():
                if pause := self._pause(due):
                    return self._wake_after(pause)
                self._take(due)
                admitted.set_result(None)
            heappop(self._waiting)
        return None

    def _wake_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()  # no write that waits is due before the one that was looked at
        self._timer = asyncio.get_running_loop().call_later(seconds, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._admit()
