"""A clock that moves only when the simulation has nothing left to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

START: Final = datetime(2026, 1, 1, tzinfo=UTC)  # the same in every run, so that results are, too


class SimulatedClock:
    def __init__(self, start: datetime = START) -> None:
        self._start, self._elapsed = start, 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self._elapsed += seconds
