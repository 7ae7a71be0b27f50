"""What changes the number of replicas: a HorizontalPodAutoscaler or a KEDA ScaledObject per workload.

Either follows the variant autoscaler (WVA), which finds it by its annotations and publishes how many replicas it wants;
or a ScaledObject has triggers of the user's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isvc.api.llm.scaling import HPAScalingSpec, ScalingSpec, WVASpec
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.metadata import child_metadata
from isvc.controllers.llmisvc.workload.phases import Phase, phases
from isvc.controllers.llmisvc.workload.steps import Wanted, context, require
from isvc.controllers.llmisvc.workload.waking import check_wakes, wakes_on_request, waking_trigger
from isvc.engine.plan import Child
from isvc.engine.policies import SPEC_AND_METADATA
from isvc.kube.objects import Object
from isvc.kube.resource import HORIZONTAL_POD_AUTOSCALERS
from isvc.serving.config.configmap import VARIANT_AUTOSCALER
from isvc.serving.config.sections import PrometheusConfig
from isvc.serving.llm import labels
from isvc.serving.refused import Refused
from isvc.serving.thirdparty import SCALED_OBJECTS

NO_KEDA: Final = "ScalingCRDNotFound"
_METRIC: Final = "wva_desired_replicas"
_ACCELERATOR: Final = "inference.optimization/acceleratorName"
_SETTINGS: Final = (
    "pollingInterval",
    "cooldownPeriod",
    "initialCooldownPeriod",
    "idleReplicaCount",
    "fallback",
    "advanced",
)


def autoscalers(observed: Observed) -> Iterator[Wanted]:
    if wakes_on_request(observed):
        check_wakes(observed)
    for phase in phases(observed):
        words = f"failed to reconcile {phase.name} workload scaling: failed to reconcile {phase.name} actuator"
        with context(words):
            child = _autoscaler(observed, phase)
        if child is not None:
            yield Wanted(child, words)


def _autoscaler(observed: Observed, phase: Phase) -> Child | None:
    """KEDA's settings are passed on as they are written."""
    scaling, written = phase.spec.scaling or ScalingSpec(), phase.raw.get("scaling") or {}
    variant = scaling.wva or WVASpec()
    if scaling.keda is not None:
        settings = written["keda"]
        return _scaled_object(
            observed, phase, scaling, settings, [*(settings.get("triggers") or []), *_waking(observed)]
        )
    if variant.keda is not None:
        trigger = _prometheus_trigger(observed, phase)
        settings, annotations = written["wva"]["keda"], _annotations(observed, variant)
        return _scaled_object(observed, phase, scaling, settings, [trigger, *_waking(observed)], annotations)
    if variant.hpa is not None:
        return _hpa(observed, phase, scaling, variant.hpa, _annotations(observed, variant))
    return None


def _hpa(
    observed: Observed, phase: Phase, scaling: ScalingSpec, settings: HPAScalingSpec, annotations: dict[str, str]
) -> Child:
    metric = {"name": _METRIC, "selector": {"matchLabels": {"variant_name": phase.hpa}}}
    # A target of 1 makes the metric itself the number of replicas.
    external: Object = {"metric": metric, "target": {"type": "Value", "value": "1"}}
    spec: Object = {
        "scaleTargetRef": _target(phase),
        "minReplicas": _least(scaling),
        "maxReplicas": scaling.max_replicas,
        "metrics": [{"type": "External", "external": external}],
    }
    if settings.behavior is not None:
        spec["behavior"] = settings.behavior
    manifest = HORIZONTAL_POD_AUTOSCALERS.manifest(
        child_metadata(observed, phase.hpa, _variant_labels(observed, phase), annotations), spec=spec
    )
    return Child(HORIZONTAL_POD_AUTOSCALERS, manifest, SPEC_AND_METADATA)


