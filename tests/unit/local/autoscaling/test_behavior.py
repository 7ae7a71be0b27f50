"""Windows and policies: how fast replicas may follow what metrics ask for."""

from __future__ import annotations

from isvc.kube.objects import Object
from isvc.local.autoscaling.behavior import Bounds, History, decide

BOUNDS = Bounds(1, 20)
AT_ONCE: Object = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}


def test_growing_is_limited_by_the_faster_of_two_policies():
    history = History()
    first = decide({}, history, 0, 1, 20, BOUNDS)
    assert (first.replicas, first.limited, first.limit[0]) == (5, True, "ScaleUpLimit")
    history.add_change(0, 1, 5)
    assert decide({}, history, 5, 5, 20, BOUNDS).replicas == 5  # the period is not over
    assert decide({}, history, 16, 5, 20, BOUNDS).replicas == 10
    history.add_change(16, 5, 10)
    verdict = decide({}, history, 32, 10, 30, BOUNDS)
    assert (verdict.replicas, verdict.limit[0]) == (20, "TooManyReplicas")


def test_shrinking_waits_for_the_highest_recommendation_of_five_minutes():
    history = History()
    decide({}, history, 0, 4, 4, BOUNDS)
    verdict = decide({}, history, 15, 4, 1, BOUNDS)
    assert (verdict.replicas, verdict.able[0]) == (4, "ScaleDownStabilized")
    assert decide({}, history, 299, 4, 2, BOUNDS).replicas == 4
    assert decide({}, history, 301, 4, 1, BOUNDS).replicas == 2
    assert decide({}, history, 600, 2, 1, BOUNDS).able == ("ReadyForNewScale", "recommended size matches current size")


def test_a_window_for_growing_takes_the_lowest():
    spec: Object = {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 60}}}
    history = History([(0, 2)])
    verdict = decide(spec, history, 30, 2, 6, BOUNDS)
    assert (verdict.replicas, verdict.able[0]) == (2, "ScaleUpStabilized")
    assert decide(spec, history, 61, 2, 5, BOUNDS).replicas == 5


def test_without_a_window_shrinking_is_at_once_and_ends_at_the_bound():
    verdict = decide(AT_ONCE, History([(0, 8)]), 1, 8, 0, BOUNDS)
    assert (verdict.replicas, verdict.limit[0]) == (1, "TooFewReplicas")


def test_policies_for_shrinking():
    rules: Object = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
    spec = {"behavior": {"scaleDown": rules}}
    history = History()
    verdict = decide(spec, history, 0, 8, 1, BOUNDS)
    assert (verdict.replicas, verdict.limit[0]) == (7, "ScaleDownLimit")
    history.add_change(0, 8, 7)
    assert decide(spec, history, 59, 7, 1, BOUNDS).replicas == 7
    assert decide(spec, history, 60, 7, 1, BOUNDS).replicas == 6


def test_the_careful_choice_and_none():
    policies = [
        {"type": "Pods", "value": 1, "periodSeconds": 15},
        {"type": "Percent", "value": 50, "periodSeconds": 15},
    ]
    careful: Object = {"behavior": {"scaleUp": {"selectPolicy": "Min", "policies": policies}}}
    assert decide(careful, History(), 0, 8, 20, BOUNDS).replicas == 9
    never: Object = {"behavior": {"scaleUp": {"selectPolicy": "Disabled"}}}
    assert decide(never, History(), 0, 8, 20, BOUNDS).replicas == 8
