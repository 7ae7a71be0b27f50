"""Triggers of a ScaledObject as metrics of an HPA: cpu, memory, prometheus, requests of the HTTP add-on, and queues."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from isvc.kube.objects import Key, Object, dig, name_of
from isvc.kube.quantity import Quantity, QuantityError, is_whole_number
from isvc.local.autoscaling.replicas import CannotCompute

OWNER_LABEL: Final = "scaledobject.keda.sh/name"
_RESOURCES: Final = ("cpu", "memory")
_REQUESTS: Final = "external-push"
_QUEUE: Final = re.compile(
    r'\bllm_d_epp_flow_control_queue_size\{inference_pool="(?P<pool>[^"]+)",namespace="(?P<namespace>[^"]+)"\}'
)


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


class Requests(NamedTuple):
    """Requests that the HTTP add-on counts for an InterceptorRoute: those under way, or those of a second."""

    metric: str
    route: str
    is_rate: bool = False


class Queue(NamedTuple):
    """Requests that wait or run in an endpoint picker, whose metrics no Prometheus server has to read here."""

    metric: str
    pool: Key


def queue_triggers(scaled: Object) -> Iterator[Queue]:
    """Yields the queries for the length of an endpoint picker's queue."""
    for index, trigger in enumerate(dig(scaled, "spec", "triggers") or ()):
        if found := _asks_for_queue(trigger):
            yield Queue(f"s{index}-prometheus", Key(found["namespace"], found["pool"]))


def _asks_for_queue(trigger: Object) -> re.Match[str] | None:
    is_query = trigger.get("type") == "prometheus"
    return _QUEUE.search(str(dig(trigger, "metadata", "query") or "")) if is_query else None


def request_triggers(scaled: Object) -> Iterator[Requests]:
    """Yields both for each of the add-on's triggers; which of them has a target is up to the InterceptorRoute."""
    for index, trigger in enumerate(dig(scaled, "spec", "triggers") or ()):
        if trigger.get("type") == _REQUESTS:
            route = str(dig(trigger, "metadata", "interceptorRoute") or "")
            if not route:
                raise BadTrigger(f"the trigger {_REQUESTS} needs interceptorRoute")
            yield Requests(f"s{index}-concurrency", route)
            yield Requests(f"s{index}-rate", route, is_rate=True)


def request_metrics(scaled: Object, routes: Mapping[str, Object]) -> list[Object]:
    """Returns the metrics of an HPA that InterceptorRoutes, given by their names, have targets for."""
    found = []
    for requests in request_triggers(scaled):
        field = "requestRate" if requests.is_rate else "concurrency"
        target = dig(routes.get(requests.route) or {}, "spec", "scalingMetric", field, "targetValue")
        if target:
            selector = {"matchLabels": {OWNER_LABEL: name_of(scaled)}}
            metric = {"name": requests.metric, "selector": selector}
            external = {"metric": metric, "target": {"type": "AverageValue", "averageValue": str(target)}}
            found.append({"type": "External", "external": external})
    return found


def prometheus_triggers(scaled: Object) -> Iterator[Prometheus]:
    """Raises BadTrigger."""
    for index, trigger in enumerate(dig(scaled, "spec", "triggers") or ()):
        if trigger.get("type") == "prometheus" and not _asks_for_queue(trigger):
            yield _prometheus(index, trigger)


def hpa_metrics(scaled: Object, routes: Mapping[str, Object] = MappingProxyType({})) -> list[Object]:
    """Returns metrics in KEDA's order, by their type; `routes` are the InterceptorRoutes there. Raises BadTrigger."""
    metrics = [
        _hpa_metric(index, trigger, scaled)
        for index, trigger in enumerate(dig(scaled, "spec", "triggers") or ())
        if trigger.get("type") != _REQUESTS
    ]
    metrics += request_metrics(scaled, routes)
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
            raise BadTrigger(
                f"a trigger of type {other} needs KEDA itself: here are cpu, memory, prometheus and {_REQUESTS}"
            )


def _resource_metric(trigger: Object) -> Object:
    metadata = trigger.get("metadata") or {}
    kind, value = trigger.get("metricType") or metadata.get("type") or "", str(metadata.get("value", ""))
    if kind == "Utilization" and is_whole_number(value):
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
        number = float(metadata.get(key) or 0)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):  # `inf` and `nan` are numbers to Python, and to no HPA
        raise BadTrigger(f"the trigger prometheus has a {key} that is no number: {metadata[key]!r}")
    return number


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True
