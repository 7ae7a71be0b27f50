"""Questions about pods that several controllers ask."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from isvc.kube.conditions import conditions_of, find, is_condition_true
from isvc.kube.objects import Object, dig, is_being_deleted
from isvc.kube.pods import is_terminal
from isvc.kube.readiness import READY
from isvc.kube.timestamps import parse_timestamp
from isvc.toolkit.controller import Result


def is_active(pod: Object) -> bool:
    return not is_terminal(pod) and not is_being_deleted(pod)


def is_terminating(pod: Object) -> bool:
    """Returns whether it is being deleted, and has not ended yet."""
    return is_being_deleted(pod) and not is_terminal(pod)


def has_ended(pod: Object) -> bool:
    """Returns whether it has ended by itself, and is still there."""
    return is_terminal(pod) and not is_being_deleted(pod)


def ready_condition(pod: Object) -> Object | None:
    return find(conditions_of(pod), READY)


def is_ready(pod: Object) -> bool:
    return is_condition_true(pod, READY)


def seconds_until_available(pod: Object, owner: Object, now: datetime) -> float | None:
    """Returns 0 when it has been ready for the owner's `minReadySeconds`, None while it is not ready."""
    condition, min_ready_seconds = ready_condition(pod), int(dig(owner, "spec", "minReadySeconds") or 0)
    if condition is None or condition.get("status") != "True":
        return None
    if not min_ready_seconds:
        return 0.0
    since = (now - parse_timestamp(condition["lastTransitionTime"])).total_seconds()
    return max(0.0, min_ready_seconds - since) if since >= 0 else 0.0  # the clock was set back


def is_available(pod: Object, owner: Object, now: datetime) -> bool:
    return seconds_until_available(pod, owner, now) == 0


def look_at_next_available(pods: Iterable[Object], owner: Object, now: datetime) -> Result | None:
    """Returns when to look again because a pod that is ready becomes available; None where none does."""
    waits = [wait for pod in pods if (wait := seconds_until_available(pod, owner, now))]
    return Result(requeue_after=min(waits)) if waits else None
