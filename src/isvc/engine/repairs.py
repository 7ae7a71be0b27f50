"""How soon an object is repaired again that others keep changing.

Somebody else's controller may want a child, a finalizer or a status to be otherwise, and write at once whatever is
repaired. Two programs would then write hundreds of times a second, and each write of a Deployment is a rollout. So the
first repairs of an object are made at once, as those of what people edit; for each further one it waits longer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from isvc.engine.events import WARNING, Event
from isvc.engine.outcome import Created, Outcome, Updated
from isvc.kube.objects import Key
from isvc.toolkit.clock import Clock

AT_ONCE: Final = 5  # repairs of an object: people edit one child, then another
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
FORGOTTEN_AFTER: Final = 2 * LONGEST_PAUSE  # without a repair


class Repairs:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._made: dict[Key, tuple[int, float]] = {}  # how many, and when the last one was

    def note(self, key: Key) -> float:
        """Notes that the object was repaired; returns for how many seconds it is not to be repaired again."""
        now = self._clock.monotonic()
        count, last = self._made.get(key, (0, -math.inf))
        count = count + 1 if now - last < FORGOTTEN_AFTER else 1
        self._made[key] = count, now
        doublings = min(count - AT_ONCE - 1, 30)
        return min(FIRST_PAUSE * 2**doublings, LONGEST_PAUSE) if doublings >= 0 else 0.0

    def forget(self, key: Key) -> None:
        self._made.pop(key, None)


def repaired_children(outcome: Outcome) -> list[str]:
    """Returns the children that somebody else had changed or deleted, and that are as planned again."""
    repaired = (key for key, each in outcome.results.items() if isinstance(each, Created | Updated) and each.repaired)
    return [f"{child.resource.kind} {child.name}" for child in repaired]


def contest(parts: Iterable[str]) -> Event:
    """Returns what is said of an object that was repaired so often that it has to wait."""
    names = ", ".join(parts)
    message = f"somebody else keeps changing {names}; it is repaired less and less often: {_REMEDY}"
    return Event(WARNING, "Contested", message)


_REMEDY: Final = "managedFields (kubectl get --show-managed-fields) say who else writes"
