"""DaemonSet → one pod on each node that it is meant for. Here is one node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from isvc.kube.objects import Key, Object, dig, generation_of, is_being_deleted, labels_of, name_of, uid_of
from isvc.kube.resource import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from isvc.local.controllers.adoption import claim, is_orphan_now, possible_owners
from isvc.local.controllers.pod_writes import create_pod, delete_pod, pod_of
from isvc.local.controllers.pods import is_active, is_ready, seconds_until_available
from isvc.local.controllers.replicasets import first_to_go
from isvc.local.controllers.revisions import HASH, current_revision, forget_revisions
from isvc.local.controllers.selection import ORPHANS
from isvc.toolkit.cache import OWNER
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Result, Watch, owner_of
from isvc.toolkit.reads import Read


def controller(context: Context) -> Controller:
    def possible_sets(pod: Object) -> Iterable[Key]:
        return possible_owners(context.cache, DAEMON_SETS, pod)

    watches = [
        Watch(DAEMON_SETS),
        Watch(PODS, to=owner_of(DAEMON_SETS)),
        Watch(PODS, to=possible_sets, when=is_orphan_now),
        Watch(CONTROLLER_REVISIONS, to=owner_of(DAEMON_SETS)),
        Watch(NODES, to=lambda node: map(Key.of, context.cache.list(DAEMON_SETS)), when=_labels_changed),
    ]
    reads = [Read(PODS, indexers=ORPHANS)]
    return Controller("daemonset", DaemonSets(context).reconcile, watches, clock=context.clock, reads=reads)


def _labels_changed(before: Object | None, after: Object | None) -> bool:
    return before is None or after is None or labels_of(before) != labels_of(after)


class DaemonSets:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._cache = context.cache

    async def reconcile(self, key: Key) -> Result | None:
        daemon_set = self._cache.get(DAEMON_SETS, key.name, key.namespace)
        if daemon_set is None or is_being_deleted(daemon_set):
            return None
        await claim(self._context, PODS, DAEMON_SETS.typed(daemon_set))
        revision = await current_revision(self._context, daemon_set, DAEMON_SETS)
        value = labels_of(revision)[HASH]
        nodes = [node for node in self._cache.list(NODES) if is_meant_for(daemon_set, node)]
        for node in nodes:
            await self._place(daemon_set, name_of(node), value)
        for pod in self._pods(daemon_set):
            if is_active(pod) and _node_of(pod) not in map(name_of, nodes):
                await delete_pod(self._context, daemon_set, pod)
        pods = self._pods(daemon_set)
        now = self._context.clock.now()
        status = daemon_set_status(daemon_set, pods, len(nodes), value, now)
        await self._context.write_status(DAEMON_SETS, daemon_set, status)
        used = {labels_of(pod).get(HASH, "") for pod in pods} | {value}
        await forget_revisions(self._context, daemon_set, used)
        waits = [wait for pod in pods if (wait := seconds_until_available(pod, _min_ready(daemon_set), now))]
        return Result(requeue_after=min(waits)) if waits else None

    def _pods(self, daemon_set: Object) -> list[Object]:
        return self._cache.by_index(PODS, OWNER, uid_of(daemon_set))

    async def _place(self, daemon_set: Object, node: str, revision: str) -> None:
        """Puts one pod on a node; one that has ended, or is of an old revision, goes before another comes."""
        here = [pod for pod in self._pods(daemon_set) if _node_of(pod) == node]
        outdated = [pod for pod in here if labels_of(pod).get(HASH) != revision]
        rolling = dig(daemon_set, "spec", "updateStrategy", "type") != "OnDelete"
        ended = [pod for pod in here if not is_active(pod) and not is_being_deleted(pod)]
        surplus = first_to_go([pod for pod in here if is_active(pod)])[:-1]
        for pod in {uid_of(pod): pod for pod in (*ended, *surplus, *(outdated if rolling else ()))}.values():
            if not is_being_deleted(pod):
                await delete_pod(self._context, daemon_set, pod)
        if not here:
            await create_pod(self._context, daemon_set, _pod(daemon_set, node, revision))


def is_meant_for(daemon_set: Object, node: Object) -> bool:
    selector = dig(daemon_set, "spec", "template", "spec", "nodeSelector") or {}
    named = dig(daemon_set, "spec", "template", "spec", "nodeName")
    return bool(selector.items() <= labels_of(node).items()) and named in (None, "", name_of(node))


def _pod(daemon_set: Object, node: str, revision: str) -> Object:
    pod = pod_of(daemon_set, DAEMON_SETS, daemon_set["spec"]["template"])
    pod["metadata"]["labels"] |= {HASH: revision}
    pod["spec"]["nodeName"] = node
    return pod


def _node_of(pod: Object) -> str:
    return str(dig(pod, "spec", "nodeName") or "")


def _min_ready(daemon_set: Object) -> int:
    return int(dig(daemon_set, "spec", "minReadySeconds") or 0)


def daemon_set_status(daemon_set: Object, pods: Sequence[Object], nodes: int, revision: str, now: datetime) -> Object:
    active = [pod for pod in pods if is_active(pod)]
    available = sum(seconds_until_available(pod, _min_ready(daemon_set), now) == 0 for pod in active)
    optional = {
        "updatedNumberScheduled": sum(labels_of(pod).get(HASH) == revision for pod in active),
        "numberAvailable": available,
        "numberUnavailable": max(0, nodes - available),
    }
    return {
        "observedGeneration": generation_of(daemon_set),
        "desiredNumberScheduled": nodes,
        "currentNumberScheduled": min(nodes, len(active)),
        "numberReady": sum(is_ready(pod) for pod in active),
        "numberMisscheduled": 0,
        **{key: value for key, value in optional.items() if value},
    }
