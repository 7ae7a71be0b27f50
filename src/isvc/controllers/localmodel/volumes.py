"""Volumes of caches and the claims on them: how they are called, and how they follow from a group of nodes.

Names are KServe's. PersistentVolumes belong to no namespace, so those of a LocalModelNamespaceCache have no owner, and
neither has a claim in another namespace than its own: they are found by their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from isvc.api.localmodel import DOWNLOAD, LocalModelNodeGroupSpec, claim_name, download_claim
from isvc.engine.plan import Child
from isvc.engine.policies import CREATE_ONLY, VOLUME
from isvc.kube.equality import covers
from isvc.kube.objects import Key, Object, dig, name_of
from isvc.kube.owners import controller_of
from isvc.kube.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Resource

#: What Kubernetes lets change of a volume that a claim may be bound to.
_CHANGEABLE: Final = frozenset({"capacity", "mountOptions", "persistentVolumeReclaimPolicy", "claimRef"})


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume with its one claim. `cache` is whose it is, `group` where its disks are."""

    cache: Key
    group: str
    name: str
    claim: Key

    @property
    def is_owned(self) -> bool:
        return not self.cache.namespace

    @property
    def is_claim_owned(self) -> bool:
        return self.cache.namespace in ("", self.claim.namespace)


def download_volume(cache: Key, group: str, job_namespace: str) -> Volume:
    """Returns the volume that jobs write the model to."""
    claim = download_claim(cache.name, cache.namespace, group)
    return Volume(cache, group, claim if cache.namespace else f"{claim}{DOWNLOAD}", Key(job_namespace, claim))


def serving_volume(cache: Key, group: str, namespace: str) -> Volume:
    """Returns the volume that the services of a namespace read the model from."""
    claim = claim_name(cache.name, group)
    return Volume(cache, group, f"{claim}-{namespace}", Key(namespace, claim))


def names_of_volumes(cache: Key, groups: Iterable[str]) -> frozenset[str]:
    """Returns what the volumes of a namespace's cache may be called."""
    made = (
        volume
        for group in groups
        for volume in (download_volume(cache, group, ""), serving_volume(cache, group, cache.namespace))
    )
    return frozenset(volume.name for volume in made)


def is_bound_for(cache: Key, volume: Object, job_namespace: str) -> bool:
    """Returns whether a volume that is called after a namespace's cache is bound to its claim, or to none yet."""
    bound, name = dig(volume, "spec", "claimRef"), name_of(volume)
    serving = Key(cache.namespace, name.removesuffix(f"-{cache.namespace}"))
    return not bound or Key(bound.get("namespace", ""), bound.get("name", "")) in (serving, Key(job_namespace, name))


def children_of(volume: Volume, group: LocalModelNodeGroupSpec, live: Object | None) -> tuple[Child, Child]:
    """Returns the volume and its claim; of one that exists, as much as can change follows its group."""
    spec = group.persistent_volume_spec
    if live is not None:
        kept = {field: value for field, value in live["spec"].items() if field not in _CHANGEABLE}
        spec = kept | {field: value for field, value in spec.items() if field in _CHANGEABLE}
    claim = _claim_spec(volume, group)
    names = {"name": volume.claim.name, "namespace": volume.claim.namespace}
    return (
        Child(
            PERSISTENT_VOLUMES,
            PERSISTENT_VOLUMES.manifest({"name": volume.name}, spec=spec),
            VOLUME,
            owned=volume.is_owned,
        ),
        Child(
            PERSISTENT_VOLUME_CLAIMS,
            PERSISTENT_VOLUME_CLAIMS.manifest(names, spec=claim),
            CREATE_ONLY,
            owned=volume.is_claim_owned,
        ),
    )


def _claim_spec(volume: Volume, group: LocalModelNodeGroupSpec) -> Object:
    return group.persistent_volume_claim_spec | {"volumeName": volume.name}


def outdated_fields(
    volume: Volume, group: LocalModelNodeGroupSpec, live: Object | None, claim: Object | None
) -> Iterator[str]:
    """Yields what keeps fields that its group has changed since, with those fields."""
    wanted = {field: value for field, value in group.persistent_volume_spec.items() if field not in _CHANGEABLE}
    for title, have, want in (
        (f"PersistentVolume {volume.name}", live, wanted),
        (f"PersistentVolumeClaim {volume.claim}", claim, _claim_spec(volume, group)),
    ):
        spec = dig(have, "spec") or {}
        fields = sorted(field for field, value in want.items() if not covers(spec.get(field), value, field))
        if have is not None and fields:
            yield f"{title} keeps its {', '.join(fields)}"


def is_released(live: Object | None) -> bool:
    """Returns whether the claim that a volume was bound to is gone: no other can be bound to it."""
    return bool(dig(live, "status", "phase") == "Released")


def unowned_objects(volumes: Mapping[str, Object], claims: Mapping[Key, Object]) -> tuple[tuple[Resource, Object], ...]:
    """Returns those of a cache's volumes and claims that no garbage collector would find."""
    found = (
        *((PERSISTENT_VOLUMES, volume) for volume in volumes.values()),
        *((PERSISTENT_VOLUME_CLAIMS, claim) for claim in claims.values()),
    )
    return tuple((resource, live) for resource, live in found if controller_of(live) is None)
