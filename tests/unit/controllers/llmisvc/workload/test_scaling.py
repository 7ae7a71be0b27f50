"""Autoscalers: whom they follow, and how they are found."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.controllers.llmisvc.workload.workloads import POD, observed_with, workload

from isvc.controllers.llmisvc.workload.scaling import autoscalers
from isvc.engine.comparison import Comparison
from isvc.engine.plan import Child
from isvc.kube.objects import Object, annotations_of, deep_copy, labels_of
from isvc.serving.config import Config
from isvc.serving.config.sections import PrometheusConfig, VariantAutoscalerConfig
from isvc.serving.refused import Refused
from isvc.serving.thirdparty import SCALED_OBJECTS

TRIGGER = {"type": "cpu", "metadata": {"value": "60"}}
ACCELERATOR = "inference.optimization/acceleratorName"


def scaled(prometheus: PrometheusConfig | None = None, **spec: Any) -> list[Object]:
    return [child.manifest for child in children(prometheus, **spec)]


def children(prometheus: PrometheusConfig | None = None, **spec: Any) -> list[Child]:
    observed = observed_with(workload(**spec), served=frozenset({SCALED_OBJECTS}))
    if prometheus is not None:
        variant = VariantAutoscalerConfig(prometheus=prometheus)
        observed = observed_with(observed, config=msgspec.structs.replace(Config(), variant_autoscaler=variant))
    return [wanted.child for wanted in autoscalers(observed)]


def test_without_scaling_there_is_none() -> None:
    assert scaled() == []
    assert scaled(prefill={"template": POD}) == []


def test_an_autoscaler_that_follows_the_variant_autoscaler() -> None:
    scaling = {"maxReplicas": 6, "wva": {"variantCost": "12.5", "hpa": {"behavior": {"scaleDown": {}}}}}
    [hpa] = scaled(scaling=scaling, model={"name": "m"}, labels={ACCELERATOR: "H100"})
    assert hpa["metadata"]["name"] == "llama-kserve-hpa"
    assert labels_of(hpa)[ACCELERATOR] == "H100"
    assert annotations_of(hpa) == {
        "llm-d.ai/managed": "true",
        "llm-d.ai/model-id": "m",
        "llm-d.ai/variant-cost": "12.5",
    }
    spec = hpa["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"], spec["behavior"]) == (1, 6, {"scaleDown": {}})
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama-kserve"}
    metric = spec["metrics"][0]["external"]["metric"]
    assert metric == {"name": "wva_desired_replicas", "selector": {"matchLabels": {"variant_name": "llama-kserve-hpa"}}}


def test_triggers_of_ones_own_are_passed_on_and_nobody_else_finds_them() -> None:
    keda = {"triggers": [TRIGGER], "pollingInterval": 5, "fallback": {"replicas": 1, "behavior": "static"}}
    [found] = scaled(scaling={"minReplicas": 2, "maxReplicas": 4, "keda": keda}, worker=POD)
    assert annotations_of(found) == {}
    assert ACCELERATOR not in labels_of(found)
    assert found["spec"] == {
        "scaleTargetRef": {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "name": "llama-kserve-mn",
        },
        "minReplicaCount": 2,
        "maxReplicaCount": 4,
        "pollingInterval": 5,
        "fallback": {"replicas": 1},
        "triggers": [TRIGGER],
    }


def test_prefill_scales_by_itself() -> None:
    prefill = {"template": POD, "scaling": {"maxReplicas": 2, "wva": {"hpa": {}}}}
    [hpa] = scaled(prefill=prefill)
    assert hpa["metadata"]["name"] == "llama-kserve-prefill-hpa"
    assert hpa["spec"]["scaleTargetRef"]["name"] == "llama-kserve-prefill"
    assert labels_of(hpa)[ACCELERATOR] == "unknown"


def test_keda_asks_the_configured_prometheus() -> None:
    prometheus = PrometheusConfig(url="https://p", auth_modes="bearer", trigger_auth_name="auth")
    [found] = scaled(prometheus, scaling={"maxReplicas": 2, "wva": {"keda": {}}})
    [trigger] = found["spec"]["triggers"]
    assert trigger["metadata"] == {
        "serverAddress": "https://p",
        "query": 'wva_desired_replicas{variant_name="llama-kserve-keda",exported_namespace="models"}',
        "threshold": "1",
        "unsafeSsl": "false",
        "authModes": "bearer",
    }
    assert trigger["authenticationRef"] == {"name": "auth"}


@pytest.mark.parametrize(
    ("prometheus", "words"),
    [
        (None, "prometheus.url is required"),
        (PrometheusConfig(), "prometheus.url is required"),
        (PrometheusConfig(url="https://p", auth_modes="bearer"), "must both be set or both be empty"),
    ],
)
def test_keda_needs_to_know_prometheus(prometheus: PrometheusConfig | None, words: str) -> None:
    with pytest.raises(Refused, match=words):
        scaled(prometheus, scaling={"maxReplicas": 2, "wva": {"keda": {}}})


def test_a_scaled_object_can_be_paused_by_hand() -> None:
    [child] = children(scaling={"maxReplicas": 4, "keda": {"triggers": [TRIGGER]}})
    live = deep_copy(child.manifest)
    live["metadata"]["annotations"] = {"autoscaling.keda.sh/paused": "true"}
    comparison = Comparison(child, live, "llmisvc-manager")
    assert not comparison.drifted
    live["spec"]["maxReplicaCount"] = 9
    assert Comparison(child, live, "llmisvc-manager").drifted
    assert annotations_of(comparison.replacement(workload().raw)) == {"autoscaling.keda.sh/paused": "true"}