def _scaled_object(
    observed: Observed,
    phase: Phase,
    scaling: ScalingSpec,
    settings: Object,
    triggers: list[Object],
    annotations: dict[str, str] | None = None,
) -> Child:
    """The variant autoscaler's annotations mark a ScaledObject as its own; without them nobody else decides."""
    require(observed, SCALED_OBJECTS, phase.scaled_object, reason=NO_KEDA)
    given = labels.labels(observed.name, labels.WORKLOAD)
    spec: Object = {
        "scaleTargetRef": _target(phase),
        "minReplicaCount": _least(scaling),
        "maxReplicaCount": scaling.max_replicas,
        **_settings(settings),
        "triggers": triggers,
    }
    metadata = child_metadata(
        observed, phase.scaled_object, _variant_labels(observed, phase) if annotations else given, annotations
    )
    manifest = SCALED_OBJECTS.manifest(metadata, spec=spec)
    return Child(SCALED_OBJECTS, manifest)


def _settings(given: Object) -> Object:
    """Returns what the service says of KEDA; older versions do not know how to fall back otherwise than by default."""
    settings: Object = {key: given[key] for key in _SETTINGS if given.get(key) is not None}
    fallback = settings.get("fallback") or {}
    if fallback.get("behavior") == "static":
        settings["fallback"] = {key: value for key, value in fallback.items() if key != "behavior"}
    return settings


def _target(phase: Phase) -> Object:
    resource, name = phase.workload
    return resource.typed({"name": name})


def _least(scaling: ScalingSpec) -> int:
    return 1 if scaling.min_replicas is None else scaling.min_replicas


def _variant_labels(observed: Observed, phase: Phase) -> dict[str, str]:
    return {**labels.labels(observed.name, labels.WORKLOAD), _ACCELERATOR: phase.labels.get(_ACCELERATOR) or "unknown"}


def _annotations(observed: Observed, variant: WVASpec) -> dict[str, str]:
    """Returns those by which the variant autoscaler finds what to decide about."""
    model = observed.spec.model
    found = {"llm-d.ai/managed": "true", "llm-d.ai/model-id": model.uri if model.name is None else model.name}
    if variant.variant_cost:
        found["llm-d.ai/variant-cost"] = variant.variant_cost
    return found


def _waking(observed: Observed) -> list[Object]:
    if not wakes_on_request(observed):
        return []
    return [waking_trigger(observed, _prometheus_query(observed, "", "", ""))]


def _prometheus_trigger(observed: Observed, phase: Phase) -> Object:
    # Prometheus renames the namespace that the metric comes with.
    where = f'variant_name="{phase.scaled_object}",exported_namespace="{observed.namespace}"'
    return _prometheus_query(observed, "wva-desired-replicas", f"{_METRIC}{{{where}}}", "1")


def _prometheus_query(observed: Observed, name: str, query: str, threshold: str) -> Object:
    prometheus = _prometheus(observed)
    metadata = {
        "serverAddress": prometheus.url,
        "query": query,
        "threshold": threshold,
        "unsafeSsl": "true" if prometheus.tls_insecure_skip_verify else "false",
    }
    trigger: Object = {"type": "prometheus", "name": name, "metadata": metadata}
    if prometheus.auth_modes:
        metadata["authModes"] = prometheus.auth_modes
    if prometheus.trigger_auth_name:
        reference = {"name": prometheus.trigger_auth_name, "kind": prometheus.trigger_auth_kind}
        trigger["authenticationRef"] = {key: value for key, value in reference.items() if value}
    return trigger


def _prometheus(observed: Observed) -> PrometheusConfig:
    """Returns where KEDA reads the metric; only an administrator can say that."""
    config = observed.config.variant_autoscaler
    if config is None or not config.prometheus.url:
        raise Refused(f"{VARIANT_AUTOSCALER}.prometheus.url is required in inferenceservice-config when using KEDA")
    prometheus = config.prometheus
    if bool(prometheus.trigger_auth_name) != bool(prometheus.auth_modes):
        keys = " and ".join(f"{VARIANT_AUTOSCALER}.prometheus.{key}" for key in ("authModes", "triggerAuthName"))
        raise Refused(f"{keys} must both be set or both be empty")
    return prometheus
