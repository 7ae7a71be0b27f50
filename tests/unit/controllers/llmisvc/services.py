"""LLMInferenceServices to plan: observed values with just what a test is about."""

from __future__ import annotations

from typing import Any

from tests.answers import answers

from isvc.controllers.llmisvc.observed import Merged, Network, Observed
from isvc.kube.objects import Key, Object, name_of, namespace_of
from isvc.serving.config import Config
from isvc.serving.llm.names import scheduler_cluster_role_bindings
from isvc.serving.llm.presets import Settings
from isvc.serving.thirdparty import HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2

NAMESPACE = "models"
GATEWAY = Key("kserve", "gate")


def service(name: str = "llama", spec: Object | None = None, **more: Any) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE, "uid": f"uid-of-{name}", "generation": 1}
    return {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {**metadata, **more.pop("metadata", {})},
        "spec": spec or {},
        **more,
    }


def observe(spec: Object, *, raw: Object | None = None, network: Network | None = None, **more: Any) -> Observed:
    """A service whose merged spec is as given, behind one gateway that is ready and has an address."""
    raw = raw or service(spec=spec)
    config = Config()
    return Observed(
        raw=raw,
        merged=Merged.of(spec),
        config=config,
        settings=Settings.of(config, "kserve"),
        network=network or Network(gateways={GATEWAY: gateway()}, gateway_classes={"example": {}}),
        served=frozenset({HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2}),
        now="2026-01-01T00:00:00Z",
        binding_name=scheduler_cluster_role_bindings(namespace_of(raw), name_of(raw))[0],
        **{"answers": answers(NAMESPACE), **more},
    )


def gateway(*listeners: Object, addresses: tuple[str, ...] = ("203.0.113.7",), key: Key = GATEWAY) -> Object:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "gatewayClassName": "example",
            "listeners": list(listeners) or [{"name": "web", "port": 80, "protocol": "HTTP"}],
        },
        "status": {
            "addresses": [{"value": address} for address in addresses],
            "conditions": [{"type": "Programmed", "status": "True"}],
        },
    }


def route(*rules: Object, name: str = "llama-kserve-route", **spec: Any) -> Object:
    parent = {"name": GATEWAY.name, "namespace": GATEWAY.namespace}
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": NAMESPACE, "generation": 1},
        "spec": {"parentRefs": [parent], "rules": list(rules), **spec},
    }


def path(value: str, backend: Object | None = None, *headers: Object) -> Object:
    """A rule for a path, which leads to a Service unless said otherwise."""
    match: Object = {"path": {"type": "PathPrefix", "value": value}}
    if headers:
        match["headers"] = list(headers)
    return {"matches": [match], "backendRefs": [backend or {"kind": "Service", "name": "s"}]}
