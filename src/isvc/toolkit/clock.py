"""Time as a dependency: code that waits or compares times takes a Clock, so that its tests need not sleep."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Returns the time of day, in UTC."""
        ...

    def monotonic(self) -> float:
        """Returns seconds that only ever grow, for durations and deadlines."""
        ...

    async def sleep(self, seconds: float) -> None: ...


# Counts on while the machine is suspended, where the system offers that: a lease does not stop meanwhile either.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_LOOK = 60.0  # seconds between two looks at the time of day


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.clock_gettime(_STEADY)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def until(clock: Clock, seconds: float) -> None:
    """Returns when the time of day is so much later, or earlier than now.

    What ends at a time of day, such as a token, ends when a clock is set or a machine wakes up, and not when it would.
    """
    began = now = clock.now()
    due = began + timedelta(seconds=seconds)
    while began <= now < due:
        await clock.sleep(min(_LOOK, (due - now).total_seconds()))
        now = clock.now()
