"""How many replicas one metric asks for: autoscaling/v2's calculation, with all its care for pods without figures.

The ratio of what is used to what is wanted, times the replicas that were measured. Pods that are starting or were not
measured count so that they damp a change, and never so that they turn it around. Amounts are thousandths.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from isvc.kube.objects import Object, dig, is_being_deleted, name_of
from isvc.kube.quantity import Quantity
from isvc.kube.timestamps import parse_timestamp
from isvc.local.controllers.pods import ready_condition

TOLERANCE: Final = 0.1
CPU_INITIALIZATION: Final = timedelta(minutes=5)
INITIAL_READINESS_DELAY: Final = timedelta(seconds=30)


class CannotCompute(Exception):
    """A metric that no number of replicas follows from; the text goes into a condition."""


class PodMetric(NamedTuple):
    value: int
    at: datetime
    window: timedelta


class Current(NamedTuple):
    """What is used now, per pod: an amount, and its share of what was requested, if there is a target for that."""

    value: int
    utilization: int | None = None


class Proposal(NamedTuple):
    replicas: int
    current: Current


class Target(Protocol):
    def measure(self, usage: Mapping[str, int]) -> tuple[float, Current]:
        """Returns the ratio of what is used to what is wanted, and what is used."""
        ...

    def full(self, pod: str) -> int:
        """Returns what a pod is taken to use that was not measured, where assuming less might scale down too far."""
        ...


@dataclass(frozen=True, slots=True)
class AverageValue:
    value: int

    def measure(self, usage: Mapping[str, int]) -> tuple[float, Current]:
        average = sum(usage.values()) // len(usage)
        return average / self.value, Current(average)

    def full(self, pod: str) -> int:
        return self.value


@dataclass(frozen=True, slots=True)
class AverageUtilization:
    percent: int
    requests: Mapping[str, int]

    def measure(self, usage: Mapping[str, int]) -> tuple[float, Current]:
        known = {pod: value for pod, value in usage.items() if pod in self.requests}
        requested = sum(self.requests[pod] for pod in known)
        if not requested:
            raise CannotCompute("no metrics returned matched known pods")
        used = sum(known.values())
        utilization = used * 100 // requested
        return utilization / self.percent, Current(used // len(known), utilization)

    def full(self, pod: str) -> int:
        return self.requests[pod] * max(100, self.percent) // 100


class _Groups(NamedTuple):
    ready: list[str]
    unready: list[str]
    missing: list[str]


def replicas_for_pods(
    replicas: int, target: Target, pods: Sequence[Object], metrics: Mapping[str, PodMetric], now: datetime, *, cpu: bool
) -> Proposal:
    """Proposes replicas for a metric of each pod. Raises CannotCompute."""
    if not pods:
        raise CannotCompute("no pods returned by selector while calculating replica count")
    groups = _group_pods(pods, metrics, now, cpu=cpu)
    usage = {pod: metrics[pod].value for pod in groups.ready}
    if not usage:
        raise CannotCompute("did not receive metrics for targeted pods (pods might be unready)")
    ratio, current = target.measure(usage)
    grows = ratio > 1
    if not groups.missing and not (groups.unready and grows):
        return Proposal(replicas if _is_close(ratio) else math.ceil(ratio * len(groups.ready)), current)
    if ratio != 1:
        usage |= {pod: 0 if grows else target.full(pod) for pod in groups.missing}
    if grows:
        usage |= dict.fromkeys(groups.unready, 0)
    damped, _ = target.measure(usage)
    if _is_close(damped) or (damped > 1) != grows:
        return Proposal(replicas, current)
    proposed = math.ceil(damped * len(usage))
    turned = proposed < replicas if grows else proposed > replicas
    return Proposal(replicas if turned else proposed, current)


def replicas_for_total(replicas: int, ready: int, value: int, target: int, *, per_pod: bool) -> Proposal:
    """Proposes replicas for a metric of the whole: its share for each pod, or the value itself, is the target."""
    if per_pod:
        share = math.ceil(value / replicas) if replicas else 0
        close = bool(replicas) and _is_close(value / (target * replicas))
        return Proposal(replicas if close else math.ceil(value / target), Current(share))
    ratio = value / target
    if not replicas:
        return Proposal(math.ceil(ratio), Current(value))
    return Proposal(replicas if _is_close(ratio) else math.ceil(ratio * ready), Current(value))


def requests_of(pods: Sequence[Object], resource: str, container: str = "") -> dict[str, int]:
    """Returns what each pod, or one container of each, requests of a resource. Raises CannotCompute."""
    return {name_of(pod): sum(_container_requests(pod, resource, container)) for pod in pods}


def _container_requests(pod: Object, resource: str, container: str) -> list[int]:
    sidecars = [each for each in dig(pod, "spec", "initContainers") or () if each.get("restartPolicy") == "Always"]
    wanted = [each for each in (*pod["spec"]["containers"], *sidecars) if container in ("", each["name"])]
    if not wanted:
        raise CannotCompute(f"container {container} not found in Pod {name_of(pod)}")
    found = []
    for each in wanted:
        request = dig(each, "resources", "requests", resource)
        if request is None:
            raise CannotCompute(f"missing request for {resource} in container {each['name']} of Pod {name_of(pod)}")
        found.append(Quantity.parse(request).milli())
    return found


def _is_close(ratio: float) -> bool:
    return abs(1 - ratio) <= TOLERANCE


def _group_pods(pods: Sequence[Object], metrics: Mapping[str, PodMetric], now: datetime, *, cpu: bool) -> _Groups:
    groups = _Groups([], [], [])
    for pod in pods:
        phase, name = dig(pod, "status", "phase"), name_of(pod)
        if is_being_deleted(pod) or phase == "Failed":
            continue
        if phase == "Pending" or (cpu and name in metrics and _is_starting(pod, metrics[name], now)):
            groups.unready.append(name)
        elif name not in metrics:
            groups.missing.append(name)
        else:
            groups.ready.append(name)
    return groups


def _is_starting(pod: Object, metric: PodMetric, now: datetime) -> bool:
    """Returns whether what a pod used may be what it takes to start."""
    condition, started = ready_condition(pod), dig(pod, "status", "startTime")
    if condition is None or not started:
        return True
    unready, since = condition.get("status") == "False", parse_timestamp(condition["lastTransitionTime"])
    began = parse_timestamp(started)
    if began <= now < began + CPU_INITIALIZATION:  # in the future if the clock was set back
        return unready or metric.at < since + metric.window
    return unready and began + INITIAL_READINESS_DELAY > since
