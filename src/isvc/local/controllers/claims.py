"""PersistentVolumeClaims are folders here, which are always there: every claim is bound as soon as it is seen.

So is a PersistentVolume that a claim names.

A claim that is deleted goes once no pod uses it any more, and a volume once its claim is gone, as the protection of
kube-controller-manager has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isvc.kube.objects import Key, Object, dig, is_being_deleted, name_of, namespace_of, uid_of
from isvc.kube.pods import is_terminal
from isvc.kube.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Watch

PROTECTION: Final = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"


def controller(context: Context) -> Controller:
    async def reconcile(key: Key) -> None:
        claim = context.cache.get(PERSISTENT_VOLUME_CLAIMS, key.name, key.namespace)
        for volume in context.cache.list(PERSISTENT_VOLUMES):
            if is_being_deleted(volume) and _bound_to(volume) == key and not _is_used(volume, claim):
                await context.remove_finalizer(PERSISTENT_VOLUMES, volume, VOLUME_PROTECTION)
        if claim is None:
            return
        if is_being_deleted(claim):
            if not any(key in claims_of(pod) for pod in context.cache.list(PODS, key.namespace)):
                await context.remove_finalizer(PERSISTENT_VOLUME_CLAIMS, claim, PROTECTION)
            return
        if dig(claim, "status", "phase") != "Bound":
            capacity = dig(claim, "spec", "resources", "requests") or {}
            status = {"phase": "Bound", "accessModes": dig(claim, "spec", "accessModes") or [], "capacity": capacity}
            await context.write_status(PERSISTENT_VOLUME_CLAIMS, claim, status)
        await _bind_volume(context, claim)

    def claims_on(volume: Object) -> Iterable[Key]:
        claims = context.cache.list(PERSISTENT_VOLUME_CLAIMS)
        naming = (Key.of(claim) for claim in claims if dig(claim, "spec", "volumeName") == name_of(volume))
        return [_bound_to(volume), *naming]

    watches = [
        Watch(PERSISTENT_VOLUME_CLAIMS),
        Watch(PERSISTENT_VOLUMES, to=claims_on, when=_comes_or_goes),
        Watch(PODS, to=_named_by, when=_ceases),
    ]
    return Controller("persistentvolumeclaim", reconcile, watches)


async def _bind_volume(context: Context, claim: Object) -> None:
    name = dig(claim, "spec", "volumeName")
    volume = context.cache.get(PERSISTENT_VOLUMES, name) if name else None
    if volume is not None and (dig(volume, "status", "phase") != "Bound" or not _is_used(volume, claim)):
        bound = {"name": name_of(claim), "namespace": namespace_of(claim), "uid": uid_of(claim)}
        patch = {"spec": {"claimRef": PERSISTENT_VOLUME_CLAIMS.typed(bound)}}
        volume = await context.patch(PERSISTENT_VOLUMES, volume, patch)
        await context.write_status(PERSISTENT_VOLUMES, volume, {"phase": "Bound"})


def _bound_to(volume: Object) -> Key:
    """Returns the claim of a volume; that of one without any does not exist."""
    reference = dig(volume, "spec", "claimRef") or {}
    return Key(reference.get("namespace", ""), reference.get("name", ""))


def _is_used(volume: Object, claim: Object | None) -> bool:
    """Returns whether this is the claim of a volume, and not one that came after it under its name."""
    return claim is not None and dig(volume, "spec", "claimRef", "uid") in (None, uid_of(claim))


def _comes_or_goes(before: Object | None, after: Object | None) -> bool:
    return before is None or (after is not None and is_being_deleted(after))


def claims_of(pod: Object) -> set[Key]:
    """Returns the claims that a pod uses: none once all of its containers have ended."""
    return set() if is_terminal(pod) else set(_named_by(pod))


def _named_by(pod: Object) -> Iterable[Key]:
    for volume in dig(pod, "spec", "volumes") or ():
        if name := dig(volume, "persistentVolumeClaim", "claimName"):
            yield Key(namespace_of(pod), name)


def _ceases(before: Object | None, after: Object | None) -> bool:
    return after is None or (before is not None and is_terminal(after) and not is_terminal(before))
