import pytest

from isvc.controllers.inferenceservice.status.deployments import Verdict, verdict


def deployment(name="iris-predictor", **conditions):
    entries = [
        dict(zip(("type", "status", "reason", "message"), (kind, *value), strict=False))
        for kind, value in conditions.items()
    ]
    return {"metadata": {"name": name}, "status": {"conditions": entries}}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, Verdict("False")),
        ({"Available": ("True", "Up", "m")}, Verdict("True", "Up", "m")),
        ({"Available": ("False", "Down", "m")}, Verdict("False", "Down", "m")),
        ({"Progressing": ("True", "ReplicaSetUpdated", "m")}, Verdict("Unknown", "ReplicaSetUpdated", "m")),
        ({"Progressing": ("True", "NewReplicaSetAvailable", "m")}, Verdict("True", "NewReplicaSetAvailable", "m")),
        (
            {"Progressing": ("False", "ProgressDeadlineExceeded", "m")},
            Verdict("False", "ProgressDeadlineExceeded", "m"),
        ),
        ({"Progressing": ("False", "Paused", "")}, Verdict("False")),
        (
            {"Available": ("True", "Up", "a"), "Progressing": ("True", "ReplicaSetUpdated", "p")},
            Verdict("True", "Up", "a"),
        ),
        (
            {"Available": ("False", "Down", "a"), "Progressing": ("True", "NewReplicaSetAvailable", "p")},
            Verdict("False", "Down", "a"),
        ),
        (
            {"Available": ("True", "Up", "a"), "ReplicaFailure": ("True", "FailedCreate", "quota")},
            Verdict("False", "FailedCreate", "quota"),
        ),
    ],
)
def test_weight_of_conditions(conditions, expected):
    assert verdict([deployment(**conditions)]) == expected


def test_head_and_workers_speak_together():
    head = deployment(Available=("True", "Up", "h"))
    both = [head, deployment("iris-predictor-worker", Available=("True", "Up", "w"))]
    assert verdict(both) == Verdict("True", "Up", "predictor-container: h, worker-container: w")
    both = [head, deployment("iris-predictor-worker", Available=("False", "Down", "w"))]
    reason = "predictor-container: Up, worker-container: Down"
    assert verdict(both) == Verdict("False", reason, "predictor-container: h, worker-container: w")
    assert verdict([head, {}]) == Verdict("False")
