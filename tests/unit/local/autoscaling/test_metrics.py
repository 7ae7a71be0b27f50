"""Figures of metrics.k8s.io, and which changes of them a status tells."""

from __future__ import annotations

from datetime import timedelta

import pytest

from isvc.kube.objects import Object
from isvc.local.autoscaling.metrics import pod_metric, settle_status

METRICS: Object = {
    "timestamp": "2026-01-01T00:00:00Z",
    "window": "1m7.5s",
    "containers": [
        {"name": "a", "usage": {"cpu": "100m", "memory": "1Mi"}},
        {"name": "b", "usage": {"cpu": "50000000n", "memory": "2Mi"}},
    ],
}


def test_what_a_pod_uses_is_what_its_containers_use():
    whole, one = pod_metric(METRICS, "cpu", ""), pod_metric(METRICS, "memory", "b")
    assert whole is not None
    assert one is not None
    assert (whole.value, whole.window) == (150, timedelta(seconds=67.5))
    assert one.value == 2 * 2**20 * 1000
    assert pod_metric(METRICS, "cpu", "c") is None
    assert pod_metric(METRICS, "disk", "") is None


def cpu(value: str, percent: int | None = None) -> Object:
    current: Object = (
        {"averageValue": value} if percent is None else {"averageUtilization": percent, "averageValue": value}
    )
    return {"type": "Resource", "resource": {"name": "cpu", "current": current}}


@pytest.mark.parametrize(
    ("before", "after", "is_news"),
    [
        ([], [cpu("1m", 0)], True),
        ([cpu("1m", 0)], [cpu("3m", 0)], False),
        ([cpu("1m", 0)], [cpu("11m", 1)], True),
        ([cpu("100m")], [cpu("104m")], False),
        ([cpu("100m")], [cpu("110m")], True),
        ([cpu("100m")], [cpu("100m", 3)], True),
        ([cpu("0")], [cpu("1m")], True),
    ],
)
def test_small_changes_are_not_told(before: list[Object], after: list[Object], is_news: bool):
    assert settle_status(before, after) == (after if is_news else before)
