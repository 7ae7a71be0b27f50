"""Canaries in Standard mode: further versions of the predictor, each a small workload that gets part of the traffic."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import msgspec

from isvc.api.annotations import HTTP_METRIC
from isvc.api.codec import decode, encode
from isvc.api.inferenceservice import CanarySpec, PredictorSpec
from isvc.api.inferenceservice.components import ComponentExtensionSpec
from isvc.api.inferenceservice.frameworks import FRAMEWORKS
from isvc.controllers.inferenceservice.builders import Workload
from isvc.controllers.inferenceservice.components import predictor
from isvc.controllers.inferenceservice.components.predictor import Variant
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.planned import Canary
from isvc.kube.objects import Object, dig, without
from isvc.kube.resource import DEPLOYMENTS
from isvc.serving.refused import Refused
from isvc.serving.workload.component import Component
from isvc.serving.workload.http_metric import asks_for_http_metric

_SCALING = ("maxReplicas", "scaleTarget", "scaleMetric", "autoScaling", "minReplicas")


def canaries_of(observed: Observed, stable: Variant, workload: Workload) -> tuple[Canary, ...]:
    """Returns every canary, built as the stable predictor with the canary's own settings laid over it."""
    base = encode(stable.spec)
    written = (observed.raw.get("spec") or {}).get("canary") or ()
    return tuple(
        _canary(observed, base, canary, _with_model(overlay.get("predictor") or {}), stable, workload)
        for canary, overlay in zip(observed.service.spec.canary, written, strict=True)
    )


def _with_model(overlay: Object) -> Object:
    """Returns a canary's framework field as `model`, which is what it has become in the stable predictor."""
    framework = next((name for name in FRAMEWORKS if overlay.get(name) is not None), None)
    if framework is None:
        return overlay
    others = {key: value for key, value in overlay.items() if key != framework}
    return {**others, "model": {**overlay[framework], "modelFormat": {"name": framework}}}


def _canary(
    observed: Observed, base: Object, canary: CanarySpec, overlay: Object, stable: Variant, workload: Workload
) -> Canary:
    name = canary.predictor.name
    replicas = _replicas(canary, stable.spec)
    if asks_for_http_metric(observed.annotations, stable.spec.annotations):
        replicas = max(replicas, 1)
    merged = {key: value for key, value in lay_over(base, overlay).items() if key not in _SCALING}
    try:
        variant = predictor.settle_runtime(
            observed,
            decode(PredictorSpec, merged),
            stable.service,
            scaling=ComponentExtensionSpec(min_replicas=replicas),
        )
        component = _awake(predictor.build(observed, variant))
    except Refused as error:
        what = f"fails to reconcile canary deployments: fails to build resources for canary {name}: {error.message}"
        raise Refused(what) from error
    deployed = workload.deploy(observed, "predictor", component)
    live = observed.live.get((DEPLOYMENTS, component.name)) or {}
    ready = bool(dig(live, "status", "availableReplicas"))
    return Canary(name, canary.traffic_percent, replicas, deployed, ready, variant.runtime)


def _awake(component: Component) -> Component:
    """A canary never sleeps: its share of the requests goes past the interceptor, which leads to one Service alone."""
    return replace(component, annotations=without(component.annotations, (HTTP_METRIC,)))


def _replicas(canary: CanarySpec, stable: PredictorSpec) -> int:
    if canary.predictor.min_replicas is not None:
        return canary.predictor.min_replicas
    return math.ceil(stable.least_replicas * canary.traffic_percent / 100)


def with_fewer_replicas(spec: ComponentExtensionSpec, canaries: tuple[Canary, ...]) -> ComponentExtensionSpec:
    """The stable predictor needs fewer replicas once canaries serve; before that it keeps them all."""
    serving = sum(canary.replicas for canary in canaries if canary.ready)
    if not serving or spec.min_replicas is None:
        return spec
    return msgspec.structs.replace(spec, min_replicas=max(spec.min_replicas - serving, 1))


def lay_over(base: Any, overlay: Any) -> Any:
    """Maps merge, everything else that says something replaces; an empty value says nothing."""
    if isinstance(base, dict) and isinstance(overlay, dict):
        merged = {key: lay_over(base[key], overlay[key]) if key in overlay else base[key] for key in base}
        return merged | {key: value for key, value in overlay.items() if key not in base and value is not None}
    return overlay or base
