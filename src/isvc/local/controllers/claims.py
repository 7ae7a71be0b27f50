"""PersistentVolumeClaims are folders here, which are always there: every claim is bound as soon as it is seen."""

from __future__ import annotations

from isvc.kube.objects import Key, dig, is_being_deleted
from isvc.kube.resource import PERSISTENT_VOLUME_CLAIMS
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Watch


def controller(context: Context) -> Controller:
    async def reconcile(key: Key) -> None:
        claim = context.cache.get(PERSISTENT_VOLUME_CLAIMS, key.name, key.namespace)
        if claim is None or is_being_deleted(claim) or dig(claim, "status", "phase") == "Bound":
            return
        capacity = dig(claim, "spec", "resources", "requests") or {}
        status = {"phase": "Bound", "accessModes": dig(claim, "spec", "accessModes") or [], "capacity": capacity}
        await context.write_status(PERSISTENT_VOLUME_CLAIMS, claim, status)

    return Controller("persistentvolumeclaim", reconcile, [Watch(PERSISTENT_VOLUME_CLAIMS)])
