"""What should exist for a cache, decided from what was observed and nothing else.

The lists of its nodes have to exist (`lists` fills them in), and for every group a volume with its claim: one in the
namespace of the jobs that download, and one in each namespace whose services use the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isvc.api.annotations import NODE_GROUP
from isvc.api.resources import LOCAL_MODEL_NODE_GROUPS, LOCAL_MODEL_NODES
from isvc.controllers.localmodel.entries import entry_of
from isvc.controllers.localmodel.observe import Observed
from isvc.controllers.localmodel.volumes import (
    Volume,
    children_of,
    download_volume,
    is_released,
    outdated_fields,
    serving_volume,
    unowned_objects,
)
from isvc.engine.kind import Claim
from isvc.engine.plan import Child, Hold, Part, Plan, Stop, Want
from isvc.engine.policies import CREATE_ONLY
from isvc.kube.objects import Object, annotations_of, dig, namespace_of
from isvc.kube.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from isvc.serving.config.configmap import CONFIG_MAP

VOLUMES: Final = frozenset({PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS})


def claim(observed: Observed) -> Claim | None:
    """Nothing is done for a cache whose groups do not exist yet, so nothing of it has to be undone."""
    return None if problem(observed) else Claim()


def plan(observed: Observed) -> Plan:
    stop = problem(observed)
    if stop is not None:
        return Plan((Part(stop.part, stop.hold, VOLUMES),), stop)
    return Plan(
        (
            Part("lists of nodes", Want(tuple(_missing_lists(observed)))),
            *(_volume_part(observed, volume) for volume in wanted_volumes(observed)),
            *_holds(observed),
            Part(
                "volumes that nobody uses", Want(()), VOLUMES, found=unowned_objects(observed.volumes, observed.claims)
            ),
        )
    )


def problem(observed: Observed) -> Stop | None:
    """Returns what nothing can be decided without."""
    part = "groups of nodes"
    if missing := observed.missing_groups:
        message = f"LocalModelNodeGroup {', '.join(missing)} does not exist"
        remedy = "create it, or take it out of spec.nodeGroups"
        return Stop(part, "", "NodeGroupNotFound", message, remedy, missing=LOCAL_MODEL_NODE_GROUPS)
    if not observed.config.job_namespace:
        message = f"localModel.jobNamespace is not set in ConfigMap {CONFIG_MAP}"
        return Stop(part, "", "NoJobNamespace", message, "set it to the namespace in which models are downloaded")
    return None


def wanted_volumes(observed: Observed) -> Iterator[Volume]:
    """Yields a volume for the download of each group, and one for each namespace and group that services use."""
    cache, jobs = observed.key, observed.config.job_namespace
    yield from (download_volume(cache, group, jobs) for group in observed.groups)
    if not observed.config.disable_volume_management:
        users = observed.services + observed.llm_services
        for namespace, group in sorted({(namespace_of(each), _group_for(observed, each)) for each in users}):
            if group and serving_volume(cache, group, namespace).claim != download_volume(cache, group, jobs).claim:
                yield serving_volume(cache, group, namespace)


def doubts(observed: Observed, planned: Plan) -> Iterator[Stop]:
    """Yields what an edited group does not reach."""
    for volume in wanted_volumes(observed) if planned.stop is None else ():
        group, live, claim = (
            observed.groups[volume.group],
            observed.volumes.get(volume.name),
            observed.claims.get(volume.claim),
        )
        for sentence in outdated_fields(volume, group.spec, live, claim) if group else ():
            message = (
                f"{sentence}: LocalModelNodeGroup {volume.group} was edited, and Kubernetes does not let it change"
            )
            remedy = (
                f"delete PersistentVolumeClaim {volume.claim.name} in {volume.claim.namespace}: it and its volume are"
                " made anew once no pod uses them"
            )
            yield Stop("volumes", "", "VolumeOutdated", message, remedy)


def _missing_lists(observed: Observed) -> Iterator[Child]:
    for name, group in observed.groups.items():
        for node, is_ready in group.nodes.items() if group else ():
            if is_ready and node not in observed.lists:
                entry = entry_of(observed.key, observed.spec, name)
                manifest = {"metadata": {"name": node}, "spec": {"localModels": [entry]}}
                yield Child(LOCAL_MODEL_NODES, LOCAL_MODEL_NODES.typed(manifest), CREATE_ONLY, owned=False)


def _volume_part(observed: Observed, volume: Volume) -> Part:
    """Returns the part of a volume; one that lost its claim can have no other, and goes before it is made anew."""
    name, group, live = f"volume {volume.name}", observed.groups[volume.group], observed.volumes.get(volume.name)
    if group is None or is_released(live):
        return Part(name, Want(()), independent=True)
    return Part(name, Want(children_of(volume, group.spec, live)), independent=True)


def _holds(observed: Observed) -> Iterator[Part]:
    """Yields what stays for now though nobody wants it.

    A volume of the cluster goes after its claim, which waits for the last pod. Volumes that somebody else manages now
    are not ours to delete, though we made them.
    """
    claims, jobs = observed.claims, observed.config.job_namespace
    if not observed.namespace:
        wanted = {volume.name for volume in wanted_volumes(observed)}
        held = frozenset(_volume_of(claim) for claim in claims.values()) - wanted
        yield Part("volumes in use", Hold("InUse", "a claim is left"), frozenset({PERSISTENT_VOLUMES}), held)
    if observed.config.disable_volume_management:
        served = [key for key in claims if key.namespace != jobs]
        names = frozenset({key.name for key in served} | {_volume_of(claims[key]) for key in served})
        yield Part("volumes of services", Hold("Unmanaged", "volume management is disabled"), VOLUMES, names)


def _volume_of(claim: Object) -> str:
    return str(dig(claim, "spec", "volumeName") or "")


def _group_for(observed: Observed, service: Object) -> str:
    """Returns the group that a service asks for, or the first; nothing if it asks for one that the cache is not in."""
    asked = annotations_of(service).get(NODE_GROUP)
    if asked is None:
        return next(iter(observed.groups), "")
    return asked if asked in observed.groups else ""
