"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class ManualClock:
    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._elapsed + seconds, woken))
        await woken

    def set_back(self, seconds: float) -> None:
        """Changes the time of day alone, as somebody does who sets a clock, or a machine that wakes up."""
        self._start -= timedelta(seconds=seconds)

    @property
    def sleepers(self) -> int:
        """How many wait for it to be moved."""
        return len(self._sleepers)

    def advance(self, seconds: float) -> None:
        self._elapsed += seconds
        due = [woken for at, woken in self._sleepers if at <= self._elapsed]
        self._sleepers = [(at, woken) for at, woken in self._sleepers if at > self._elapsed]
        for woken in due:
            if not woken.done():
                woken.set_result(None)
