"""Validates the scaling of a component, by the rules of the autoscaler that it gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from isvc.api.annotations import AUTOSCALER_CLASS, AutoscalerClass
from isvc.api.inferenceservice.components import ComponentExtensionSpec, MetricsSpec, MetricTarget
from isvc.api.modes import DEPLOYMENT_MODE, DeploymentMode
from isvc.api.validation import Problem
from isvc.kube.quantity import Quantity, QuantityError

KNATIVE_CLASS = "autoscaling.knative.dev/class"
_KNATIVE_HPA = "hpa.autoscaling.knative.dev"
_PERCENT = "the target utilization percentage should be a [1-100] integer, got {}"


def autoscaler_class(annotations: Mapping[str, str]) -> Iterator[Problem]:
    chosen = annotations.get(AUTOSCALER_CLASS)
    if chosen is not None and chosen not in list(AutoscalerClass):
        allowed = ", ".join(AutoscalerClass)
        yield Problem(
            f"metadata.annotations[{AUTOSCALER_CLASS}]",
            f"{chosen!r} is not a supported autoscaler class type; choose one of {allowed}",
        )


def scaling(component: ComponentExtensionSpec, annotations: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Checks against the autoscaler that the annotations choose. Standard mode without a choice is not checked."""
    if annotations.get(DEPLOYMENT_MODE) == DeploymentMode.STANDARD:
        match annotations.get(AUTOSCALER_CLASS):
            case AutoscalerClass.HPA:
                yield from _hpa(component, path)
            case AutoscalerClass.KEDA:
                yield from _keda(component, path)
    elif annotations.get(KNATIVE_CLASS) == _KNATIVE_HPA:
        yield from _hpa(component, path)
    else:
        yield from _knative(component, path)


def _hpa(component: ComponentExtensionSpec, path: str) -> Iterator[Problem]:
    metric = component.scale_metric or "cpu"
    target = component.scale_target
    if metric not in ("cpu", "memory"):
        yield Problem(f"{path}.scaleMetric", f"{metric!r} is not a supported metric of an HPA; choose cpu or memory")
    elif target is not None and ((metric == "cpu" and target < 1) or target > 100):
        yield Problem(f"{path}.scaleTarget", _PERCENT.format(target))
    elif target is not None and metric == "memory" and target < 1:
        yield Problem(f"{path}.scaleTarget", f"must be at least 1, got {target}")
    for index, each in enumerate(component.auto_scaling.metrics if component.auto_scaling else ()):
        where = f"{path}.autoScaling.metrics[{index}]"
        if each.type != "Resource":
            yield Problem(f"{where}.type", f"invalid HPA metric source type {each.type!r}; valid is Resource")
        elif each.resource is None:
            yield Problem(f"{where}.resource", "is not set for resource metric source type")


def _keda(component: ComponentExtensionSpec, path: str) -> Iterator[Problem]:
    if component.scale_metric is not None:
        yield Problem(f"{path}.scaleMetric", "is not supported for KEDA; use autoScaling.metrics")
    for index, each in enumerate(component.auto_scaling.metrics if component.auto_scaling else ()):
        yield from _keda_metric(each, f"{path}.autoScaling.metrics[{index}]")


def _keda_metric(metric: MetricsSpec, path: str) -> Iterator[Problem]:
    match metric.type:
        case "Resource" if metric.resource is None:
            yield Problem(f"{path}.resource", "is not set for resource metric source type")
        case "Resource":
            assert metric.resource is not None
            yield from _keda_resource(metric.resource.name, metric.resource.target, f"{path}.resource")
        case "External" if metric.external is None:
            yield Problem(f"{path}.external", "is not set for external metric source type")
        case "External":
            assert metric.external is not None
            yield from _keda_query(metric.external.metric.query, metric.external.target, f"{path}.external")
        case "PodMetric" if metric.podmetric is None:
            yield Problem(f"{path}.podmetric", "is not set for pod metric source type")
        case "PodMetric":
            assert metric.podmetric is not None
            yield from _keda_query(metric.podmetric.metric.query, metric.podmetric.target, f"{path}.podmetric")
        case other:
            yield Problem(f"{path}.type", f"unknown KEDA metric type {other!r}; choose Resource, External or PodMetric")


