"""Events: what happened to children, and what follows from the difference between two statuses of an object."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from isvc.engine.outcome import Created, Deleted, Outcome, Updated
from isvc.engine.plan import ChildKey
from isvc.kube.conditions import FALSE, TRUE, UNKNOWN, find, is_true
from isvc.kube.objects import Object

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
_CHANGES: Final = {"Created": Created, "Updated": Updated, "Deleted": Deleted}


class Event(NamedTuple):
    type: str
    reason: str
    message: str


def child_events(outcome: Outcome) -> Iterator[Event]:
    """Yields what happened to an object's children, in as few events as possible: one for each kind of change."""
    for reason, change in _CHANGES.items():
        results = (*outcome.results.items(), *outcome.completed.items())
        children = [key for key, result in results if isinstance(result, change)]
        if children:
            where = f" in {outcome.namespace}" if outcome.namespace else ""
            yield Event(NORMAL, reason, f"{reason} {', '.join(map(_title, children))}{where}")


def readiness_events(
    kind: str,
    name: str,
    before: Object,
    after: Object,
    *,
    because: Sequence[str] = (),
    not_ready: Collection[str] = (FALSE,),
) -> Iterator[Event]:
    """Yields one event when an object becomes ready, and one when Ready then becomes one of `not_ready`."""
    was, now = (status.get("conditions") or () for status in (before, after))
    ready = (find(now, "Ready") or {}).get("status", UNKNOWN)
    if not is_true(was, "Ready"):
        if ready == TRUE:
            yield Event(NORMAL, f"{kind}Ready", f"{kind} [{name}] is Ready")
    elif ready in not_ready:
        cause = f" because of: {', '.join(because)}" if because else ""
        yield Event(WARNING, f"{kind}NotReady", f"{kind} [{name}] is no longer Ready{cause}")


def failing(status: Object) -> list[str]:
    """Returns the conditions that are False, the Ready condition among them."""
    return [condition["type"] for condition in status.get("conditions") or () if condition.get("status") == FALSE]


def _title(child: ChildKey) -> str:
    return f"{child.resource.version}.{child.resource.kind} {child.name}"
