"""The metrics of a HorizontalPodAutoscaler: read from metrics.k8s.io or an external source, and what each asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from isvc.kube.durations import seconds
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, dig, name_of
from isvc.kube.quantity import Notation, Quantity
from isvc.kube.resource import POD_METRICS
from isvc.kube.timestamps import parse_timestamp
from isvc.local.autoscaling.replicas import (
    AverageUtilization,
    AverageValue,
    CannotCompute,
    Current,
    PodMetric,
    Proposal,
    replicas_for_pods,
    replicas_for_total,
    requests_of,
)
from isvc.local.controllers.pods import is_ready
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock

ExternalMetrics = Callable[[str, str, Mapping[str, str]], Awaitable[float]]
"""The value of a metric by namespace, name and labels. Raises CannotCompute."""


_FRESH: Final = 5.0  # seconds
_FIELDS: Final = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "External": "external",
    "Pods": "pods",
    "Object": "object",
}


class Scaled(NamedTuple):
    """What is scaled: its replicas as asked for, and its pods as they are."""

    namespace: str
    replicas: int
    pods: Sequence[Object]


class Asked(NamedTuple):
    """The replicas that a metric asks for, its name for people, and its entry in `status.currentMetrics`."""

    replicas: int
    name: str
    status: Object


class PodMetrics:
    """What pods use, by name: read once for all autoscalers of a namespace that ask within a few seconds."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._read: dict[str, tuple[float, asyncio.Task[dict[str, Object]]]] = {}

    async def of(self, namespace: str) -> Mapping[str, Object]:
        now = self._clock.monotonic()
        self._read = {each: read for each, read in self._read.items() if now - read[0] < _FRESH}
        if namespace not in self._read:
            self._read[namespace] = now, asyncio.create_task(self._list(namespace))
        return await asyncio.shield(self._read[namespace][1])

    async def _list(self, namespace: str) -> dict[str, Object]:
        return {name_of(item): item for item in (await self._client.list(POD_METRICS, namespace)).items}


@dataclass(frozen=True, slots=True)
class MetricReader:
    pods: PodMetrics
    external: ExternalMetrics

    async def ask(self, metric: Object, scaled: Scaled, now: datetime) -> Asked:
        """Raises CannotCompute."""
        kind = metric["type"]
        source: Object = metric[_FIELDS[kind]]
        match kind:
            case "Resource" | "ContainerResource":
                return await self._resource(metric, source, scaled, now)
            case "External":
                return await self._external(metric, source, scaled)
        raise CannotCompute(f"unable to get metric {dig(source, 'metric', 'name')}: no server of custom metrics runs")

    async def _resource(self, metric: Object, source: Object, scaled: Scaled, now: datetime) -> Asked:
        resource, container, wanted = source["name"], source.get("container", ""), source["target"]
        metrics = await self._pod_metrics(scaled, resource, container)
        target: AverageValue | AverageUtilization
        if wanted.get("averageValue") is not None:
            target = AverageValue(Quantity.parse(wanted["averageValue"]).milli())
            name = f"{resource} resource"
        else:
            requests = requests_of(scaled.pods, resource, container)
            target = AverageUtilization(wanted["averageUtilization"], requests)
            name = f"{resource} {'container ' if container else ''}resource utilization (percentage of request)"
        proposal = replicas_for_pods(scaled.replicas, target, scaled.pods, metrics, now, cpu=resource == "cpu")
        named: Object = {key: source[key] for key in ("name", "container") if key in source}
        return _request(metric, name, proposal, {**named, "current": _resource_status(resource, proposal.current)})

    async def _pod_metrics(self, scaled: Scaled, resource: str, container: str) -> dict[str, PodMetric]:
        try:
            measured = await self.pods.of(scaled.namespace)
        except ApiError as error:
            raise CannotCompute(f"unable to get metrics for resource {resource}: {error.message}") from None
        names = [name for pod in scaled.pods if (name := name_of(pod)) in measured]
        metrics = {name: pod_metric(measured[name], resource, container) for name in names}
        if not metrics:
            raise CannotCompute(
                f"unable to get metrics for resource {resource}: no metrics returned from resource metrics API"
            )
        return {name: metric for name, metric in metrics.items() if metric is not None}

    async def _external(self, metric: Object, source: Object, scaled: Scaled) -> Asked:
        name, target = source["metric"]["name"], source["target"]
        labels = dig(source, "metric", "selector", "matchLabels") or {}
        value = round(await self.external(scaled.namespace, name, labels) * 1000)
        per_pod = target.get("averageValue") is not None
        wanted = Quantity.parse(target["averageValue"] if per_pod else target["value"]).milli()
        ready = sum(is_ready(pod) for pod in scaled.pods)
        proposal = replicas_for_total(scaled.replicas, ready, value, wanted, per_pod=per_pod)
        current = {"averageValue" if per_pod else "value": _milli(proposal.current.value)}
        return _request(metric, f"external metric {name}", proposal, {"metric": source["metric"], "current": current})


def pod_metric(metrics: Object, resource: str, container: str) -> PodMetric | None:
    """Returns what one container uses, or all of a pod; None where one of them was not measured."""
    chosen = [each for each in metrics["containers"] if container in ("", each["name"])]
    amounts = [dig(each, "usage", resource) for each in chosen]
    if not amounts or None in amounts:
        return None
    total = sum(Quantity.parse(amount).milli() for amount in amounts)
    return PodMetric(total, parse_timestamp(metrics["timestamp"]), timedelta(seconds=seconds(metrics["window"]) or 0))


def _request(metric: Object, name: str, proposal: Proposal, status: Object) -> Asked:
    return Asked(proposal.replicas, name, {"type": metric["type"], _FIELDS[metric["type"]]: status})


def _resource_status(resource: str, current: Current) -> Object:
    """Returns CPU in thousandths of a core, memory in bytes."""
    amount = _milli(current.value) if resource == "cpu" else str(Quantity(current.value * 10**6, Notation.BINARY))
    share = {} if current.utilization is None else {"averageUtilization": current.utilization}
    return {**share, "averageValue": amount}


def settle_status(before: Sequence[Object], after: Sequence[Object]) -> list[Object]:
    """Returns the new entries of `status.currentMetrics`, or the old ones where those say nearly the same.

    What an idle pod uses differs by a millicore at every look, which is not worth a write.
    """
    if len(before) != len(after):
        return list(after)
    return [old if _says_the_same(old, new) else new for old, new in zip(before, after, strict=True)]


def _says_the_same(old: Object, new: Object) -> bool:
    field = _FIELDS[new["type"]]
    was, now = (dig(each, field, "current") or {} for each in (old, new))
    if {**(old.get(field) or {}), "current": None} != {**new[field], "current": None} or was.keys() != now.keys():
        return False
    if "averageUtilization" in now:
        return bool(was["averageUtilization"] == now["averageUtilization"])
    amounts = [float(Quantity.parse(each.get("averageValue") or each.get("value") or 0)) for each in (was, now)]
    return abs(amounts[0] - amounts[1]) <= 0.05 * abs(amounts[0])


def _milli(value: int) -> str:
    return str(Quantity(value * 10**6))
