"""Names that leave no room for what is made from them, and fields that have no effect."""

from __future__ import annotations

from typing import Any

import pytest

from isvc.api import InferenceService
from isvc.serving.admission import name_problems, warnings
from isvc.serving.config import Config

INGRESS = '{"ingressGateway": "istio/public", "ingressDomain": "example.com"}'


def config(mode: str = "Standard") -> Config:
    return Config.parse({"ingress": INGRESS, "deploy": f'{{"defaultDeploymentMode": "{mode}"}}'})


def service(name: str = "iris", namespace: str = "ns", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"predictor": {}, **spec}}


def problems(obj: dict[str, Any], mode: str = "Standard") -> list[str]:
    return [str(each) for each in name_problems(obj, InferenceService.decode(obj), config(mode))]


@pytest.mark.parametrize(
    ("spec", "namespace", "limit"),
    [
        ({}, "ns", 48),  # isvc.NAME-predictor is a label
        ({"transformer": {}}, "ns", 46),
        ({"canary": [{"predictor": {"name": "trial"}}]}, "ns", 42),
        ({}, "a-namespace-of-27-characters", 24),  # NAME-predictor-NAMESPACE is part of a host
    ],
)
def test_the_limit_follows_from_what_is_made_from_the_name(spec, namespace, limit):
    assert problems(service("n" * limit, namespace, **spec)) == []
    [said] = problems(service("n" * (limit + 1), namespace, **spec))
    assert said.startswith(f"metadata.name: must be no more than {limit} characters here, got {limit + 1}: ")


def test_a_namespace_may_leave_no_name_at_all():
    [said] = problems(service("n", "n" * 63))
    assert said.startswith("metadata.name: cannot be short enough here: that of the namespace is too long: ")


def test_knative_has_limits_of_its_own():
    assert problems(service("n" * 60), "Knative") == []


def test_a_cluster_local_service_has_no_host():
    obj = service("n" * 30, "a-namespace-of-27-characters")
    obj["metadata"]["labels"] = {"networking.kserve.io/visibility": "cluster-local"}
    assert problems(obj) == []


def said(obj: dict[str, Any], mode: str = "Standard") -> list[str]:
    return list(warnings(InferenceService.decode(obj), config(mode)))


def test_fields_without_effect_are_warned_of():
    obj = service(predictor={"canaryTrafficPercent": 10, "minReplicas": 0}, transformer={"minReplicas": 0})
    canary, zero, other = said(obj)
    assert canary.startswith("spec.predictor.canaryTrafficPercent has no effect in Standard mode")
    assert zero.startswith("spec.predictor.minReplicas: 0 does not scale to zero in Standard mode")
    assert other.startswith("spec.transformer.minReplicas: 0")
    assert said(obj, "Knative") == []


def test_keda_scales_to_zero():
    obj = service(predictor={"minReplicas": 0})
    obj["metadata"]["annotations"] = {"serving.kserve.io/autoscalerClass": "keda"}
    assert said(obj) == []
