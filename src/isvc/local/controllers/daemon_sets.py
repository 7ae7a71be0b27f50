"""DaemonSet → one pod on each node that it is meant for. Here is one node."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from isvc.kube.objects import Key, Object, dig, generation_of, is_being_deleted, labels_of, name_of, uid_of
from isvc.kube.resource import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from isvc.local.controllers.adoption import claim, watch_adopted
from isvc.local.controllers.pod_writes import create_pod, delete_pod, pod_of
from isvc.local.controllers.pods import has_ended, is_active, is_available, is_ready, look_at_next_available
from isvc.local.controllers.replicasets import first_to_go
from isvc.local.controllers.revisions import HASH, current_revision, forget_revisions
from isvc.local.controllers.selection import ORPHANS
from isvc.toolkit.cache import OWNER
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Result, Watch, changed
from isvc.toolkit.reads import Read


def controller(context: Context) -> Controller:
    watches = [
        Watch(DAEMON_SETS),
        *watch_adopted(context.cache, PODS, DAEMON_SETS),
        Watch(CONTROLLER_REVISIONS, to=OwnerOf(DAEMON_SETS)),
        Watch(NODES, to=lambda _: context.cache.all_keys(DAEMON_SETS), when=changed(labels_of)),
    ]
    reads = [Read(PODS, indexers=ORPHANS)]
    return Controller("daemonset", DaemonSets(context).reconcile, watches, clock=context.clock, reads=reads)


class DaemonSets:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._cache = context.cache

    async def reconcile(self, key: Key) -> Result | None:
        daemon_set = self._context.find(DAEMON_SETS, key)
        if daemon_set is None:
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
        return look_at_next_available(pods, daemon_set, now)

    def _pods(self, daemon_set: Object) -> list[Object]:
        return self._cache.by_index(PODS, OWNER, uid_of(daemon_set))

    async def _place(self, daemon_set: Object, node: str, revision: str) -> None:
        """Puts one pod on a node; one that has ended, or is of an old revision, goes before another comes."""
        here = [pod for pod in self._pods(daemon_set) if _node_of(pod) == node]
        outdated = [pod for pod in here if labels_of(pod).get(HASH) != revision]
        rolling = dig(daemon_set, "spec", "updateStrategy", "type") != "OnDelete"
        ended = [pod for pod in here if has_ended(pod)]
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


def daemon_set_status(daemon_set: Object, pods: Sequence[Object], nodes: int, revision: str, now: datetime) -> Object:
    active = [pod for pod in pods if is_active(pod)]
    available = sum(is_available(pod, daemon_set, now) for pod in active)
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
