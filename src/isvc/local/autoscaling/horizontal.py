"""HorizontalPodAutoscalers: every fifteen seconds the target gets as many replicas as its metrics ask for.

Names of conditions, reasons and events are those of kube-controller-manager. A target with no replicas was stopped by
somebody, and is left alone. Where there is one number of replicas to choose from, a look only renews the figures in the
status: it is seldom, and where such autoscalers are many it waits for a change of the target.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from isvc.kube.conditions import FALSE, TRUE, conditions_of, find, stamp
from isvc.kube.errors import ApiError, NotFound
from isvc.kube.objects import Key, Object, dig, generation_of, namespace_of
from isvc.kube.pods import replicas_of
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, PODS, REPLICA_SETS, STATEFUL_SETS, Resource
from isvc.kube.timestamps import parse_timestamp
from isvc.local.autoscaling.behavior import Bounds, History, Verdict, decide
from isvc.local.autoscaling.metrics import Asked, ExternalMetrics, MetricReader, PodMetrics, Scaled, settle_status
from isvc.local.autoscaling.replicas import CannotCompute
from isvc.local.controllers.pods import is_ready
from isvc.local.controllers.selection import LABELS, select_pods
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Result, Watch, changed, spec_changed
from isvc.toolkit.reads import Read

SYNC_SECONDS: Final = 15.0
SYNC_SECONDS_WITHOUT_CHOICE: Final = 300.0  # most services have one replica, whatever they use
_MOST_IN_A_PERIOD: Final = 100  # of those: a look at a thousand takes a fifth of a second of CPU
_FIGURES_COME_WITHIN: Final = timedelta(minutes=1)
TARGETS: Final = {resource.kind: resource for resource in (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS)}
_TARGET: Final = "target"
_FAILED: Final = "the HPA was unable to compute the replica count"


def controller(context: Context, external: ExternalMetrics) -> Controller:
    def scalers_of(deployment: Object) -> Iterable[Key]:
        return context.cache.keys(HORIZONTAL_POD_AUTOSCALERS, _TARGET, str(Key.of(deployment)))

    watches = [
        Watch(HORIZONTAL_POD_AUTOSCALERS, when=spec_changed),
        Watch(DEPLOYMENTS, to=scalers_of, when=changed(replicas_of)),
        Watch(DEPLOYMENTS, to=scalers_of, when=changed(_ready_replicas), delay=SYNC_SECONDS),  # then they are measured
    ]
    scaled = Read(HORIZONTAL_POD_AUTOSCALERS, indexers={_TARGET: _by_target})
    reads = [scaled, Read(PODS, indexers=LABELS), *(Read(resource) for resource in TARGETS.values())]
    scalers = HorizontalAutoscalers(context, MetricReader(PodMetrics(context.client, context.clock), external))
    return Controller("horizontalpodautoscaler", scalers.reconcile, watches, reads=reads, clock=context.clock)


def _by_target(scaler: Object) -> Iterable[str]:
    target = dig(scaler, "spec", "scaleTargetRef") or {}
    if target.get("kind") == DEPLOYMENTS.kind:
        yield str(Key(namespace_of(scaler), target.get("name", "")))


def _ready_replicas(deployment: Object) -> int:
    return dig(deployment, "status", "readyReplicas") or 0


@dataclass(slots=True)
class _Status:
    """The status of one autoscaler, as it is being made."""

    conditions: list[Object]
    now: str
    fields: Object = field(default_factory=dict)

    @classmethod
    def of(cls, scaler: Object, now: str) -> _Status:
        return cls(conditions_of(scaler), now)

    def mark(self, kind: str, status: str, reason: str, message: str) -> None:
        old, new = find(self.conditions, kind), {"type": kind, "status": status, "reason": reason, "message": message}
        new = stamp(new, self.conditions, self.now)
        if old is None:
            self.conditions.append(new)
        else:
            self.conditions[self.conditions.index(old)] = new

    def result(self) -> Object:
        return {**self.fields, "conditions": self.conditions}


def period_without_choice(active: Object, now: datetime, number: int = 1) -> float | None:
    """Returns the seconds between two looks at an autoscaler that can choose nothing, by its condition ScalingActive.

    It is looked at often while the first figures may still come; where there were none for a minute, none will until
    the target changes. `number` is how many autoscalers there are whose targets were found; None is to wait for a
    change, too.
    """
    since = active.get("lastTransitionTime")
    is_late = bool(since) and now - parse_timestamp(str(since)) > _FIGURES_COME_WITHIN
    if not is_late and active.get("status") != TRUE:
        return SYNC_SECONDS
    return SYNC_SECONDS_WITHOUT_CHOICE if number <= _MOST_IN_A_PERIOD else None


class _Decision(NamedTuple):
    replicas: int
    reason: str = ""


class HorizontalAutoscalers:
    def __init__(self, context: Context, metrics: MetricReader) -> None:
        self._context = context
        self._metrics = metrics
        self._histories: dict[Key, History] = {}
        self._new: set[Key] = set()

    async def reconcile(self, key: Key) -> Result | None:
        scaler = self._context.find(HORIZONTAL_POD_AUTOSCALERS, key)
        if scaler is None:
            self._histories.pop(key, None)
            self._new.discard(key)
            return None
        before = scaler.get("status") or {}
        if not before.get("conditions") and self._has_no_choice(scaler) and key not in self._new:
            self._new.add(key)  # its pods start first: they have been measured when it is looked at again
            return Result(requeue_after=SYNC_SECONDS)
        self._new.discard(key)
        status = _Status.of(scaler, self._context.timestamp())
        if generation := generation_of(scaler):
            status.fields["observedGeneration"] = generation
        if last := before.get("lastScaleTime"):
            status.fields["lastScaleTime"] = last
        status.fields |= {name: before.get(name, 0) for name in ("currentReplicas", "desiredReplicas")}
        await self._scale(key, scaler, status)
        if "currentMetrics" in status.fields:
            status.fields["currentMetrics"] = settle_status(
                before.get("currentMetrics") or [], status.fields["currentMetrics"]
            )
        await self._context.write_status(HORIZONTAL_POD_AUTOSCALERS, scaler, status.result())
        return Result(requeue_after=self._pause(scaler, status))

    def _has_no_choice(self, scaler: Object) -> bool:
        """Returns whether its target has the number of replicas that it always has."""
        bounds, target = _bounds(scaler["spec"]), self._target(scaler)
        return bounds.least == bounds.most and target is not None and replicas_of(target) == bounds.most

    def _pause(self, scaler: Object, status: _Status) -> float | None:
        """Returns when to look again: at the same moment as other autoscalers, for which figures are read once."""
        bounds, active = _bounds(scaler["spec"]), find(status.conditions, "ScalingActive") or {}
        clock, number = self._context.clock, len(self._histories)
        period = SYNC_SECONDS if bounds.least != bounds.most else period_without_choice(active, clock.now(), number)
        return period and period - clock.monotonic() % period

    def _target(self, scaler: Object) -> Object | None:
        reference = dig(scaler, "spec", "scaleTargetRef") or {}
        resource = TARGETS.get(reference.get("kind", ""))
        return self._context.cache.get(resource, reference.get("name", ""), namespace_of(scaler)) if resource else None

    async def _scale(self, key: Key, scaler: Object, status: _Status) -> None:
        kind, name = (dig(scaler, "spec", "scaleTargetRef", each) or "" for each in ("kind", "name"))
        resource, target = TARGETS.get(kind), self._target(scaler)
        if resource is None or target is None:
            why = f'{resource} "{name}" not found' if resource else f"nobody here scales a {kind}"
            self._warn(scaler, "FailedGetScale", why)
            said = f"the HPA controller was unable to get the target's current scale: {why}"
            status.mark("AbleToScale", FALSE, "FailedGetScale", said)
            return
        status.mark(
            "AbleToScale", TRUE, "SucceededGetScale", "the HPA controller was able to get the target's current scale"
        )
        current = replicas_of(target)
        history = self._histories.setdefault(key, History([(self._context.clock.monotonic(), current)]))
        status.fields["currentReplicas"] = current
        decision = await self._decide(scaler, target, current, history, status)
        if decision is None:
            return
        if decision.replicas != current:
            await self._rescale(scaler, resource, target, decision, status)
            history.add_change(self._context.clock.monotonic(), current, decision.replicas)
        status.fields["desiredReplicas"] = decision.replicas

    async def _decide(
        self, scaler: Object, target: Object, current: int, history: History, status: _Status
    ) -> _Decision | None:
        """Returns None where no number follows from the metrics."""
        spec = scaler["spec"]
        bounds = _bounds(spec)
        if current == 0:
            why = "scaling is disabled since the replica count of the target is zero"
            status.mark("ScalingActive", FALSE, "ScalingDisabled", why)
            return _Decision(0)
        if current > bounds.most:
            return _Decision(bounds.most, "Current number of replicas above Spec.MaxReplicas")
        if current < bounds.least:
            return _Decision(bounds.least, "Current number of replicas below Spec.MinReplicas")
        asked = await self._ask(scaler, target, current, status)
        if asked is None:
            return None
        verdict = decide(spec, history, self._context.clock.monotonic(), current, asked.replicas, bounds)
        _mark_verdict(status, verdict)
        above = f"{asked.name} above target" if verdict.replicas > current else "All metrics below target"
        return _Decision(verdict.replicas, above)

    async def _ask(self, scaler: Object, target: Object, current: int, status: _Status) -> Asked | None:
        """Returns what the metric asks for that asks for most; one that fails keeps the others from scaling down."""
        pods = select_pods(self._context.cache, namespace_of(scaler), dig(target, "spec", "selector") or {})
        scaled = Scaled(namespace_of(scaler), current, pods)
        metrics = dig(scaler, "spec", "metrics") or []
        answers, failures = [], []
        for metric in metrics:
            try:
                answers.append(await self._metrics.ask(metric, scaled, self._context.clock.now()))
            except CannotCompute as error:
                failures.append((f"FailedGet{metric['type']}Metric", str(error)))
        status.fields["currentMetrics"] = [answer.status for answer in answers]
        most = max(answers, key=lambda answer: answer.replicas, default=None)
        starting = not any(is_ready(pod) for pod in pods)  # what nobody could have measured is no news
        for reason, message in failures if not starting else ():
            self._warn(scaler, reason, message)
        if most is None or (failures and most.replicas < current):
            reason, message = failures[0] if failures else ("FailedGetMetrics", "the HPA has no metrics")
            status.mark("ScalingActive", FALSE, reason, f"{_FAILED}: {message}")
            why = f"invalid metrics ({len(failures)} invalid out of {len(metrics)}), first error is: {message}"
            if not starting:
                self._warn(scaler, "FailedComputeMetricsReplicas", why)
            return None
        found = f"the HPA was able to successfully calculate a replica count from {most.name}"
        status.mark("ScalingActive", TRUE, "ValidMetricFound", found)
        return most

    async def _rescale(
        self, scaler: Object, resource: Resource, target: Object, decision: _Decision, status: _Status
    ) -> None:
        size = decision.replicas
        try:
            await self._context.patch(resource, target, {"spec": {"replicas": size}})
        except NotFound:
            return
        except ApiError as error:
            words = f"New size: {size}; reason: {decision.reason}; error: {error.message}"
            self._warn(scaler, "FailedRescale", words)
            raise
        said = f"the HPA controller was able to update the target scale to {size}"
        status.mark("AbleToScale", TRUE, "SucceededRescale", said)
        status.fields["lastScaleTime"] = status.now
        words = f"New size: {size}; reason: {decision.reason}"
        self._context.recorder.event(scaler, "Normal", "SuccessfulRescale", words)

    def _warn(self, scaler: Object, reason: str, message: str) -> None:
        self._context.recorder.event(scaler, "Warning", reason, message)


def _bounds(spec: Object) -> Bounds:
    return Bounds(1 if spec.get("minReplicas") is None else spec["minReplicas"], spec["maxReplicas"])


def _mark_verdict(status: _Status, verdict: Verdict) -> None:
    status.mark("AbleToScale", TRUE, *verdict.able)
    status.mark("ScalingLimited", TRUE if verdict.limited else FALSE, *verdict.limit)
