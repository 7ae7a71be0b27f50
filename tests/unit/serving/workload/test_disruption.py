"""PodDisruptionBudgets: who gets one, and that none of them blocks a drain for good."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.serving.workload.test_workload import component

from isvc.kube.objects import Object
from isvc.serving.config import Config, ConfigError
from isvc.serving.workload.component import WorkloadRefused
from isvc.serving.workload.disruption import component_budget

ASKED = "isvc.dev/disruption-budget"
CLASS = "serving.kserve.io/autoscalerClass"


def budget(annotations: dict[str, str], config: str = "", **scale: Any) -> Object | None:
    settings = f'{{"maxUnavailable": "{config}"}}'
    data = {"deploy": f'{{"defaultDeploymentMode": "Standard", "podDisruptionBudget": {settings}}}'}
    child = component_budget(component(annotations=annotations, **scale), Config.parse(data).deploy)
    return child.manifest if child else None


def test_nobody_gets_one_unasked() -> None:
    assert budget({}, minReplicas=3) is None


def test_a_budget_is_of_the_pods_of_its_workload() -> None:
    found = budget({ASKED: "1"}, minReplicas=2)
    assert found is not None
    assert found["metadata"] == {
        "name": "iris-predictor",
        "namespace": "ns",
        "labels": {"a": "b", "app": "isvc.iris-predictor"},
    }
    assert found["spec"] == {
        "maxUnavailable": 1,
        "selector": {"matchLabels": {"app": "isvc.iris-predictor"}},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }


@pytest.mark.parametrize(
    ("annotations", "config", "most"),
    [
        ({ASKED: "25%"}, "", "25%"),
        ({}, "10%", "10%"),
        ({ASKED: "2"}, "10%", 2),
        ({ASKED: "none"}, "10%", None),
        ({ASKED: "", CLASS: "keda"}, "1", 1),
    ],
)
def test_the_service_says_and_the_configuration_where_it_is_silent(
    annotations: dict[str, str], config: str, most: int | str | None
) -> None:
    found = budget(annotations, config, minReplicas=2)
    assert (found["spec"]["maxUnavailable"] if found else None) == most


@pytest.mark.parametrize(
    ("autoscaler", "scale", "there"),
    [
        ("hpa", {}, False),
        ("hpa", {"minReplicas": 1, "maxReplicas": 1}, False),
        ("hpa", {"maxReplicas": 2}, True),
        ("keda", {"minReplicas": 0, "maxReplicas": 1}, False),
        ("keda", {"minReplicas": 0, "maxReplicas": 4}, True),
        ("none", {"minReplicas": 1, "maxReplicas": 9}, False),
        ("none", {"minReplicas": 2}, True),
        ("external", {}, True),
    ],
)
def test_where_one_replica_is_the_most_there_is_none(autoscaler: str, scale: dict[str, Any], there: bool) -> None:
    assert (budget({ASKED: "1", CLASS: autoscaler}, **scale) is not None) is there


@pytest.mark.parametrize("nothing", ["0", "0%", "101%", "-1", "half", "1.5", "²", "9" * 5000])
def test_a_budget_that_could_block_a_drain_for_good_is_refused(nothing: str) -> None:
    with pytest.raises(WorkloadRefused, match="from 1 or a percentage from 1% to 100%, or none"):
        budget({ASKED: nothing}, minReplicas=2)
    with pytest.raises(ConfigError, match=r"podDisruptionBudget\.maxUnavailable"):
        budget({}, nothing)
