"""How many pods requests need: targets, panics, delays and the way to zero and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from isvc.kube.durations import seconds
from isvc.kube.objects import Object
from isvc.local.knative.decider import Decider, Pods
from isvc.local.knative.demand import Demand
from isvc.local.knative.settings import Scaling


def revision(concurrency: int = 0, **annotations: str) -> Object:
    named = {f"autoscaling.knative.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"metadata": {"annotations": named}, "spec": {"containerConcurrency": concurrency}}


@dataclass
class Simulation:
    """A Revision whose pods are ready at once, with a number of requests that are always under way."""

    scaling: Scaling
    now: float = 1000.0
    pods: int = 1
    demand: Demand = field(default_factory=Demand)
    decider: Decider = field(default_factory=lambda: Decider(1000.0))
    reachable: bool = True

    def load(self, requests: int) -> None:
        while self.demand.under_way < requests:
            self.demand.begin(self.now)
        while self.demand.under_way > requests:
            self.demand.end(self.now)

    def run(self, until: float) -> int:
        while self.now < until:
            self.now += 2
            ready = Pods(self.pods, self.pods)
            self.pods = self.decider.decide(
                self.scaling, self.demand, self.now, ready, reachable=self.reachable, initialized=True
            )
        return self.pods


def simulation(concurrency: int = 0, **annotations: str) -> Simulation:
    return Simulation(Scaling.of(revision(concurrency, **annotations), {}))


@pytest.mark.parametrize(
    ("given", "config", "target"),
    [
        (revision(), {}, 70),
        (revision(10), {}, 7),
        (revision(10, target="5"), {}, 3.5),
        (revision(10, target="50"), {}, 7),
        (revision(target="50", target_utilization_percentage="100"), {}, 50),
        (revision(metric="rps"), {}, 140),
        (revision(metric="rps", target="10"), {}, 7),
        (revision(), {"container-concurrency-target-default": "10"}, 7),
        (revision(target="nonsense"), {}, 70),
    ],
)
def test_the_target_of_a_pod(given: Object, config: Mapping[str, str], target: float):
    assert Scaling.of(given, config).target == pytest.approx(target)


@pytest.mark.parametrize(("text", "value"), [("90s", 90), ("1m30s", 90), ("500ms", 0.5), ("", None), ("soon", None)])
def test_durations(text: str, value: float | None):
    assert seconds(text) == value


def test_pods_follow_the_requests_under_way():
    here = simulation(concurrency=10)
    here.load(35)
    assert here.run(until=1100) == 5
    here.load(7)
    assert here.run(until=1300) == 1


def test_a_burst_is_answered_before_the_window_is_over():
    here = simulation(concurrency=10)
    here.run(until=1060)
    here.load(100)
    assert here.run(until=1070) >= 10  # a sixth of the stable window


def test_bounds():
    here = simulation(concurrency=1, min_scale="2", max_scale="3")
    assert here.run(until=1100) == 2
    here.load(50)
    assert here.run(until=1200) == 3


def test_no_requests_for_a_window_take_the_last_pod():
    here = simulation(window="10s")
    here.load(1)
    assert here.run(until=1020) == 1
    here.load(0)
    assert here.run(until=1026) == 1
    assert here.run(until=1034) == 0
    here.load(1)
    assert here.run(until=1036) == 1


def test_the_last_pod_may_be_retained():
    here = simulation(window="10s", scale_to_zero_pod_retention_period="20s")
    assert here.run(until=1028) == 1
    assert here.run(until=1034) == 0


def test_going_down_may_be_delayed():
    here = simulation(concurrency=10, window="6s", scale_down_delay="60s")
    here.load(70)
    assert here.run(until=1100) == 10
    here.load(0)
    assert here.run(until=1150) == 10
    assert here.run(until=1180) == 5  # at most half of the pods go at once


def test_a_revision_that_nobody_routes_to_is_not_kept():
    here = simulation(min_scale="2", window="6s")
    assert here.run(until=1010) == 2
    here.reachable = False
    assert here.run(until=1030) == 0


def test_requests_per_second():
    here = simulation(metric="rps", target="10", window="10s")
    for tenth in range(200):  # twenty a second for ten seconds
        here.demand.begin(1000 + tenth / 20)
        here.demand.end(1000 + tenth / 20)
    here.now = 1008
    assert here.run(until=1010) == 3


def test_an_annotation_of_hundreds_of_digits_says_nothing():
    annotated = {"metadata": {"annotations": {"autoscaling.knative.dev/max-scale": "9" * 400}}}
    assert Scaling.of(annotated, {"max-scale": "3"}).most == 3
