"""How many replicas a metric asks for, in the cases that Kubernetes takes care of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from isvc.kube.objects import Object
from isvc.kube.timestamps import timestamp
from isvc.local.autoscaling.replicas import (
    AverageUtilization,
    AverageValue,
    CannotCompute,
    PodMetric,
    Proposal,
    replicas_for_pods,
    replicas_for_total,
    requests_of,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR_AGO = NOW - timedelta(hours=1)


def pod(name: str, *, phase: str = "Running", ready: str = "True", since: datetime = HOUR_AGO) -> Object:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": timestamp(since)}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": phase, "startTime": timestamp(since), "conditions": [condition]},
    }


def measured(**values: int) -> dict[str, PodMetric]:
    return {name: PodMetric(value, NOW, timedelta(seconds=10)) for name, value in values.items()}


def utilization(pods: list[Object], percent: int = 50) -> AverageUtilization:
    return AverageUtilization(percent, requests_of(pods, "cpu"))


def ask(pods: list[Object], percent: int = 50, **values: int) -> Proposal:
    return replicas_for_pods(len(pods), utilization(pods, percent), pods, measured(**values), NOW, cpu=True)


@pytest.mark.parametrize(
    ("a", "b", "replicas", "percent"),
    [
        (500, 500, 2, 50),
        (540, 540, 2, 54),  # within the tolerance
        (600, 600, 3, 60),
        (1000, 1000, 4, 100),
        (100, 100, 1, 10),
        (0, 0, 0, 0),  # the bounds are another's business
    ],
)
def test_replicas_follow_the_ratio_of_use_to_target(a: int, b: int, replicas: int, percent: int):
    proposal = ask([pod("a"), pod("b")], a=a, b=b)
    assert (proposal.replicas, proposal.current.utilization) == (replicas, percent)


def test_a_pod_without_figures_damps_a_scale_up():
    pods = [pod("a"), pod("b"), pod("c")]
    assert ask(pods, a=1000, b=1000, c=1000).replicas == 6
    assert ask(pods, a=1000, b=1000).replicas == 4


def test_a_pod_without_figures_counts_as_fully_used_before_a_scale_down():
    pods = [pod("a"), pod("b"), pod("c")]
    assert ask(pods, a=100, b=100, c=100).replicas == 1
    assert ask(pods, a=100, b=100).replicas == 3  # its request would turn the ratio around


def test_a_pod_that_starts_damps_a_scale_up_and_is_ignored_else():
    moment = NOW - timedelta(seconds=5)
    pods = [pod("a"), pod("b", since=moment)]
    assert ask(pods, a=1000, b=4000).replicas == 2
    assert ask(pods, a=100, b=4000).replicas == 1
    pending = [pod("a"), pod("b", phase="Pending")]
    assert ask(pending, a=2000).replicas == 4


def test_pods_that_go_do_not_count():
    going = pod("b")
    going["metadata"]["deletionTimestamp"] = timestamp(NOW)
    assert ask([pod("a"), going, pod("c", phase="Failed")], a=1000, b=1, c=1).replicas == 2


def test_memory_of_pods_that_just_started_counts():
    pods = [pod("a", since=NOW)]
    proposal = replicas_for_pods(1, AverageValue(100), pods, measured(a=300), NOW, cpu=False)
    assert proposal.replicas == 3


@pytest.mark.parametrize(
    ("pods", "values", "message"),
    [
        ([], {}, "no pods returned"),
        ([pod("a")], {}, "did not receive metrics"),
        ([pod("a", ready="False", since=NOW)], {"a": 1}, "did not receive metrics"),
    ],
)
def test_without_figures_nothing_is_proposed(pods: list[Object], values: dict[str, int], message: str):
    with pytest.raises(CannotCompute, match=message):
        ask(pods, **values)


def test_a_share_of_nothing_is_none():
    bare = pod("a")
    bare["spec"]["containers"][0]["resources"] = {}
    with pytest.raises(CannotCompute, match="missing request for cpu in container c of Pod a"):
        requests_of([bare], "cpu")
    with pytest.raises(CannotCompute, match="container x not found in Pod a"):
        requests_of([bare], "cpu", "x")


@pytest.mark.parametrize(
    ("replicas", "value", "target", "per_pod", "wanted"),
    [
        (1, 10_000, 2_000, True, 5),
        (5, 10_500, 2_000, True, 5),  # within the tolerance
        (5, 0, 2_000, True, 0),
        (0, 3_000, 2_000, True, 2),
        (2, 3_000, 1_000, False, 6),
        (0, 3_000, 1_000, False, 3),
    ],
)
def test_a_metric_of_the_whole(replicas: int, value: int, target: int, per_pod: bool, wanted: int):
    assert replicas_for_total(replicas, replicas, value, target, per_pod=per_pod).replicas == wanted


def test_pods_that_started_in_the_future_count_when_the_clock_was_set_back():
    started = NOW + timedelta(hours=1)
    assert ask([pod("a", since=started), pod("b", since=started)], a=1000, b=1000).replicas == 4
