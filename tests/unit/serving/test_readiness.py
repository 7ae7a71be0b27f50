import pytest

from isvc.serving.workload.readiness import Readiness, readiness


def deployment(name="iris-predictor", **conditions):
    entries = [
        dict(zip(("type", "status", "reason", "message"), (kind, *value), strict=False))
        for kind, value in conditions.items()
    ]
    return {"metadata": {"name": name}, "status": {"conditions": entries}}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, Readiness("False")),
        ({"Available": ("True", "Up", "m")}, Readiness("True", "Up", "m")),
        ({"Available": ("False", "Down", "m")}, Readiness("False", "Down", "m")),
        ({"Progressing": ("True", "ReplicaSetUpdated", "m")}, Readiness("Unknown", "ReplicaSetUpdated", "m")),
        ({"Progressing": ("True", "NewReplicaSetAvailable", "m")}, Readiness("True", "NewReplicaSetAvailable", "m")),
        (
            {"Progressing": ("False", "ProgressDeadlineExceeded", "m")},
            Readiness("False", "ProgressDeadlineExceeded", "m"),
        ),
        ({"Progressing": ("False", "Paused", "")}, Readiness("False")),
        (
            {"Available": ("True", "Up", "a"), "Progressing": ("True", "ReplicaSetUpdated", "p")},
            Readiness("True", "Up", "a"),
        ),
        (
            {"Available": ("False", "Down", "a"), "Progressing": ("True", "NewReplicaSetAvailable", "p")},
            Readiness("False", "Down", "a"),
        ),
        (
            {"Available": ("True", "Up", "a"), "ReplicaFailure": ("True", "FailedCreate", "quota")},
            Readiness("False", "FailedCreate", "quota"),
        ),
    ],
)
def test_weight_of_conditions(conditions, expected):
    assert readiness([deployment(**conditions)]) == expected


def test_head_and_workers_speak_together():
    head = deployment(Available=("True", "Up", "h"))
    both = [head, deployment("iris-predictor-worker", Available=("True", "Up", "w"))]
    assert readiness(both) == Readiness("True", "Up", "predictor-container: h, worker-container: w")
    both = [head, deployment("iris-predictor-worker", Available=("False", "Down", "w"))]
    reason = "predictor-container: Up, worker-container: Down"
    assert readiness(both) == Readiness("False", reason, "predictor-container: h, worker-container: w")
    assert readiness([head, {}]) == Readiness("False")
