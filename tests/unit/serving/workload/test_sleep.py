"""Workloads without pods: asleep, waking and overdue are told apart by what is said of them, now and before."""

from __future__ import annotations

import pytest

from isvc.kube.objects import Object
from isvc.serving.workload.sleep import ASLEEP, SCALING_UP, WAKING, sleep

WOKEN_AT = "2026-01-01T00:00:00Z"
SOON = "2026-01-01T00:09:59Z"
LATE = "2026-01-01T00:10:00Z"


def workload(
    replicas: int, available: str = "True", there: int = 0, failure: str = "False", updated: int = 2, **spec: int
) -> Object:
    """Kubernetes says Available of a Deployment that wants no pods, and until it has seen that it wants one."""
    conditions = [
        {"type": "Available", "status": available, "lastTransitionTime": WOKEN_AT},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        {"type": "ReplicaFailure", "status": failure},
    ]
    status = {"conditions": conditions, "availableReplicas": there, "replicas": 2, "updatedReplicas": updated}
    return {"spec": {"replicas": replicas, **spec}, "status": status}


@pytest.mark.parametrize(
    ("live", "before", "now", "state"),
    [
        (workload(0), "", SOON, ASLEEP),
        (workload(1), "Asleep", SOON, WAKING),
        (workload(1, "False"), "Waking", SOON, WAKING),
        (workload(2, "False", there=1), "Waking", SOON, SCALING_UP),
        (workload(2, "False", there=1, updated=1), "", SOON, None),
        (workload(1, there=1), "Waking", SOON, None),
        (workload(1, "False"), "", SOON, None),
        (workload(1, "False"), "Waking", LATE, None),
        (workload(1, "False", progressDeadlineSeconds=1200), "Waking", LATE, WAKING),
        (workload(1, "False", failure="True"), "Waking", SOON, None),
    ],
    ids=[
        "asleep",
        "just woken, which its Deployment has not seen",
        "waking",
        "a second pod starts",
        "a pod of another template starts",
        "awake",
        "was awake and lost its pods",
        "takes too long",
        "may take longer",
        "no pod can be created",
    ],
)
def test_states(live: Object, before: str, now: str, state: object) -> None:
    assert sleep(live, before, now) == state
