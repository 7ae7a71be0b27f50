"""Steps of a reconcile that wait for their time: each a while after it was first due, however often it is tried."""

from __future__ import annotations

from isvc.kube.objects import Key
from isvc.toolkit.clock import Clock


class Pauses:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[Key, dict[str, float]] = {}

    def wait(self, key: Key, step: str, seconds: float) -> float:
        """Returns how long the step still has to wait: so many seconds from the first call; with 0, not any more."""
        if not seconds:
            self.clear(key, step)
            return 0.0
        now = self._clock.monotonic()
        return max(self._until.setdefault(key, {}).setdefault(step, now + seconds) - now, 0.0)

    def begin(self, key: Key, step: str, seconds: float) -> None:
        """Keeps the step from being taken for so many seconds from now."""
        if seconds:
            self._until.setdefault(key, {})[step] = self._clock.monotonic() + seconds

    def left(self, key: Key, step: str) -> float:
        """Returns how long the step still has to wait."""
        return max(self._until.get(key, {}).get(step, 0.0) - self._clock.monotonic(), 0.0)

    def clear(self, key: Key, step: str) -> None:
        if (steps := self._until.get(key)) is not None:
            steps.pop(step, None)
            if not steps:
                del self._until[key]

    def forget(self, key: Key) -> None:
        self._until.pop(key, None)
