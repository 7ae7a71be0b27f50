"""ScaledObjects: the HorizontalPodAutoscaler that scales their target, and whether the target runs at all.

Triggers are asked every `pollingInterval`, and when a cooldown is over. While none is active for the length of
`cooldownPeriod`, which of requests is counted from the last one, a target that may have no replicas has
none. Names, conditions and events are those of KEDA.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from isvc.kube.conditions import FALSE, TRUE, UNKNOWN
from isvc.kube.errors import NotFound
from isvc.kube.objects import Key, Object, annotations_of, creation_time_of, dig, labels_of, name_of, namespace_of
from isvc.kube.pods import replicas_of
from isvc.kube.quantity import is_whole_number
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS
from isvc.kube.timestamps import parse_timestamp, timestamp
from isvc.local.autoscaling.horizontal import TARGETS
from isvc.local.autoscaling.replicas import CannotCompute
from isvc.local.controllers.children import NotOwned, ensure
from isvc.local.keda.flow_control import FlowControl
from isvc.local.keda.interceptor import Interceptor
from isvc.local.keda.prometheus import PrometheusClient
from isvc.local.keda.triggers import (
    OWNER_LABEL,
    BadTrigger,
    has_resources_only,
    hpa_metrics,
    prometheus_triggers,
    queue_triggers,
    request_triggers,
)
from isvc.serving.thirdparty import INTERCEPTOR_ROUTES, SCALED_OBJECTS
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Result, Watch, changed
from isvc.toolkit.reads import Read

PAUSED: Final = "autoscaling.keda.sh/paused"
PAUSED_REPLICAS: Final = "autoscaling.keda.sh/paused-replicas"
POLLING_SECONDS: Final = 30
COOLDOWN_SECONDS: Final = 300
MOST_REPLICAS: Final = 100
_SHORTEST: Final = 1.0  # seconds between two looks at one that is active


def controller(context: Context, scaled: ScaledObjects) -> Controller:
    reads = [Read(resource) for resource in TARGETS.values()]
    watches = [
        Watch(SCALED_OBJECTS, when=changed(_wishes)),
        Watch(INTERCEPTOR_ROUTES, when=changed(_wishes)),  # of the same name
        Watch(HORIZONTAL_POD_AUTOSCALERS, to=OwnerOf(SCALED_OBJECTS), when=lambda before, after: after is None),
    ]
    made = Controller("scaledobject", scaled.reconcile, watches, workers=4, reads=reads, clock=context.clock)
    scaled.interceptor.wake = lambda route: made.queue.add(route)  # a ScaledObject of ours has its name
    scaled.flow_control.wake = lambda key: made.queue.add(key)
    return made


def _wishes(obj: Object) -> tuple[object, ...]:
    """Returns what somebody asks for; the status is written at every poll."""
    return obj.get("spec"), annotations_of(obj)


@dataclass(slots=True)
class _Report:
    """The status of one ScaledObject, as it is being made."""

    fields: Object
    conditions: dict[str, Object] = field(default_factory=dict)
    cooling: float = math.inf  # seconds until its last replica may go

    def mark(self, kind: str, status: str, reason: str, message: str) -> None:
        self.conditions[kind] = {"type": kind, "status": status, "reason": reason, "message": message}

    def result(self) -> Object:
        return {**self.fields, "conditions": list(self.conditions.values())}


class ScaledObjects:
    def __init__(
        self, context: Context, prometheus: PrometheusClient, interceptor: Interceptor, flow_control: FlowControl
    ) -> None:
        self._context = context
        self.interceptor = interceptor
        self.flow_control = flow_control
        self._prometheus = prometheus

    async def external_metric(self, namespace: str, name: str, labels: Mapping[str, str]) -> float:
        """Returns what an HPA of ours asks for: the value of a trigger of the ScaledObject that its labels name."""
        scaled = self._context.cache.get(SCALED_OBJECTS, labels.get(OWNER_LABEL, ""), namespace)
        if scaled is None:
            raise CannotCompute(f"unable to get external metric {namespace}/{name}: no ScaledObject has it")
        for requests in request_triggers(scaled):
            if requests.metric == name:
                return self.interceptor.value(namespace, requests)
        for queue in queue_triggers(scaled):
            if queue.metric == name:
                return self.flow_control.value(queue.pool)
        for trigger in prometheus_triggers(scaled):
            if trigger.metric == name:
                return await self._prometheus.value(trigger)
        raise CannotCompute(f"unable to get external metric {namespace}/{name}: no trigger has it")

    async def reconcile(self, key: Key) -> Result | None:
        scaled = self._context.find(SCALED_OBJECTS, key)
        if scaled is None:
            return None
        before = scaled.get("status") or {}
        report = _Report({name: before[name] for name in ("lastActiveTime", "originalReplicaCount") if name in before})
        report.mark("Ready", TRUE, "ScaledObjectReady", "ScaledObject is defined correctly and is ready for scaling")
        report.mark("Active", UNKNOWN, "UnknownState", "Active state is not known")
        report.mark("Fallback", FALSE, "NoFallbackFound", "No fallbacks are active on this scaled object")
        report.mark("Paused", FALSE, "ScaledObjectUnpaused", "pause annotation is not set")
        try:
            await self._scale(scaled, report)
        except (BadTrigger, NotOwned) as error:
            report.mark("Ready", FALSE, "ScaledObjectCheckFailed", str(error))
            self._context.recorder.event(scaled, "Warning", "ScaledObjectCheckFailed", str(error))
        await self._context.write_status(SCALED_OBJECTS, scaled, report.result())
        polling = float(dig(scaled, "spec", "pollingInterval") or POLLING_SECONDS)
        return Result(requeue_after=min(polling, report.cooling))

    async def _scale(self, scaled: Object, report: _Report) -> None:
        reference = dig(scaled, "spec", "scaleTargetRef") or {}
        resource = TARGETS.get(reference.get("kind") or DEPLOYMENTS.kind)
        if resource is None:
            raise BadTrigger(f"nobody here scales a {reference.get('kind')}")
        target = self._context.cache.get(resource, reference.get("name", ""), namespace_of(scaled))
        if target is None:
            raise BadTrigger(f'{resource} "{reference.get("name", "")}" not found')
        report.fields["scaleTargetKind"] = f"{resource.api_version}.{resource.kind}"
        report.fields.setdefault("originalReplicaCount", replicas_of(target))
        if (paused := paused_at(scaled)) is not None:
            await self._pause(scaled, target, paused, report)
            return
        routes = {name_of(each): each for each in self._context.cache.list(INTERCEPTOR_ROUTES, namespace_of(scaled))}
        metrics = hpa_metrics(scaled, routes)
        names = {kind: [name for metric in metrics if (name := dig(metric, *path))] for kind, path in _NAMES.items()}
        report.fields |= {kind: found for kind, found in names.items() if found}
        wanted, owner = hpa_of(scaled, metrics), SCALED_OBJECTS.typed(scaled)
        scaler = await ensure(self._context, HORIZONTAL_POD_AUTOSCALERS, wanted, owner)
        report.fields["hpaName"] = name_of(scaler)
        active, failures = await self._activity(scaled)
        await self._follow(scaled, target, report, active=active, failures=failures)

    async def _activity(self, scaled: Object) -> tuple[bool, list[str]]:
        """Returns whether a trigger is active, and what keeps others from being asked."""
        if has_resources_only(scaled):
            return True, []
        active, failures = any(self.flow_control.value(queue.pool) > 0 for queue in queue_triggers(scaled)), []
        for requests in request_triggers(scaled):
            try:
                active |= not requests.is_rate and self.interceptor.value(namespace_of(scaled), requests) > 0
            except CannotCompute as error:
                failures.append(str(error))
        for trigger in prometheus_triggers(scaled):
            try:
                active |= await self._prometheus.value(trigger) > trigger.activation
            except CannotCompute as error:
                failures.append(str(error))
                self._context.recorder.event(scaled, "Warning", "KEDAScalerFailed", str(error))
        return active, failures

    def _idle_seconds(self, scaled: Object) -> float | None:
        """Returns how long ago a request was last under way; None if none ever was, as far as is known here."""
        idle = [self.flow_control.idle_seconds(queue.pool) for queue in queue_triggers(scaled)]
        with suppress(CannotCompute):
            idle += [self.interceptor.idle_seconds(namespace_of(scaled), each) for each in request_triggers(scaled)]
        return min((seconds for seconds in idle if seconds is not None), default=None)

    async def _follow(
        self, scaled: Object, target: Object, report: _Report, *, active: bool, failures: list[str]
    ) -> None:
        spec, now = scaled["spec"], self._context.clock.now()
        least, idle, current = int(spec.get("minReplicaCount") or 0), spec.get("idleReplicaCount"), replicas_of(target)
        if active:
            report.mark("Active", TRUE, "ScalerActive", "Scaling is performed because triggers are active")
            report.fields["lastActiveTime"] = timestamp(now)
            report.cooling = max(_SHORTEST, _cooldown(scaled))
            if failures:
                report.mark("Ready", UNKNOWN, "PartialTriggerError", f"Some triggers do not work: {failures[0]}")
            if current == 0 or (idle is not None and current < least):
                await self._resize(scaled, target, max(1, least), "KEDAScaleTargetActivated")
            return
        report.mark("Active", FALSE, "ScalerNotActive", "Scaling is not performed because triggers are not active")
        lowest = int(idle) if idle is not None else least
        if failures:
            report.mark("Ready", FALSE, "TriggerError", f"Triggers do not work: {failures[0]}")
        elif current > lowest and (idle is not None or least == 0):
            cooling = self._cooling_seconds(scaled, report)
            if cooling > 0:
                report.cooling = cooling
                words = "Scaler cooling down because triggers are not active"
                report.mark("Active", FALSE, "ScalerCooldown", words)
            else:
                await self._resize(scaled, target, lowest, "KEDAScaleTargetDeactivated")
        elif idle is None and current < least:
            await self._resize(scaled, target, least, "KEDAScaleTargetActivated")

    def _cooling_seconds(self, scaled: Object, report: _Report) -> float:
        """Returns for how long the last replica has to stay, and notes since when nothing was asked of it."""
        now = self._context.clock.now()
        last = report.fields.get("lastActiveTime")
        if last and parse_timestamp(last) > now:  # the clock was set back
            last = report.fields["lastActiveTime"] = timestamp(now)
        if (idle := self._idle_seconds(scaled)) is not None:
            last = max(last or "", timestamp(now - timedelta(seconds=idle)))
            report.fields["lastActiveTime"] = last
        cooldown = _cooldown(scaled)
        if last is None:
            last, cooldown = creation_time_of(scaled), float(dig(scaled, "spec", "initialCooldownPeriod") or 0)
        return (parse_timestamp(last) - now).total_seconds() + cooldown if last else 0.0

    async def _pause(self, scaled: Object, target: Object, replicas: int, report: _Report) -> None:
        """Stops scaling, with as many replicas as the annotation says, if it does."""
        report.mark("Paused", TRUE, "ScaledObjectPaused", "ScaledObject is paused")
        with suppress(NotFound):  # first, for it would take the replicas back
            await self._context.client.delete(HORIZONTAL_POD_AUTOSCALERS, hpa_name(scaled), namespace_of(scaled))
        if replicas >= 0 and replicas_of(target) != replicas:
            await self._resize(scaled, target, replicas, "ScaledObjectPaused")

    async def _resize(self, scaled: Object, target: Object, replicas: int, reason: str) -> None:
        resource = TARGETS[dig(scaled, "spec", "scaleTargetRef", "kind") or DEPLOYMENTS.kind]
        before = replicas_of(target)
        await self._context.patch(resource, target, {"spec": {"replicas": replicas}})
        whose = f"{resource.kind} {namespace_of(target)}/{name_of(target)}"
        self._context.recorder.event(scaled, "Normal", reason, f"Scaled {whose} from {before} to {replicas}")


_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "externalMetricNames": ("external", "metric", "name"),
    "resourceMetricNames": ("resource", "name"),
}


def _cooldown(scaled: Object) -> float:
    return float(scaled["spec"].get("cooldownPeriod", COOLDOWN_SECONDS))


def paused_at(scaled: Object) -> int | None:
    """Returns the replicas to pause at, -1 for those that there are; None while it is not paused."""
    annotations = annotations_of(scaled)
    wanted = annotations.get(PAUSED_REPLICAS)
    if wanted is not None:
        if not is_whole_number(wanted):
            raise BadTrigger(f"the annotation {PAUSED_REPLICAS} has no whole number: {wanted!r}")
        return int(wanted)
    paused = annotations.get(PAUSED)
    return -1 if paused is not None and paused.lower() not in ("false", "0", "f") else None


def hpa_name(scaled: Object) -> str:
    name = dig(scaled, "spec", "advanced", "horizontalPodAutoscalerConfig", "name")
    return str(name or f"keda-hpa-{name_of(scaled)}")


def hpa_of(scaled: Object, metrics: list[Object]) -> Object:
    spec, name = scaled["spec"], hpa_name(scaled)
    reference = spec.get("scaleTargetRef") or {}
    target = {
        "apiVersion": reference.get("apiVersion") or DEPLOYMENTS.api_version,
        "kind": reference.get("kind") or DEPLOYMENTS.kind,
        "name": reference.get("name", ""),
    }
    labels = {
        "app.kubernetes.io/managed-by": "keda-operator",
        "app.kubernetes.io/name": name[:63].rstrip("-."),
        "app.kubernetes.io/part-of": name_of(scaled),
        **labels_of(scaled),
    }
    wanted: Object = {
        "scaleTargetRef": target,
        "minReplicas": max(1, int(spec.get("minReplicaCount") or 0)),
        "maxReplicas": int(spec.get("maxReplicaCount") or MOST_REPLICAS),
        "metrics": metrics,
    }
    if behavior := dig(spec, "advanced", "horizontalPodAutoscalerConfig", "behavior"):
        wanted["behavior"] = behavior
    return {"metadata": {"name": name, "namespace": namespace_of(scaled), "labels": labels}, "spec": wanted}
