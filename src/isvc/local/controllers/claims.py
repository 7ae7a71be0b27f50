"""PersistentVolumeClaims are folders here, which are always there: every claim is bound as soon as it is seen."""

from __future__ import annotations

from isvc.kube.errors import NotFound
from isvc.kube.objects import Key, dig, is_being_deleted
from isvc.kube.resource import PERSISTENT_VOLUME_CLAIMS
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client
from isvc.toolkit.controller import Controller, Watch


def controller(client: Client, cache: Cache) -> Controller:
    async def reconcile(key: Key) -> None:
        claim = cache.get(PERSISTENT_VOLUME_CLAIMS, key.name, key.namespace)
        if claim is None or is_being_deleted(claim) or dig(claim, "status", "phase") == "Bound":
            return
        capacity = dig(claim, "spec", "resources", "requests") or {}
        status = {"phase": "Bound", "accessModes": dig(claim, "spec", "accessModes") or [], "capacity": capacity}
        try:
            answer = await client.patch(
                PERSISTENT_VOLUME_CLAIMS, key.name, {"status": status}, key.namespace, subresource="status"
            )
        except NotFound:
            return
        cache.note(PERSISTENT_VOLUME_CLAIMS, answer)

    return Controller("persistentvolumeclaim", reconcile, [Watch(PERSISTENT_VOLUME_CLAIMS)])
