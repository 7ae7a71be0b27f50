"""Wakes everybody who waits for the next change."""

from __future__ import annotations

import asyncio


class Changes:
    """A count of changes. Waiters that are slow see several changes as one, so nothing is queued for them."""

    def __init__(self) -> None:
        self.count = 0
        self._next = asyncio.Event()

    def notify(self) -> None:
        self.count += 1
        woken, self._next = self._next, asyncio.Event()
        woken.set()

    async def since(self, count: int) -> int:
        """Wait until there are more changes than `count`; says how many there are."""
        while self.count <= count:
            await self._next.wait()
        return self.count
