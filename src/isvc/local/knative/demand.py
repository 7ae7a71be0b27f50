"""What is asked of a Revision: requests under way and requests begun, as averages over the last seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

_LONGEST = 3600.0  # the longest window that Knative accepts


@dataclass(slots=True)
class _Second:
    """One second: how long requests were under way in it, all added up, and how many began."""

    number: int
    busy: float = 0.0
    begun: int = 0


@dataclass(slots=True)
class Demand:
    """Moments are those of a monotonic clock."""

    under_way: int = 0
    _counted_until: float = 0.0
    _awake_since: float = 0.0  # averages are over the time since then, while that is shorter than their window
    _seconds: deque[_Second] = field(default_factory=deque)

    def begin(self, now: float) -> None:
        self._count(now)
        self.under_way += 1
        self._second(now).begun += 1

    def end(self, now: float) -> None:
        self._count(now)
        self.under_way -= 1

    def wake(self, now: float) -> None:
        """Forgets the time in which the Revision had no pods: it says nothing about how many it needs."""
        self._count(now)
        self._awake_since = now

    def concurrency(self, now: float, window: float) -> float:
        """Returns the requests under way at a time."""
        self._count(now)
        return self._average(now, window, lambda second: second.busy)

    def rate(self, now: float, window: float) -> float:
        """Returns the requests begun in a second."""
        return self._average(now, window, lambda second: second.begun)

    def _average(self, now: float, window: float, amount: Callable[[_Second], float]) -> float:
        """Averages a window; of the second in which it begins, the part counts that is in the window."""
        length = max(1.0, min(window, now - self._awake_since))
        first = now - length
        total = sum(amount(each) * min(1.0, max(0.0, each.number + 1 - first)) for each in self._seconds)
        return total / length

    def _count(self, now: float) -> None:
        """Adds the time since the last change to the seconds that it was in."""
        moment = max(self._counted_until, now - _LONGEST)
        while self.under_way and moment < now:
            end = min(now, int(moment) + 1.0)
            self._second(moment).busy += (end - moment) * self.under_way
            moment = end
        self._counted_until = now
        while self._seconds and self._seconds[0].number < now - _LONGEST:
            self._seconds.popleft()

    def _second(self, moment: float) -> _Second:
        if not self._seconds or self._seconds[-1].number < int(moment):
            self._seconds.append(_Second(int(moment)))
        return self._seconds[-1]
