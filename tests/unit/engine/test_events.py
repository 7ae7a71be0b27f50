"""What a reconcile did to the children of an object, in one event for each kind of change."""

from __future__ import annotations

from isvc.engine.events import child_events
from isvc.engine.outcome import Created, Deleted, Outcome, Unchanged, Updated
from isvc.engine.plan import ChildKey
from isvc.kube.resource import DEPLOYMENTS, ROLES, SECRETS, SERVICES


def test_one_event_tells_of_all_children_that_changed_alike() -> None:
    outcome = Outcome(
        {
            ChildKey(DEPLOYMENTS, "a"): Created({}),
            ChildKey(SERVICES, "b"): Created({}),
            ChildKey(SERVICES, "c"): Updated({}, repaired=False),
            ChildKey(SECRETS, "d"): Unchanged({}),
            ChildKey(ROLES, "e"): Deleted(),
            ChildKey(ROLES, "f"): Deleted(),
        },
        namespace="models",
    )
    assert [(event.reason, event.message) for event in child_events(outcome)] == [
        ("Created", "Created v1.Deployment a, v1.Service b in models"),
        ("Updated", "Updated v1.Service c in models"),
        ("Deleted", "Deleted v1.Role e, v1.Role f in models"),
    ]
