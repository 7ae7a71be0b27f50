"""LeaderWorkerSets: of each group of pods the leader runs, alone, as a Deployment.

A group spreads one model over several nodes. Here is one node, and llama.cpp computes in one process, so that workers
would have nothing to do; the status says so.
"""

from __future__ import annotations

from typing import Final

from isvc.kube.conditions import find
from isvc.kube.errors import AlreadyExists
from isvc.kube.objects import Key, Object, dig, is_being_deleted, name_of, namespace_of
from isvc.kube.owners import controller_ref
from isvc.kube.resource import DEPLOYMENTS
from isvc.local.controllers.context import Context
from isvc.local.controllers.rollout import replicas_of
from isvc.serving.thirdparty import LEADER_WORKER_SETS
from isvc.toolkit.clock import timestamp
from isvc.toolkit.controller import Controller, Watch, owner_of

_KIND: Final = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind}
_LABEL: Final = "leaderworkerset.sigs.k8s.io"
_ALONE: Final = "the leader of each group runs alone: on one machine nothing is gained by more processes"


def controller(context: Context) -> Controller:
    async def reconcile(key: Key) -> None:
        group = context.cache.get(LEADER_WORKER_SETS, key.name, key.namespace)
        if group is None or is_being_deleted(group):
            return
        wanted = deployment_of(group)
        live = context.cache.get(DEPLOYMENTS, key.name, key.namespace)
        if live is None:
            try:
                live = await context.client.create(DEPLOYMENTS, wanted)
            except AlreadyExists:
                live = await context.client.get(DEPLOYMENTS, key.name, key.namespace)
            context.cache.note(DEPLOYMENTS, live)
        elif _differs(live, group):
            live = await context.patch(DEPLOYMENTS, live, wanted)
        status = group_status(group, live, timestamp(context.clock.now()))
        await context.write_status(LEADER_WORKER_SETS, group, status)

    watches = [Watch(LEADER_WORKER_SETS), Watch(DEPLOYMENTS, to=owner_of(LEADER_WORKER_SETS))]
    return Controller("leaderworkerset", reconcile, watches)


def deployment_of(group: Object) -> Object:
    """The leaders; a group without a template for them has workers alone, of which the first leads."""
    templates = group["spec"]["leaderWorkerTemplate"]
    template = templates.get("leaderTemplate") or templates["workerTemplate"]
    ours = {f"{_LABEL}/name": name_of(group), f"{_LABEL}/worker-index": "0"}
    metadata = template.get("metadata") or {}
    pod = {**template["spec"], "containers": [_with_address(each) for each in template["spec"]["containers"]]}
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {
            "name": name_of(group),
            "namespace": namespace_of(group),
            "labels": {f"{_LABEL}/name": name_of(group)},
            "annotations": {f"{_LABEL}/generation": str(dig(group, "metadata", "generation") or 0)},
            "ownerReferences": [controller_ref({**_KIND, **group})],
        },
        "spec": {
            "replicas": replicas_of(group),
            "selector": {"matchLabels": ours},
            "template": {"metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **ours}}, "spec": pod},
        },
    }


def _with_address(container: Object) -> Object:
    """What the controller of a cluster sets in every pod of a group: where the leader is, and how many there are."""
    values = {"LWS_LEADER_ADDRESS": "127.0.0.1", "LWS_GROUP_SIZE": "1", "LWS_WORKER_INDEX": "0"}
    env = [{"name": name, "value": value} for name, value in values.items()]
    return {**container, "env": [*env, *(container.get("env") or [])]}


def group_status(group: Object, deployment: Object, now: str) -> Object:
    status = deployment.get("status") or {}
    ready, replicas = status.get("readyReplicas", 0), replicas_of(group)
    is_available = ready >= replicas and status.get("updatedReplicas", 0) >= replicas
    available = _condition(
        group, "Available", is_available, "AllGroupsReady" if is_available else "GroupsNotReady", now
    )
    progressing = _condition(group, "Progressing", not is_available, "GroupsProgressing", now)
    return {
        "conditions": [available, progressing],
        "replicas": replicas,
        "readyReplicas": ready,
        "updatedReplicas": status.get("updatedReplicas", 0),
    }


def _condition(group: Object, kind: str, holds: bool, reason: str, now: str) -> Object:
    before = find(dig(group, "status", "conditions") or (), kind) or {}
    status = "True" if holds else "False"
    since = before.get("lastTransitionTime", now) if before.get("status") == status else now
    return {"type": kind, "status": status, "reason": reason, "message": _ALONE, "lastTransitionTime": since}


def _differs(deployment: Object, group: Object) -> bool:
    made_from = dig(deployment, "metadata", "annotations", f"{_LABEL}/generation")
    return bool(made_from != str(dig(group, "metadata", "generation") or 0))
