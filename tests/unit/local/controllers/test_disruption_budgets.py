"""How many evictions a budget allows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from isvc.kube.objects import Object
from isvc.kube.timestamps import timestamp
from isvc.local.controllers.disruption_budgets import budget_status

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def budget(spec: Object, **status: object) -> Object:
    return {"metadata": {"name": "b", "generation": 3}, "spec": spec, "status": status}


def pods(count: int, *, ready: int) -> list[Object]:
    def pod(index: int) -> Object:
        condition = {"type": "Ready", "status": "True" if index < ready else "False"}
        return {"metadata": {"name": f"p{index}"}, "status": {"conditions": [condition]}}

    return [pod(index) for index in range(count)]


@pytest.mark.parametrize(
    ("spec", "there", "ready", "wanted", "expected", "needed", "allowed"),
    [
        ({"minAvailable": 2}, 3, 3, 9, 3, 2, 1),
        ({"minAvailable": 2}, 3, 1, 3, 3, 2, 0),
        ({"minAvailable": "50%"}, 3, 3, 5, 5, 3, 0),
        ({"minAvailable": "50%"}, 5, 5, 5, 5, 3, 2),
        ({"maxUnavailable": 1}, 4, 4, 5, 5, 4, 0),
        ({"maxUnavailable": "30%"}, 5, 5, 5, 5, 3, 2),
        ({"maxUnavailable": 7}, 2, 2, 2, 2, 0, 2),
        ({"minAvailable": 0}, 0, 0, 0, 0, 0, 0),
        ({}, 1, 1, 1, 0, 0, 0),
    ],
)
def test_what_is_left_over_may_go(spec, there, ready, wanted, expected, needed, allowed):
    status = budget_status(budget(spec), pods(there, ready=ready), wanted, NOW)
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (
        expected,
        needed,
        allowed,
    )
    (condition,) = status["conditions"]
    assert (condition["status"], condition["reason"]) == (
        ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    )
    assert condition["observedGeneration"] == status["observedGeneration"] == 3


def test_an_evicted_pod_counts_as_gone_until_it_stays_for_too_long():
    def after(seconds: float) -> Object:
        disrupted = {"p0": timestamp(NOW - timedelta(seconds=seconds)), "gone": timestamp(NOW)}
        return budget_status(budget({"minAvailable": 1}, disruptedPods=disrupted), pods(2, ready=2), 2, NOW)

    assert [*after(5)["disruptedPods"]] == ["p0"]
    assert after(5)["disruptionsAllowed"] == 0
    assert "disruptedPods" not in after(121)
    assert after(121)["disruptionsAllowed"] == 1
