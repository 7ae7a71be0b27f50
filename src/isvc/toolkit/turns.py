"""Who writes next when many want to: a bounded number of writes at a time, and the one that is due first goes first.

Creating hundreds of services at once is limited by the API server. What makes a service run then goes before what tells
of it: a status may be overtaken for a moment, an event for a little longer, and nobody for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from heapq import heappop, heappush
from itertools import count


class Turns:
    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._arrivals = count()

    @asynccontextmanager
    async def turn(self, due: float) -> AsyncIterator[None]:
        """Wait for a turn, and keep it for as long as the block runs."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(due)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, due: float) -> None:
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (due, next(self._arrivals), called))
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():  # called and cancelled in the same moment
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            _, _, called = heappop(self._waiting)
            if not called.done():
                called.set_result(None)
                return
        self._free += 1
