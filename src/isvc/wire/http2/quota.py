"""How often a peer may do what costs it little and us more."""

from __future__ import annotations

import time
from collections.abc import Callable


class Quota:
    """So many at once, and so many a second in the long run."""

    def __init__(self, burst: int, per_second: float, now: Callable[[], float] = time.monotonic) -> None:
        self._burst = self._left = float(burst)
        self._per_second = per_second
        self._now = now
        self._since = now()

    def spend(self) -> bool:
        """Returns whether there was one left."""
        if self._left < 1:
            now = self._now()
            self._left = min(self._burst, self._left + (now - self._since) * self._per_second)
            self._since = now
        self._left -= 1
        return self._left >= 0
