"""PersistentVolumeClaims are folders here, which are always there: every claim is bound as soon as it is seen.

A claim that is deleted goes once no pod uses it any more, as the protection of kube-controller-manager has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isvc.kube.objects import Key, Object, dig, is_being_deleted, namespace_of
from isvc.kube.resource import PERSISTENT_VOLUME_CLAIMS, PODS
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Watch

PROTECTION: Final = "kubernetes.io/pvc-protection"


def controller(context: Context) -> Controller:
    async def reconcile(key: Key) -> None:
        claim = context.cache.get(PERSISTENT_VOLUME_CLAIMS, key.name, key.namespace)
        if claim is None:
            return
        if is_being_deleted(claim):
            if not any(key in claims_of(pod) for pod in context.cache.list(PODS, key.namespace)):
                await context.remove_finalizer(PERSISTENT_VOLUME_CLAIMS, claim, PROTECTION)
        elif dig(claim, "status", "phase") != "Bound":
            capacity = dig(claim, "spec", "resources", "requests") or {}
            status = {"phase": "Bound", "accessModes": dig(claim, "spec", "accessModes") or [], "capacity": capacity}
            await context.write_status(PERSISTENT_VOLUME_CLAIMS, claim, status)

    watches = [Watch(PERSISTENT_VOLUME_CLAIMS), Watch(PODS, to=_named_by, when=_ceases)]
    return Controller("persistentvolumeclaim", reconcile, watches)


def claims_of(pod: Object) -> set[Key]:
    """Returns the claims that a pod uses: none once all of its containers have ended."""
    return set() if _has_ended(pod) else set(_named_by(pod))


def _named_by(pod: Object) -> Iterable[Key]:
    for volume in dig(pod, "spec", "volumes") or ():
        if name := dig(volume, "persistentVolumeClaim", "claimName"):
            yield Key(namespace_of(pod), name)


def _ceases(before: Object | None, after: Object | None) -> bool:
    return after is None or (before is not None and _has_ended(after) and not _has_ended(before))


def _has_ended(pod: Object) -> bool:
    return dig(pod, "status", "phase") in ("Succeeded", "Failed")
