"""Whether an object is ready: the one answer of commands, pages, controllers and the laptop's gateway.

A kind without conditions counts copies, as a cache of a model does: it is ready when all that it wants are there.

A status is about the generation that its controller has observed. What it says of an earlier one says nothing of the
spec that the object has now.
"""

from __future__ import annotations

from typing import Final

from isvc.kube.conditions import FALSE, TRUE, UNKNOWN, conditions_of, find
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
    reported = find(conditions_of(obj), READY) or _count_copies(dig(obj, "status", "copies")) or {}
    return {"type": READY, "status": UNKNOWN, **reported}


def _count_copies(copies: object) -> Object | None:
    """Returns the condition that the copies of a model on nodes come to."""
    if not isinstance(copies, dict):
        return None
    counts = (copies.get(name) for name in ("total", "available", "failed"))
    total, available, failed = (each if isinstance(each, int) else 0 for each in counts)
    status = TRUE if available == total > 0 else FALSE if failed else UNKNOWN
    reason = "" if status == TRUE else "DownloadFailed" if failed else "Downloading"
    message = f"{available} of {total} nodes have the model" + (f", {failed} failed to download it" if failed else "")
    return {"type": READY, "status": status, "reason": reason, "message": message}


def is_observed(obj: Object) -> bool:
    """Returns whether the status is about the spec that the object has now, as far as it says so."""
    seen = dig(obj, "status", "observedGeneration")
    return not isinstance(seen, int) or not seen or seen >= generation_of(obj)
