"""Deployment → ReplicaSets: rolling update, recreate, pause, rollback, history and progress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isvc.kube.conditions import conditions_of, find
from isvc.kube.errors import AlreadyExists
from isvc.kube.objects import Key, Object, annotations_of, dig, is_being_deleted, name_of, namespace_of, uid_of
from isvc.kube.owners import controller_of, controller_ref, is_controlled_by
from isvc.kube.pods import replicas_of
from isvc.kube.resource import DEPLOYMENTS, PODS, REPLICA_SETS
from isvc.local.controllers.adoption import claim, watch_adopted
from isvc.local.controllers.deployments.proportion import is_resized, resize
from isvc.local.controllers.deployments.status import deployment_status, seconds_left
from isvc.local.controllers.pods import is_active
from isvc.local.controllers.rollout import (
    REVISION,
    Limits,
    available_of,
    find_new,
    inherited_annotations,
    new_replica_set,
    new_size,
    old_sizes,
    revision_of,
    scale_annotations,
)
from isvc.local.controllers.selection import ORPHANS
from isvc.toolkit.cache import OWNER
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Result, Watch
from isvc.toolkit.reads import Read

_HISTORY = 10


def controller(context: Context) -> Controller:
    def deployment_of_lost_pod(pod: Object) -> Iterable[Key]:
        """Yields the Deployment of a pod that is gone: with strategy Recreate it waits for the last of its old pods."""
        replica_set = context.cache.get(
            REPLICA_SETS, str((controller_of(pod) or {}).get("name", "")), namespace_of(pod)
        )
        return OwnerOf(DEPLOYMENTS)(replica_set) if replica_set else ()

    watches = [
        Watch(DEPLOYMENTS),
        Watch(PODS, to=deployment_of_lost_pod, when=lambda before, after: after is None),
        *watch_adopted(context.cache, REPLICA_SETS, DEPLOYMENTS),
    ]
    reads = [Read(REPLICA_SETS, indexers=ORPHANS)]
    return Controller(
        "deployment", Deployments(context).reconcile, watches, workers=4, clock=context.clock, reads=reads
    )


class Deployments:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._cache = context.cache

    async def reconcile(self, key: Key) -> Result | None:
        deployment = self._cache.get(DEPLOYMENTS, key.name, key.namespace)
        if deployment is None:
            return None
        created, revision = False, 0
        if not is_being_deleted(deployment):
            await claim(self._context, REPLICA_SETS, DEPLOYMENTS.typed(deployment))
            created, revision = await self._progress(deployment)
        replica_sets = self._replica_sets(deployment)
        new = find_new(deployment, replica_sets)
        if new is not None and not conditions_of(deployment) and not dig(new, "status", "observedGeneration"):
            return None  # what its first ReplicaSet reports in a moment brings it back
        now = self._context.clock.now()
        status = deployment_status(deployment, new, replica_sets, created, now)
        annotations = {REVISION: str(revision)} if revision else {}
        await self._context.write_status(DEPLOYMENTS, deployment, status, annotations)
        progressing = find(status["conditions"], "Progressing") or {}
        left = seconds_left(deployment, progressing, now)
        return Result(requeue_after=max(left, 0.0) + 1, lapses=True) if left is not None else None

    def _replica_sets(self, deployment: Object) -> list[Object]:
        found = self._cache.by_index(REPLICA_SETS, OWNER, uid_of(deployment))
        return [item for item in found if not is_being_deleted(item)]

    async def _progress(self, deployment: Object) -> tuple[bool, int]:
        """Takes one step of the rollout; returns whether a ReplicaSet was made, and the revision if it may change."""
        replica_sets = self._replica_sets(deployment)
        new = find_new(deployment, replica_sets)
        limits = Limits.of(deployment)
        recreate = dig(deployment, "spec", "strategy", "type") == "Recreate"
        paused = dig(deployment, "spec", "paused")
        if paused or (is_resized(limits, replica_sets) and not recreate):
            sizes = resize(limits, new, replica_sets)
            replica_sets = [
                await self._resize(deployment, item, sizes.get(name_of(item), replicas_of(item)), limits)
                for item in replica_sets
            ]
            new = find_new(deployment, replica_sets)
        if paused:
            return False, 0
        old = [item for item in replica_sets if new is None or uid_of(item) != uid_of(new)]
        if recreate and await self._still_running(deployment, old, limits):
            return False, 0
        created = new is None
        new = await self._create(deployment, old, limits) if new is None else await self._revise(deployment, new, old)
        new = await self._resize(deployment, new, new_size(limits, new, old), limits)
        for name, size in old_sizes(limits, new, old).items():
            item = next(candidate for candidate in old if name_of(candidate) == name)
            await self._resize(deployment, item, size, limits)
        await self._forget_history(deployment, new, old)
        return created, revision_of(new)

    async def _still_running(self, deployment: Object, old: Sequence[Object], limits: Limits) -> bool:
        """Returns whether something old is left, which with strategy Recreate goes before anything new comes."""
        for item in old:
            await self._resize(deployment, item, 0, limits)
        return any(self._cache.keys(PODS, OWNER, uid_of(item)) for item in old)

    async def _create(self, deployment: Object, old: Sequence[Object], limits: Limits) -> Object:
        revision = max((revision_of(item) for item in old), default=0) + 1
        owner = controller_ref(DEPLOYMENTS.typed(deployment))
        wanted = new_replica_set(deployment, limits, revision, owner)
        wanted["spec"]["replicas"] = new_size(limits, wanted, old)
        made = await self._context.create_or_get(REPLICA_SETS, wanted)
        if not is_controlled_by(made, uid_of(deployment)):
            raise AlreadyExists(f"ReplicaSet {name_of(made)} belongs to somebody else")
        if size := replicas_of(made):
            words = f"Scaled up replica set {name_of(made)} from 0 to {size}"
            self._context.recorder.event(deployment, "Normal", "ScalingReplicaSet", words)
        return made

    async def _revise(self, deployment: Object, new: Object, old: Sequence[Object]) -> Object:
        """Makes the template's ReplicaSet the newest revision, also one seen before: that is what a rollback is."""
        newest = max((revision_of(item) for item in old), default=0) + 1
        revision = max(revision_of(new), newest)
        annotations = {**inherited_annotations(deployment), REVISION: str(revision)}
        if not annotations.items() <= annotations_of(new).items():
            patch = {"metadata": {"annotations": annotations}}
            new = await self._context.patch(REPLICA_SETS, new, patch)
        return new

    async def _resize(self, deployment: Object, item: Object, size: int, limits: Limits) -> Object:
        before = replicas_of(item)
        annotations = scale_annotations(limits)
        if before == size and (size == 0 or annotations.items() <= annotations_of(item).items()):
            return item
        patch = {"metadata": {"annotations": annotations}, "spec": {"replicas": size}}
        answer = await self._context.patch(REPLICA_SETS, item, patch)
        if before != size:
            way = "up" if size > before else "down"
            words = f"Scaled {way} replica set {name_of(item)} from {before} to {size}"
            self._context.recorder.event(deployment, "Normal", "ScalingReplicaSet", words)
        return answer

    async def _forget_history(self, deployment: Object, new: Object, old: Sequence[Object]) -> None:
        limit = dig(deployment, "spec", "revisionHistoryLimit")
        keep = _HISTORY if limit is None else int(limit)
        if available_of(new) < replicas_of(deployment):
            return
        idle = [item for item in old if not replicas_of(item) and not self._has_pods(item)]
        for item in sorted(idle, key=revision_of)[: max(0, len(idle) - keep)]:
            await self._context.delete(REPLICA_SETS, item)

    def _has_pods(self, item: Object) -> bool:
        return any(is_active(pod) for pod in self._cache.by_index(PODS, OWNER, uid_of(item)))
