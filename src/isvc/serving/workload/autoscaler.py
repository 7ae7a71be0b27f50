"""What changes a component's replicas: an HPA, a KEDA ScaledObject, or nobody (`external` and `none`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isvc.api.inferenceservice.components import (
    AutoScalingSpec,
    ComponentExtensionSpec,
    ExternalMetricSource,
    MetricsSpec,
    PodMetricSource,
    ResourceMetricSource,
)
from isvc.engine.plan import Child
from isvc.engine.policies import SPEC, SPEC_AND_METADATA
from isvc.kube.objects import Object, dig
from isvc.kube.resource import HORIZONTAL_POD_AUTOSCALERS
from isvc.serving import names
from isvc.serving.config import Config
from isvc.serving.thirdparty import SCALED_OBJECTS
from isvc.serving.workload.component import Component, WorkloadRefused
from isvc.serving.workload.http_metric import HttpMetric

CPU_UTILIZATION: Final = 80


def autoscaler(component: Component, config: Config, metric: HttpMetric | None = None) -> Child | None:
    """Returns the autoscaler of a component, and of one whose requests an interceptor counts."""
    match component.autoscaler:
        case "hpa":
            return _hpa(component)
        case "keda":
            return _scaled_object(component, config, metric)
        case "external" | "none":
            return None
        case other:
            raise WorkloadRefused(f"unknown autoscaler class type: {other}")


def _metadata(component: Component) -> Object:
    return component.metadata({**component.labels, "app": names.app(component.name)})


# -- HorizontalPodAutoscaler ----------------------------------------------------------------------------------------


def _hpa(component: Component) -> Child:
    least = max(component.spec.min_replicas or 1, 1)
    manifest = HORIZONTAL_POD_AUTOSCALERS.manifest(
        _metadata(component),
        spec={
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": component.name},
            "minReplicas": least,
            "maxReplicas": max(component.spec.max_replicas, least),
            "metrics": _hpa_metrics(component.spec),
            "behavior": {},  # present, so that the API server fills in Kubernetes' default behaviour
        },
    )
    if not manifest["spec"]["metrics"]:
        del manifest["spec"]["metrics"]
    return Child(HORIZONTAL_POD_AUTOSCALERS, manifest, policy=SPEC_AND_METADATA)


def _hpa_metrics(spec: ComponentExtensionSpec) -> list[Object]:
    if spec.auto_scaling is not None:
        given = (metric.resource for metric in spec.auto_scaling.metrics)
        return [_resource_metric(r.name, _target(r)) for r in given if r and r.name in ("cpu", "memory")]
    metric, target = spec.scale_metric or "cpu", spec.scale_target
    if metric == "cpu":
        return [_resource_metric("cpu", _utilization(CPU_UTILIZATION if target is None else target))]
    if metric == "memory" and target is not None:
        return [_resource_metric("memory", _utilization(target))]
    return []


def _target(resource: ResourceMetricSource) -> Object:
    target = resource.target
    if resource.name == "cpu":
        return _utilization(CPU_UTILIZATION if target.average_utilization is None else target.average_utilization)
    match target.type:
        case "Utilization":
            return _utilization(target.average_utilization)
        case "AverageValue":
            given = {} if target.average_value is None else {"averageValue": target.average_value}
            return {"type": target.type, **given}
        case _:
            return {}  # an HPA knows no other target for a resource, and is refused


def _utilization(percent: int | None) -> Object:
    return {"type": "Utilization"} if percent is None else {"type": "Utilization", "averageUtilization": percent}


def _resource_metric(name: str, target: Object) -> Object:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


# -- KEDA -----------------------------------------------------------------------------------------------------------


def _scaled_object(component: Component, config: Config, metric: HttpMetric | None) -> Child:
    least = component.spec.least_replicas
    spec: Object = {
        "scaleTargetRef": {"name": component.name},
        "triggers": _triggers(component, config, metric),
        "minReplicaCount": least,
        "maxReplicaCount": max(component.spec.max_replicas, least),
    }
    if metric is not None:
        spec["maxReplicaCount"] = max(spec["maxReplicaCount"], 1)
        # A new component is not sent to sleep before it has been up for once.
        spec |= {"cooldownPeriod": metric.cooldown, "initialCooldownPeriod": metric.cooldown}
    if behavior := _behavior(component.spec.auto_scaling, config):
        spec["advanced"] = {"horizontalPodAutoscalerConfig": {"behavior": behavior}}
    manifest = SCALED_OBJECTS.manifest(_metadata(component), spec=spec)
    return Child(SCALED_OBJECTS, manifest, policy=SPEC)


def _behavior(scaling: AutoScalingSpec | None, config: Config) -> Object:
    configured = {
        "scaleDown": config.autoscaler.scale_down_stabilization_window_seconds,
        "scaleUp": config.autoscaler.scale_up_stabilization_window_seconds,
    }
    windows = {}
    for direction, fallback in configured.items():
        window = dig(scaling.behavior, direction, "stabilizationWindowSeconds") if scaling else None
        if window is None and fallback.lstrip("-").isdigit():
            window = int(fallback)
        if window is not None:
            windows[direction] = {"stabilizationWindowSeconds": window}
    return windows


def _triggers(component: Component, config: Config, requests: HttpMetric | None) -> list[Object]:
    scaling = component.spec.auto_scaling
    built = [_metric_trigger(metric, component, config) for metric in (scaling.metrics if scaling else ())]
    if requests is not None:
        address = {"scalerAddress": config.autoscaler.http_scaler, "interceptorRoute": component.name}
        built.insert(0, _trigger("external-push", address))
    # KEDA refuses a ScaledObject without triggers; the cpu trigger is what an HPA would do by default.
    default = _trigger("cpu", {"value": str(CPU_UTILIZATION)}, metricType="Utilization")
    return [trigger for trigger in built if trigger] or [default]


def _metric_trigger(metric: MetricsSpec, component: Component, config: Config) -> Object | None:
    match metric:
        case MetricsSpec(type="Resource", resource=ResourceMetricSource() as resource):
            return _resource_trigger(resource)
        case MetricsSpec(type="External", external=ExternalMetricSource() as external):
            return _external_trigger(external)
        case MetricsSpec(type="PodMetric", podmetric=PodMetricSource() as pod_metric):
            return _pod_trigger(pod_metric, component, config)
        case MetricsSpec(type="Resource" | "External" | "PodMetric"):
            raise WorkloadRefused(f"a metric of type {metric.type} needs the field {metric.type.lower()}")
        case _:
            return None


def _resource_trigger(resource: ResourceMetricSource) -> Object:
    target = resource.target
    default = CPU_UTILIZATION if resource.name == "cpu" else 0
    values: dict[str, Any] = {
        "Utilization": default if target.average_utilization is None else target.average_utilization,
        "AverageValue": target.average_value or 0,
        "Value": target.value or 0,
    }
    return _trigger(resource.name, {"value": str(values.get(target.type, 0))}, metricType=target.type)


def _external_trigger(external: ExternalMetricSource) -> Object:
    metric, authentication = external.metric, external.authentication_ref
    metadata = {
        "serverAddress": metric.server_address,
        "query": metric.query,
        "threshold": str(external.target.value or 0),
    }
    if metric.backend == "prometheus" and metric.namespace:
        metadata["namespace"] = metric.namespace
    if authentication and authentication.auth_modes:
        metadata["authModes"] = authentication.auth_modes
    reference = authentication.authentication_ref.name if authentication else ""
    return _trigger(metric.backend, metadata, authenticationRef={"name": reference} if reference else None)


def _pod_trigger(pod_metric: PodMetricSource, component: Component, config: Config) -> Object:
    metric = pod_metric.metric
    if metric.backend != "opentelemetry":
        raise WorkloadRefused(f"podmetric backend {metric.backend!r} is not supported: use opentelemetry")
    # The selectors keep the metrics of other deployments out.
    selector = f'{{namespace="{component.namespace}", deployment="{component.name}"}}'
    metadata = {
        "metricQuery": f"sum({metric.query}{selector})",
        "targetValue": str(pod_metric.target.value or 0),
        "scalerAddress": metric.server_address or config.opentelemetry_collector.metric_scaler_endpoint,
    }
    if metric.operation_over_time:
        metadata["operationOverTime"] = metric.operation_over_time
    return _trigger("external", metadata)


def _trigger(kind: str, metadata: Mapping[str, str], **more: Any) -> Object:
    return {"type": kind, "metadata": dict(metadata), **{key: value for key, value in more.items() if value}}
