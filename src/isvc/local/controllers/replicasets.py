"""ReplicaSet → Pods: as many as asked for, no more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from isvc.kube.conditions import condition_of
from isvc.kube.errors import ApiError
from isvc.kube.objects import Key, Object, creation_time_of, dig, generation_of, is_being_deleted, labels_of, uid_of
from isvc.kube.resource import PODS, REPLICA_SETS
from isvc.kube.timestamps import timestamp
from isvc.local.controllers.adoption import claim, watch_adopted
from isvc.local.controllers.pod_writes import BURST, create_pod, delete_pod, pod_of
from isvc.local.controllers.pods import is_active, is_available, is_ready, look_at_next_available
from isvc.local.controllers.selection import ORPHANS
from isvc.toolkit.cache import OWNER
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Result, Watch
from isvc.toolkit.reads import Read


def controller(context: Context) -> Controller:
    watches = [Watch(REPLICA_SETS), *watch_adopted(context.cache, PODS, REPLICA_SETS)]
    reads = [Read(PODS, indexers=ORPHANS)]
    return Controller(
        "replicaset", ReplicaSets(context).reconcile, watches, workers=4, clock=context.clock, reads=reads
    )


class ReplicaSets:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._cache = context.cache

    async def reconcile(self, key: Key) -> Result | None:
        replica_set = self._cache.get(REPLICA_SETS, key.name, key.namespace)
        if replica_set is None:
            return None
        failure: ApiError | None = None
        if not is_being_deleted(replica_set):
            try:
                await claim(self._context, PODS, REPLICA_SETS.typed(replica_set))
                await self._scale(replica_set)
            except ApiError as error:
                failure = error
        pods = [pod for pod in self._pods(replica_set) if is_active(pod)]
        now = self._context.clock.now()
        status = replica_set_status(replica_set, pods, failure, now)
        await self._context.write_status(REPLICA_SETS, replica_set, status)
        if failure is not None:
            raise failure
        return look_at_next_available(pods, replica_set, now)

    def _pods(self, replica_set: Object) -> list[Object]:
        return self._cache.by_index(PODS, OWNER, uid_of(replica_set))

    async def _scale(self, replica_set: Object) -> None:
        active = [pod for pod in self._pods(replica_set) if is_active(pod)]
        missing = (dig(replica_set, "spec", "replicas") or 0) - len(active)
        for _ in range(min(missing, BURST)):
            pod = pod_of(replica_set, REPLICA_SETS, dig(replica_set, "spec", "template") or {})
            await create_pod(self._context, replica_set, pod)
        for pod in first_to_go(active)[: -missing if missing < 0 else 0]:
            await delete_pod(self._context, replica_set, pod)


_SUFFIX = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b")  # of a generated name
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def first_to_go(pods: Sequence[Object]) -> list[Object]:
    """Sorts pods in the order in which a ReplicaSet gives them up: not placed, not running, not ready, newest first."""

    def rank(pod: Object) -> tuple[bool, int, bool, int]:
        return (
            bool(dig(pod, "spec", "nodeName")),
            _PHASES.get(dig(pod, "status", "phase") or "Pending", 1),
            is_ready(pod),
            int(dig(pod, "metadata", "annotations", "controller.kubernetes.io/pod-deletion-cost") or 0),
        )

    newest_first = sorted(pods, key=creation_time_of, reverse=True)
    return sorted(newest_first, key=rank)


def replica_set_status(replica_set: Object, pods: Sequence[Object], failure: ApiError | None, now: datetime) -> Object:
    wanted_labels = dig(replica_set, "spec", "template", "metadata", "labels") or {}
    counts = {
        "replicas": len(pods),
        "fullyLabeledReplicas": sum(wanted_labels.items() <= labels_of(pod).items() for pod in pods),
        "readyReplicas": sum(is_ready(pod) for pod in pods),
        "availableReplicas": sum(is_available(pod, replica_set, now) for pod in pods),
        "observedGeneration": generation_of(replica_set),
    }
    status: Object = {key: value for key, value in counts.items() if value or key == "replicas"}
    if failure is not None:
        before = condition_of(replica_set, "ReplicaFailure")
        status["conditions"] = [_replica_failure(before, failure.message, now)]
    return status


def _replica_failure(before: Object, message: str, now: datetime) -> Object:
    """Keeps the condition when only the name of the refused pod is new: a change would be the next attempt."""
    if _SUFFIX.sub("", message) == _SUFFIX.sub("", before.get("message", "")):
        return before
    since = before.get("lastTransitionTime") or timestamp(now)
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
    return {**condition, "message": message, "lastTransitionTime": since}
