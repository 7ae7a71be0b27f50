"""LeaderWorkerSets: groups of pods, each a leader and its workers, which start, fail and are replaced together.

Groups of the LLM server are the exception: llama.cpp computes in one process, so that workers would have nothing to
do. Of these the leader runs, alone, as a Deployment; the status says so.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from isvc.kube.conditions import FALSE, TRUE, conditions_of, stamp
from isvc.kube.errors import AlreadyExists, NotFound
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of, uid_of
from isvc.kube.owners import is_controlled_by
from isvc.kube.pods import replicas_of
from isvc.kube.resource import DEPLOYMENTS, PODS
from isvc.local.controllers.leader_worker_sets.pods import (
    COMPLETE,
    Place,
    deployment_of,
    group_pod,
    is_outdated,
    place_of,
)
from isvc.local.controllers.leader_worker_sets.steps import (
    MIN_AGE,
    Groups,
    groups,
    newly_complete,
    next_step,
    partition_of,
    will_restart,
)
from isvc.local.controllers.pod_writes import create_pod, delete_pod
from isvc.local.controllers.pods import is_active
from isvc.local.node.programs.images import is_llm_server
from isvc.serving.thirdparty import LEADER_WORKER_SETS
from isvc.toolkit.cache import OWNER
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Result, Watch

_ALONE: Final = "the leader of each group runs alone: on one machine nothing is gained by more processes"


def controller(context: Context) -> Controller:
    watches = [
        Watch(LEADER_WORKER_SETS),
        Watch(PODS, to=OwnerOf(LEADER_WORKER_SETS)),
        Watch(DEPLOYMENTS, to=OwnerOf(LEADER_WORKER_SETS)),
    ]
    return Controller("leaderworkerset", LeaderWorkerSets(context).reconcile, watches, clock=context.clock)


def leads_alone(worker_set: Object) -> bool:
    """Returns whether the workers are LLM servers, which cannot compute together here."""
    containers = dig(worker_set, "spec", "leaderWorkerTemplate", "workerTemplate", "spec", "containers") or ()
    return any(is_llm_server(container.get("image", "")) for container in containers)


class LeaderWorkerSets:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._cache = context.cache

    async def reconcile(self, key: Key) -> Result | None:
        worker_set = self._context.find(LEADER_WORKER_SETS, key)
        if worker_set is None:
            return None
        if leads_alone(worker_set):
            await self._remove_groups(worker_set)
            counts = await self._run_leaders(worker_set)
        else:
            await self._remove_leaders(worker_set)
            counts = await self._run_groups(worker_set)
        status = set_status(worker_set, counts, self._context.timestamp())
        await self._context.write_status(LEADER_WORKER_SETS, worker_set, status)
        is_pending = will_restart(worker_set, self._pods(worker_set))
        return Result(requeue_after=MIN_AGE.total_seconds()) if is_pending else None

    async def _run_groups(self, worker_set: Object) -> Groups:
        step = next_step(worker_set, self._pods(worker_set), self._context.clock.now())
        for place in step.create:
            with suppress(AlreadyExists):  # one that is still going, which the cache has lost sight of, or another's
                await create_pod(self._context, worker_set, group_pod(worker_set, place))
        for pod in step.delete:
            await delete_pod(self._context, worker_set, pod)
        for leader in newly_complete(self._pods(worker_set)):
            mark = {"metadata": {"annotations": {COMPLETE: "true"}}}
            with suppress(NotFound):
                await self._context.patch(PODS, leader, mark)
        return groups(worker_set, self._pods(worker_set))

    async def _remove_groups(self, worker_set: Object) -> None:
        for pod in filter(is_active, self._pods(worker_set).values()):
            await delete_pod(self._context, worker_set, pod)

    def _pods(self, worker_set: Object) -> dict[Place, Object]:
        found = self._cache.by_index(PODS, OWNER, uid_of(worker_set))
        return {place: pod for pod in found if (place := place_of(pod)) is not None}

    async def _run_leaders(self, worker_set: Object) -> Groups:
        wanted = deployment_of(worker_set)
        live = self._cache.get(DEPLOYMENTS, name_of(worker_set), namespace_of(worker_set))
        if live is None:
            live = await self._context.create_or_get(DEPLOYMENTS, wanted)
        elif is_outdated(live, worker_set) or not is_controlled_by(live, uid_of(worker_set)):
            live = await self._context.patch(DEPLOYMENTS, live, wanted)
        status = live.get("status") or {}
        return Groups(replicas_of(worker_set), status.get("readyReplicas", 0), status.get("updatedReplicas", 0))

    async def _remove_leaders(self, worker_set: Object) -> None:
        live = self._context.find(DEPLOYMENTS, Key.of(worker_set))
        if live is not None and is_controlled_by(live, uid_of(worker_set)):
            await self._context.delete(DEPLOYMENTS, live)


def set_status(worker_set: Object, counts: Groups, now: str) -> Object:
    replicas = replicas_of(worker_set)
    message = _ALONE if leads_alone(worker_set) else f"{counts.ready} of {replicas} groups are ready"
    is_available = counts.ready >= replicas and counts.updated >= replicas - partition_of(worker_set)
    reason = "AllGroupsReady" if is_available else "GroupsNotReady"
    return {
        "conditions": [
            _condition(worker_set, "Available", is_available, reason, message, now),
            _condition(worker_set, "Progressing", not is_available, "GroupsProgressing", message, now),
        ],
        "replicas": counts.replicas,
        "readyReplicas": counts.ready,
        "updatedReplicas": counts.updated,
    }


def _condition(worker_set: Object, kind: str, holds: bool, reason: str, message: str, now: str) -> Object:
    condition = {"type": kind, "status": TRUE if holds else FALSE, "reason": reason, "message": message}
    return stamp(condition, conditions_of(worker_set), now)
