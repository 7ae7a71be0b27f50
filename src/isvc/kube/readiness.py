"""Whether an object is ready: the one answer of commands, pages, controllers and the laptop's gateway.

A status is about the generation that its controller has observed. What it says of an earlier one says nothing of the
spec that the object has now.
"""

from __future__ import annotations

from typing import Final

from isvc.kube.conditions import TRUE, UNKNOWN, conditions_of, find
from isvc.kube.objects import Object, dig, generation_of

READY: Final = "Ready"
NOT_RECONCILED: Final = "NotReconciled"


def is_ready(obj: Object) -> bool:
    """Returns whether the object is ready, and for the spec that it has now."""
    return bool(readiness(obj)["status"] == TRUE)


def readiness(obj: Object) -> Object:
    """Returns the Ready condition as far as it is about the spec that the object has now, else one that is Unknown."""
    if not is_observed(obj):
        message = "its controller has not taken in the latest change yet"
        return {"type": READY, "status": UNKNOWN, "reason": NOT_RECONCILED, "message": message}
    reported = find(conditions_of(obj), READY) or {}
    return {"type": READY, "status": UNKNOWN, **reported}


def is_observed(obj: Object) -> bool:
    """Returns whether the status is about the spec that the object has now, as far as it says so."""
    seen = dig(obj, "status", "observedGeneration")
    return not isinstance(seen, int) or not seen or seen >= generation_of(obj)