def _keda_resource(name: str, target: MetricTarget, path: str) -> Iterator[Problem]:
    kinds = {"cpu": ("Utilization",), "memory": ("AverageValue", "Utilization")}.get(name)
    if kinds is None:
        yield Problem(f"{path}.name", f"resource type {name!r} is not supported; choose cpu or memory")
    elif target.type not in kinds:
        yield Problem(
            f"{path}.target.type", f"the {name} target value type should be {' or '.join(kinds)}, got {target.type!r}"
        )
    elif name == "memory" and target.type == "AverageValue" and _is_less(target.average_value, "1Mi"):
        yield Problem(
            f"{path}.target.averageValue",
            f"the memory target value should be greater than 1 MiB, got {target.average_value or 'nothing'}",
        )
    else:
        yield from _target(target, f"{path}.target")


def _keda_query(query: str, target: MetricTarget, path: str) -> Iterator[Problem]:
    if not query:
        yield Problem(f"{path}.metric.query", "the query should not be empty")
    if target.value is None:
        yield Problem(f"{path}.target.value", "the target threshold value should not be empty")
    yield from _target(target, f"{path}.target")


def _target(target: MetricTarget, path: str) -> Iterator[Problem]:
    match target.type:
        case "Utilization" if target.average_utilization is None:
            yield Problem(f"{path}.averageUtilization", "should be set when type is Utilization")
        case "Utilization" if not 1 <= (target.average_utilization or 0) <= 100:
            yield Problem(f"{path}.averageUtilization", _PERCENT.format(target.average_utilization))
        case "AverageValue" if target.average_value is None:
            yield Problem(f"{path}.averageValue", "should be set when type is AverageValue")
        case "Value" if target.value is None:
            yield Problem(f"{path}.value", "should be set when type is Value")


def _is_less(quantity: int | float | str | None, than: str) -> bool:
    try:
        return Quantity.parse(quantity or 0) < Quantity.parse(than)
    except QuantityError:
        return True


def _knative(component: ComponentExtensionSpec, path: str) -> Iterator[Problem]:
    if component.deployment_strategy is not None:
        yield Problem(
            f"{path}.deploymentStrategy", "customizing it is only supported for Standard deployment mode; remove it"
        )
    metric = component.scale_metric or "concurrency"
    if metric not in ("concurrency", "rps"):
        yield Problem(
            f"{path}.scaleMetric",
            f"{metric!r} is not a supported metric of Knative's autoscaler; choose concurrency or rps",
        )
    elif metric == "rps" and component.scale_target is not None and component.scale_target < 1:
        yield Problem(f"{path}.scaleTarget", f"the target for rps should be at least 1, got {component.scale_target}")


def extension(component: ComponentExtensionSpec, path: str) -> Iterator[Problem]:
    """Checks what holds for every component, whatever scales it."""
    if component.container_concurrency is not None and component.container_concurrency < 0:
        yield Problem(f"{path}.containerConcurrency", f"cannot be less than 0, got {component.container_concurrency}")
    least, most = component.min_replicas, component.max_replicas
    if least is not None and least < 0:
        yield Problem(f"{path}.minReplicas", f"cannot be less than 0, got {least}")
    if most < 0:
        yield Problem(f"{path}.maxReplicas", f"cannot be less than 0, got {most}")
    elif most and (1 if least is None else least) > most:
        yield Problem(
            f"{path}.minReplicas", f"cannot be greater than maxReplicas ({most}), got {1 if least is None else least}"
        )
    if (logger := component.logger) is not None:
        if logger.mode not in ("all", "request", "response"):
            yield Problem(
                f"{path}.logger.mode", f"invalid logger type {logger.mode!r}; choose all, request or response"
            )
        if (storage := logger.storage) is not None and None in (storage.path, storage.parameters, storage.key):
            yield Problem(
                f"{path}.logger.storage", "invalid logger storage configuration: path, parameters and key are required"
            )
