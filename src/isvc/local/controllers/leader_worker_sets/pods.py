"""The pods of a LeaderWorkerSet: the leader `SET-GROUP` and the workers `SET-GROUP-INDEX` of each group.

Labels, annotations and variables are those of the LeaderWorkerSet controller; the leader's address is this machine's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from isvc.kube.objects import Object, annotations_of, dig, generation_of, labels_of, name_of, namespace_of
from isvc.kube.owners import controller_ref
from isvc.kube.pods import replicas_of
from isvc.kube.resource import DEPLOYMENTS
from isvc.local.controllers.pod_writes import pod_of
from isvc.local.controllers.rollout import template_hash
from isvc.serving.thirdparty import LEADER_WORKER_SETS

LABEL: Final = "leaderworkerset.sigs.k8s.io"
REVISION: Final = f"{LABEL}/template-revision-hash"
COMPLETE: Final = "local.isvc.dev/group-complete"  # on a leader all of whose workers have been created
_GROUP: Final = f"{LABEL}/group-index"
_WORKER: Final = f"{LABEL}/worker-index"


class Place(NamedTuple):
    """Which pod of which group; worker 0 leads."""

    group: int
    worker: int


def place_of(pod: Object) -> Place | None:
    group, worker = labels_of(pod).get(_GROUP, ""), labels_of(pod).get(_WORKER, "")
    return Place(int(group), int(worker)) if group.isdecimal() and worker.isdecimal() else None


def size_of(worker_set: Object) -> int:
    return int(dig(worker_set, "spec", "leaderWorkerTemplate", "size") or 1)


def leader_size(leader: Object) -> int:
    """Returns the size of a group when its leader was created, from which that of the set may differ by now."""
    return int(annotations_of(leader).get(f"{LABEL}/size") or 1)


def revision_of(worker_set: Object) -> str:
    """Returns a hash of all that the pods are made from: where it changes, groups are replaced."""
    templates = worker_set["spec"]["leaderWorkerTemplate"]
    return template_hash({key: templates.get(key) for key in ("leaderTemplate", "workerTemplate", "size")})


def leader_template(worker_set: Object) -> Object:
    """Returns the template of leaders; a set without one has workers alone, of which the first leads."""
    templates: Object = worker_set["spec"]["leaderWorkerTemplate"]
    template: Object = templates.get("leaderTemplate") or templates["workerTemplate"]
    return template


def group_pod(worker_set: Object, place: Place) -> Object:
    templates = worker_set["spec"]["leaderWorkerTemplate"]
    template = templates["workerTemplate"] if place.worker else leader_template(worker_set)
    pod = pod_of(worker_set, LEADER_WORKER_SETS, template)
    leader = f"{name_of(worker_set)}-{place.group}"
    metadata = pod["metadata"]
    del metadata["generateName"]
    metadata["name"] = f"{leader}-{place.worker}" if place.worker else leader
    metadata["labels"] |= {
        f"{LABEL}/name": name_of(worker_set),
        _GROUP: str(place.group),
        _WORKER: str(place.worker),
        REVISION: revision_of(worker_set),
    }
    metadata["annotations"] |= {f"{LABEL}/size": str(size_of(worker_set))}
    if place.worker:
        metadata["annotations"] |= {f"{LABEL}/leader-name": leader}
    if sub_size := dig(templates, "subGroupPolicy", "subGroupSize"):
        metadata["annotations"] |= {f"{LABEL}/subgroup-size": str(sub_size)}
        metadata["labels"] |= {f"{LABEL}/subgroup-index": str(_subgroup(size_of(worker_set), sub_size, place.worker))}
    named = {**pod["spec"], "hostname": metadata["name"], "subdomain": name_of(worker_set)}
    return {**pod, "spec": with_group_env(named, size_of(worker_set), place.worker)}


def _subgroup(size: int, sub_size: int, worker: int) -> int:
    """Returns the subgroup of a pod. Where the workers alone fill them, the leader is one more in the first."""
    if (size - 1) % sub_size == 0:
        return max(0, worker - 1) // sub_size
    return worker // sub_size


def with_group_env(pod_spec: Object, size: int, index: int) -> Object:
    """Tells every container of a group where the leader is, how many pods there are, and which one this is."""
    values = {"LWS_LEADER_ADDRESS": "127.0.0.1", "LWS_GROUP_SIZE": str(size), "LWS_WORKER_INDEX": str(index)}
    env = [{"name": name, "value": value} for name, value in values.items()]
    containers = {
        key: [{**each, "env": [*env, *(each.get("env") or [])]} for each in pod_spec[key]]
        for key in ("initContainers", "containers")
        if pod_spec.get(key)
    }
    return {**pod_spec, **containers}


def deployment_of(group: Object) -> Object:
    """Returns the Deployment of leaders whose workers would have nothing to do."""
    template = leader_template(group)
    ours = {f"{LABEL}/name": name_of(group), f"{LABEL}/worker-index": "0"}
    metadata = template.get("metadata") or {}
    pod = with_group_env(template["spec"], size=1, index=0)
    named = {
        "name": name_of(group),
        "namespace": namespace_of(group),
        "labels": {f"{LABEL}/name": name_of(group)},
        "annotations": {f"{LABEL}/generation": _generation(group)},
        "ownerReferences": [controller_ref(LEADER_WORKER_SETS.typed(group))],
    }
    made = {"metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **ours}}, "spec": pod}
    spec = {"replicas": replicas_of(group), "selector": {"matchLabels": ours}, "template": made}
    return DEPLOYMENTS.manifest(named, spec=spec)


def is_outdated(deployment: Object, group: Object) -> bool:
    return bool(dig(deployment, "metadata", "annotations", f"{LABEL}/generation") != _generation(group))


def _generation(group: Object) -> str:
    return str(generation_of(group))
