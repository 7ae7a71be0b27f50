"""Questions about pods that several controllers ask."""

from __future__ import annotations

from datetime import datetime

from isvc.kube.conditions import conditions_of, find, is_true
from isvc.kube.objects import Object, dig, is_being_deleted
from isvc.kube.readiness import READY
from isvc.toolkit.clock import parse_timestamp


def is_active(pod: Object) -> bool:
    return dig(pod, "status", "phase") not in ("Succeeded", "Failed") and not is_being_deleted(pod)


def has_ended(pod: Object) -> bool:
    """Returns whether it has ended by itself, and is still there."""
    return not is_active(pod) and not is_being_deleted(pod)


def ready_condition(pod: Object) -> Object | None:
    return find(conditions_of(pod), READY)


def is_ready(pod: Object) -> bool:
    return is_true(conditions_of(pod), READY)


def seconds_until_available(pod: Object, min_ready_seconds: int, now: datetime) -> float | None:
    """Returns 0 when it is available, None while it is not ready."""
    condition = ready_condition(pod)
    if condition is None or condition.get("status") != "True":
        return None
    if not min_ready_seconds:
        return 0.0
    since = (now - parse_timestamp(condition["lastTransitionTime"])).total_seconds()
    return max(0.0, min_ready_seconds - since) if since >= 0 else 0.0  # the clock was set back
