"""What changes a component's replicas: an HPA, a KEDA ScaledObject, or nobody (`external` and `none`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isvc.engine.plan import Child
from isvc.engine.policies import SPEC, SPEC_AND_METADATA
from isvc.kube.objects import Object, dig
from isvc.kube.resource import HORIZONTAL_POD_AUTOSCALERS
from isvc.serving import names
from isvc.serving.config import Config
from isvc.serving.refused import Refused
from isvc.serving.thirdparty import SCALED_OBJECTS
from isvc.serving.workload.component import Component

CPU_UTILIZATION: Final = 80


def autoscaler(component: Component, config: Config) -> Child | None:
    match component.autoscaler:
        case "hpa":
            return _hpa(component)
        case "keda":
            return _scaled_object(component, config)
        case "external" | "none":
            return None
        case other:
            raise Refused(f"unknown autoscaler class type: {other}")


def _metadata(component: Component) -> Object:
    return component.metadata({**component.labels, "app": names.app(component.name)})


# -- HorizontalPodAutoscaler ----------------------------------------------------------------------------------------


def _hpa(component: Component) -> Child:
    least = max(component.scale.get("minReplicas") or 1, 1)
    manifest: Object = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": _metadata(component),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": component.name},
            "minReplicas": least,
            "maxReplicas": max(component.scale.get("maxReplicas") or 0, least),
            "metrics": _hpa_metrics(component.scale),
            "behavior": {},  # present, so that the API server fills in Kubernetes' default behaviour
        },
    }
    if not manifest["spec"]["metrics"]:
        del manifest["spec"]["metrics"]
    return Child(HORIZONTAL_POD_AUTOSCALERS, manifest, policy=SPEC_AND_METADATA)


def _hpa_metrics(scale: Mapping[str, Any]) -> list[Object]:
    if (scaling := scale.get("autoScaling")) is not None:
        given = (metric.get("resource") for metric in scaling.get("metrics") or ())
        return [_resource_metric(r["name"], _target(r)) for r in given if r and r.get("name") in ("cpu", "memory")]
    metric, target = scale.get("scaleMetric") or "cpu", scale.get("scaleTarget")
    if metric == "cpu":
        return [_resource_metric("cpu", _utilization(CPU_UTILIZATION if target is None else target))]
    if metric == "memory" and target is not None:
        return [_resource_metric("memory", _utilization(target))]
    return []


def _target(resource: Object) -> Object:
    target = resource.get("target") or {}
    if resource["name"] == "cpu":
        given = target.get("averageUtilization")
        return _utilization(CPU_UTILIZATION if given is None else given)
    match target.get("type"):
        case "Utilization":
            return _utilization(target.get("averageUtilization"))
        case "AverageValue":
            return {key: target[key] for key in ("type", "averageValue") if target.get(key) is not None}
        case _:
            return {}  # an HPA knows no other target for a resource, and is refused


def _utilization(percent: int | None) -> Object:
    return {"type": "Utilization"} if percent is None else {"type": "Utilization", "averageUtilization": percent}


def _resource_metric(name: str, target: Object) -> Object:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


# -- KEDA -----------------------------------------------------------------------------------------------------------


def _scaled_object(component: Component, config: Config) -> Child:
    least = component.scale.get("minReplicas")
    least = 1 if least is None else least
    spec: Object = {
        "scaleTargetRef": {"name": component.name},
        "triggers": _triggers(component, config),
        "minReplicaCount": least,
        "maxReplicaCount": max(component.scale.get("maxReplicas") or 0, least),
    }
    if behavior := _behavior(component.scale, config):
        spec["advanced"] = {"horizontalPodAutoscalerConfig": {"behavior": behavior}}
    manifest: Object = {
        "apiVersion": SCALED_OBJECTS.api_version,
        "kind": SCALED_OBJECTS.kind,
        "metadata": _metadata(component),
        "spec": spec,
    }
    return Child(SCALED_OBJECTS, manifest, policy=SPEC)


def _behavior(scale: Mapping[str, Any], config: Config) -> Object:
    configured = {
        "scaleDown": config.autoscaler.scale_down_stabilization_window_seconds,
        "scaleUp": config.autoscaler.scale_up_stabilization_window_seconds,
    }
    windows = {}
    for direction, fallback in configured.items():
        window = dig(scale, "autoScaling", "behavior", direction, "stabilizationWindowSeconds")
        if window is None and fallback.lstrip("-").isdigit():
            window = int(fallback)
        if window is not None:
            windows[direction] = {"stabilizationWindowSeconds": window}
    return windows


def _triggers(component: Component, config: Config) -> list[Object]:
    built = []
    for metric in dig(component.scale, "autoScaling", "metrics") or ():
        match metric.get("type"):
            case "Resource":
                built.append(_resource_trigger(metric["resource"]))
            case "External":
                built.append(_external_trigger(metric["external"]))
            case "PodMetric":
                built.append(_pod_trigger(metric["podmetric"], component, config))
    # KEDA refuses a ScaledObject without triggers; the cpu trigger is what an HPA would do by default.
    return built or [_trigger("cpu", {"value": str(CPU_UTILIZATION)}, metricType="Utilization")]


def _resource_trigger(resource: Object) -> Object:
    target = resource.get("target") or {}
    kind = target.get("type", "")
    match kind:
        case "Utilization":
            default = CPU_UTILIZATION if resource.get("name") == "cpu" else 0
            value = target.get("averageUtilization", default)
        case "AverageValue":
            value = target.get("averageValue", 0)
        case "Value":
            value = target.get("value", 0)
        case _:
            value = 0
    return _trigger(resource["name"], {"value": str(value)}, metricType=kind)


def _external_trigger(external: Object) -> Object:
    metric = external.get("metric") or {}
    backend = metric.get("backend", "")
    metadata = {
        "serverAddress": metric.get("serverAddress", ""),
        "query": metric.get("query", ""),
        "threshold": str(dig(external, "target", "value") or 0),
    }
    if backend == "prometheus" and metric.get("namespace"):
        metadata["namespace"] = metric["namespace"]
    authentication = external.get("authenticationRef") or {}
    if authentication.get("authModes"):
        metadata["authModes"] = authentication["authModes"]
    reference = dig(authentication, "authenticationRef", "name")
    return _trigger(backend, metadata, authenticationRef={"name": reference} if reference else None)


def _pod_trigger(pod_metric: Object, component: Component, config: Config) -> Object:
    metric = pod_metric.get("metric") or {}
    if metric.get("backend") != "opentelemetry":
        raise Refused(f"podmetric backend {metric.get('backend')!r} is not supported: use opentelemetry")
    # The selectors keep the metrics of other deployments out.
    selector = f'{{namespace="{component.namespace}", deployment="{component.name}"}}'
    metadata = {
        "metricQuery": f"sum({metric.get('query', '')}{selector})",
        "targetValue": str(dig(pod_metric, "target", "value") or 0),
        "scalerAddress": metric.get("serverAddress") or config.opentelemetry_collector.metric_scaler_endpoint,
    }
    if metric.get("operationOverTime"):
        metadata["operationOverTime"] = metric["operationOverTime"]
    return _trigger("external", metadata)


def _trigger(kind: str, metadata: Mapping[str, str], **more: Any) -> Object:
    return {"type": kind, "metadata": dict(metadata), **{key: value for key, value in more.items() if value}}
