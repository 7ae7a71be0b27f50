"""What happened to a service's children, in as few events as possible: one for each kind of change."""

from __future__ import annotations

from collections.abc import Iterator

from isvc.engine.outcome import ChildKey, Created, Deleted, Outcome, Updated
from isvc.serving.events import NORMAL, Event

_CHANGES = {"Created": Created, "Updated": Updated, "Deleted": Deleted}


def child_events(outcome: Outcome, namespace: str) -> Iterator[Event]:
    for reason, change in _CHANGES.items():
        children = [key for key, result in outcome.results.items() if isinstance(result, change)]
        if children:
            yield Event(NORMAL, reason, f"{reason} {', '.join(map(_called, children))} in {namespace}")


def _called(child: ChildKey) -> str:
    return f"{child.resource.version}.{child.resource.kind} {child.name}"
