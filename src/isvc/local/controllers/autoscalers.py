"""HorizontalPodAutoscalers without metrics: the target is kept within the bounds, and the status says why."""

from __future__ import annotations

from isvc.kube.errors import NotFound
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS
from isvc.local.controllers.context import Context
from isvc.local.controllers.rollout import replicas_of
from isvc.toolkit.clock import Clock, timestamp
from isvc.toolkit.controller import Controller, Watch

_NO_METRICS = "a local node has no metrics server: replicas stay within the bounds"


def controller(context: Context) -> Controller:
    def scalers_of(deployment: Object) -> list[Key]:
        scalers = context.cache.list(HORIZONTAL_POD_AUTOSCALERS, namespace_of(deployment))
        return [Key.of(scaler) for scaler in scalers if _targets(scaler, name_of(deployment))]

    watches = [Watch(HORIZONTAL_POD_AUTOSCALERS), Watch(DEPLOYMENTS, to=scalers_of, when=_resized)]
    return Controller("horizontalpodautoscaler", Autoscalers(context).reconcile, watches)


def _targets(scaler: Object, deployment: str) -> bool:
    reference = dig(scaler, "spec", "scaleTargetRef") or {}
    return reference.get("kind") == "Deployment" and reference.get("name") == deployment


def _resized(before: Object | None, after: Object | None) -> bool:
    return before is None or after is None or replicas_of(before) != replicas_of(after)


class Autoscalers:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def reconcile(self, key: Key) -> None:
        scaler = self._context.cache.get(HORIZONTAL_POD_AUTOSCALERS, key.name, key.namespace)
        target = dig(scaler, "spec", "scaleTargetRef", "name")
        deployment = self._context.cache.get(DEPLOYMENTS, target, key.namespace) if target else None
        if scaler is None or deployment is None:
            return
        current = replicas_of(deployment)
        wanted = bounded(scaler, current)
        if wanted != current:
            try:
                await self._context.patch(DEPLOYMENTS, deployment, {"spec": {"replicas": wanted}})
            except NotFound:
                return
        await self._write(scaler, wanted)

    async def _write(self, scaler: Object, replicas: int) -> None:
        before = scaler.get("status") or {}
        if before.get("desiredReplicas") == replicas and before.get("currentReplicas") == replicas:
            return
        clock = self._context.clock
        conditions = [
            _condition("AbleToScale", "True", "SucceededGetScale", "", clock),
            _condition("ScalingActive", "False", "ScalingDisabled", _NO_METRICS, clock),
        ]
        status = {"currentReplicas": replicas, "desiredReplicas": replicas, "conditions": conditions}
        await self._context.write_status(HORIZONTAL_POD_AUTOSCALERS, scaler, status)


def bounded(scaler: Object, replicas: int) -> int:
    """Replicas within the bounds; zero replicas mean that the user stopped it, and stay."""
    if replicas == 0:
        return 0
    low, high = dig(scaler, "spec", "minReplicas"), dig(scaler, "spec", "maxReplicas")
    return max(1 if low is None else low, min(replicas, high or replicas))


def _condition(kind: str, status: str, reason: str, message: str, clock: Clock) -> Object:
    moment = timestamp(clock.now())
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": moment}
