"""How often autoscalers are looked at: what cannot act costs next to nothing, however many there are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.manual_clock import ManualClock

from isvc.kube.objects import Key, Object
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS
from isvc.local.autoscaling.horizontal import (
    SYNC_SECONDS,
    SYNC_SECONDS_WITHOUT_CHOICE,
    controller,
    period_without_choice,
)
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.context import Context

NOW = datetime(2026, 11, 17, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("active", "expected"),
    [
        ({}, SYNC_SECONDS),
        ({"status": "False", "lastTransitionTime": "2026-11-17T11:59:30Z"}, SYNC_SECONDS),
        ({"status": "False", "lastTransitionTime": "2026-11-17T11:58:30Z"}, SYNC_SECONDS_WITHOUT_CHOICE),
        ({"status": "True", "lastTransitionTime": "2026-11-17T11:59:59Z"}, SYNC_SECONDS_WITHOUT_CHOICE),
    ],
)
def test_without_a_choice_it_is_looked_at_often_while_figures_may_come(active, expected):
    assert period_without_choice(active, NOW) == expected


@pytest.mark.parametrize(("status", "since"), [("True", "11:59:59"), ("False", "11:58:30")])
def test_many_without_a_choice_are_looked_at_when_something_changes(status, since):
    active = {"status": status, "lastTransitionTime": f"2026-11-17T{since}Z"}
    assert [period_without_choice(active, NOW, number) for number in (100, 101)] == [SYNC_SECONDS_WITHOUT_CHOICE, None]
    assert period_without_choice({}, NOW, 101) == SYNC_SECONDS


def test_an_autoscaler_is_looked_at_when_the_pods_of_its_target_have_been_ready_for_a_while():
    scaler = {
        "metadata": {"name": "iris", "namespace": "ns"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "iris-predictor"}, "maxReplicas": 1},
    }
    cache: Any = MemoryReader()
    scalers = controller(Context(cache, cache, cache, ManualClock()), no_figures)
    cache.declare(*scalers.reads)
    cache.put(HORIZONTAL_POD_AUTOSCALERS, scaler)

    def deployment(ready: int) -> Object:
        metadata = {"name": "iris-predictor", "namespace": "ns"}
        return {"metadata": metadata, "spec": {"replicas": 1}, "status": {"readyReplicas": ready}}

    watches = [watch for watch in scalers.watches if watch.resource == DEPLOYMENTS]
    found = [(watch.delay, {*watch.keys(deployment(0), deployment(1))}) for watch in watches]
    assert [each for each in found if each[1]] == [(SYNC_SECONDS, {Key("ns", "iris")})]


async def no_figures(namespace: str, name: str, labels: object) -> float:
    raise AssertionError(name)
