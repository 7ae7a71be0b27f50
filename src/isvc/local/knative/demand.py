"""What is asked of a Revision: requests under way and requests begun, as averages over the last seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

_LONGEST = 3600.0  # the longest window that Knative accepts
_LONGEST_LOOK = 10.0  # between two looks at requests that others took


@dataclass(slots=True)
class _Second:
    """One second: how long requests were under way in it, all added up, and how many began."""

    number: int
    busy: float = 0.0
    begun: int = 0


@dataclass(slots=True)
class Demand:
    """Moments are those of a monotonic clock."""

    _held: int = 0  # requests that begin and end here
    _direct: int = 0  # others that were under way when somebody last looked
    _looked: float = 0.0
    _counted_until: float = 0.0
    last: float | None = None  # when a request was last under way, as far as is known
    _awake_since: float = 0.0  # averages are over the time since then, while that is shorter than their window
    _seconds: deque[_Second] = field(default_factory=deque)

    @property
    def under_way(self) -> int:
        return self._held + self._direct

    def begin(self, now: float) -> None:
        self._count(now)
        self._held += 1
        self.last = now
        self._second(now).begun += 1

    def end(self, now: float) -> None:
        self._count(now)
        self._held -= 1
        self.last = now

    def observe(self, now: float, ended: int, seconds: float, active: int) -> None:
        """Counts requests that others took: how many ended since the last look, what they took, and how many remain.

        How long each of them was under way since then is not known. One that ended was so for no longer than the time
        between the looks; one that remains was for all of it, or for half as long as requests take if they take less.
        """
        between = min(now - self._looked, _LONGEST_LOOK)
        mean = seconds / ended if ended else between
        busy = min(seconds, ended * between) + active * (between if mean >= between else mean / 2)
        self._count(now)
        if busy or ended:
            second = self._second(now)
            second.busy += busy
            second.begun += ended
            self.last = now
        self._direct, self._looked = active, now

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
        while self._held and moment < now:
            end = min(now, int(moment) + 1.0)
            self._second(moment).busy += (end - moment) * self._held
            moment = end
        self._counted_until = now
        while self._seconds and self._seconds[0].number < now - _LONGEST:
            self._seconds.popleft()

    def _second(self, moment: float) -> _Second:
        if not self._seconds or self._seconds[-1].number < int(moment):
            self._seconds.append(_Second(int(moment)))
        return self._seconds[-1]
