"""Triggers of a ScaledObject: cpu, memory and prometheus, as metrics of a HorizontalPodAutoscaler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from isvc.kube.objects import Object, dig, name_of
from isvc.kube.quantity import Quantity, QuantityError
from isvc.local.autoscaling.replicas import CannotCompute

OWNER_LABEL: Final = "scaledobject.keda.sh/name"
_RESOURCES: Final = ("cpu", "memory")


class BadTrigger(CannotCompute):
    """A trigger that cannot be used here; the text goes into a condition."""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A query whose value is shared between replicas, each of which should have `threshold` of it."""

    metric: str
    server: str
    query: str
    threshold: float
    activation: float  # above it there is something to do at all
    namespace: str
    null_is_zero: bool
    target_type: str

    def hpa_metric(self, scaled: Object) -> Object:
        target = str(Quantity.parse(f"{self.threshold:.3f}").canonical())
        field = "averageValue" if self.target_type == "AverageValue" else "value"
        selector = {"matchLabels": {OWNER_LABEL: name_of(scaled)}}
        external = {
            "metric": {"name": self.metric, "selector": selector},
            "target": {"type": self.target_type, field: target},
        }
        return {"type": "External", "external": external}


def prometheus_triggers(scaled: Object) -> Iterator[Prometheus]:
    """Raises BadTrigger."""
    for index, trigger in enumerate(dig(scaled, "spec", "triggers") or ()):
        if trigger.get("type") == "prometheus":
            yield _prometheus(index, trigger)


def hpa_metrics(scaled: Object) -> list[Object]:
    """Returns metrics in KEDA's order, by their type. Raises BadTrigger."""
    metrics = [
        _hpa_metric(index, trigger, scaled) for index, trigger in enumerate(dig(scaled, "spec", "triggers") or ())
    ]
    if not metrics:
        raise BadTrigger("no triggers are defined")
    return sorted(metrics, key=lambda metric: str(metric["type"]))


def has_resources_only(scaled: Object) -> bool:
    """Returns whether it is always active: pods have to run for their CPU or memory to be measured."""
    return all(trigger.get("type") in _RESOURCES for trigger in dig(scaled, "spec", "triggers") or ())


def _hpa_metric(index: int, trigger: Object, scaled: Object) -> Object:
    match trigger.get("type"):
        case "cpu" | "memory":
            return _resource_metric(trigger)
        case "prometheus":
            return _prometheus(index, trigger).hpa_metric(scaled)
        case other:
            raise BadTrigger(f"a trigger of type {other} needs KEDA itself: here are cpu, memory and prometheus")


def _resource_metric(trigger: Object) -> Object:
    metadata = trigger.get("metadata") or {}
    kind, value = trigger.get("metricType") or metadata.get("type") or "", str(metadata.get("value", ""))
    if kind == "Utilization" and value.isdigit():
        target: Object = {"type": kind, "averageUtilization": int(value)}
    elif kind == "AverageValue" and _is_quantity(value):
        target = {"type": kind, "averageValue": value}
    else:
        allowed = "a Utilization, which is a whole number, or an AverageValue, which is a quantity"
        raise BadTrigger(f"the trigger {trigger['type']} needs {allowed}: it has {kind or 'no type'} {value!r}")
    source = {"name": trigger["type"], "target": target}
    if container := metadata.get("containerName"):
        return {"type": "ContainerResource", "containerResource": {**source, "container": container}}
    return {"type": "Resource", "resource": source}


def _prometheus(index: int, trigger: Object) -> Prometheus:
    metadata = trigger.get("metadata") or {}
    missing = [key for key in ("serverAddress", "query", "threshold") if not metadata.get(key)]
    if missing:
        raise BadTrigger(f"the trigger prometheus needs {', '.join(missing)}")
    if trigger.get("authenticationRef"):
        raise BadTrigger("the trigger prometheus asks for authentication, which needs KEDA itself")
    return Prometheus(
        metric=f"s{index}-prometheus",
        server=str(metadata["serverAddress"]).rstrip("/"),
        query=metadata["query"],
        threshold=_number(metadata, "threshold"),
        activation=_number(metadata, "activationThreshold"),
        namespace=metadata.get("namespace") or "",
        null_is_zero=str(metadata.get("ignoreNullValues", "true")).lower() == "true",
        target_type=trigger.get("metricType") or "AverageValue",
    )


def _number(metadata: Object, key: str) -> float:
    try:
        return float(metadata.get(key) or 0)
    except ValueError:
        raise BadTrigger(f"the trigger prometheus has a {key} that is no number: {metadata[key]!r}") from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True
