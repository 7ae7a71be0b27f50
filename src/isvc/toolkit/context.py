"""What a controller is made of: client, cache, event recorder and clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from isvc.kube.errors import AlreadyExists, NotFound
from isvc.kube.objects import (
    Key,
    Object,
    annotations_of,
    finalizers_of,
    is_being_deleted,
    name_of,
    namespace_of,
    uid_of,
)
from isvc.kube.resource import Resource
from isvc.kube.timestamps import timestamp
from isvc.toolkit.cache import Memory
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock
from isvc.toolkit.recorder import EventSource


@dataclass(frozen=True, slots=True)
class Context:
    client: Client
    cache: Memory
    recorder: EventSource
    clock: Clock

    def timestamp(self) -> str:
        """Returns the time of now as objects have it."""
        return timestamp(self.clock.now())

    def find(self, resource: Resource, key: Key) -> Object | None:
        """Returns an object of the cache, unless it is gone or on its way out."""
        found = self.cache.get(resource, key.name, key.namespace)
        return None if found is None or is_being_deleted(found) else found

    async def create(self, resource: Resource, obj: Object) -> Object:
        """Returns the object as it was created, which the cache knows at once. Raises AlreadyExists."""
        answer = await self.client.create(resource, obj)
        self.cache.note(resource, answer)
        return answer

    async def create_or_get(self, resource: Resource, obj: Object) -> Object:
        """Returns the object as it was created, or the one of its name that the cache had not seen yet."""
        try:
            return await self.create(resource, obj)
        except AlreadyExists:
            found = await self.client.get(resource, name_of(obj), namespace_of(obj))
            self.cache.note(resource, found)
            return found

    async def update(self, resource: Resource, obj: Object) -> Object:
        """Returns the object after it was replaced, which the cache knows at once."""
        answer = await self.client.update(resource, obj)
        self.cache.note(resource, answer)
        return answer

    async def delete(self, resource: Resource, obj: Object, *, propagation: str | None = None) -> Object | None:
        """Deletes this very object, and returns what the API server says of it; None if it was gone already."""
        name, namespace = name_of(obj), namespace_of(obj)
        try:
            return await self.client.delete(resource, name, namespace, uid=uid_of(obj), propagation=propagation)
        except NotFound:
            return None

    async def patch(self, resource: Resource, obj: Object, patch: Object, *, subresource: str = "") -> Object:
        """Returns this very object after a merge patch, which the cache knows at once.

        Raises Conflict where another one has its name by now, and Invalid on a kube-apiserver.
        """
        patch = {**patch, "metadata": {"uid": uid_of(obj), **(patch.get("metadata") or {})}}
        answer = await self.client.patch(resource, name_of(obj), patch, namespace_of(obj), subresource=subresource)
        self.cache.note(resource, answer)
        return answer

    async def write_status(
        self, resource: Resource, obj: Object, status: Object, annotations: Mapping[str, str] | None = None
    ) -> None:
        """Writes the status as a whole, if it says something new; an object that is gone needs none.

        `annotations` come with it, where the API server takes such.
        """
        before, new = obj.get("status") or {}, (annotations or {}).items() - annotations_of(obj).items()
        if status == before and not new:
            return
        metadata = {"annotations": dict(new)} if new else {}
        patch = {"metadata": metadata, "status": _replacing_patch(before, status)}
        try:
            await self.patch(resource, obj, patch, subresource="status")
        except NotFound:
            return

    async def remove_finalizer(self, resource: Resource, obj: Object, finalizer: str) -> None:
        """Takes a finalizer from an object, if it is there and has it."""
        if finalizer not in finalizers_of(obj):
            return
        others = [each for each in finalizers_of(obj) if each != finalizer]
        try:
            await self.patch(resource, obj, {"metadata": {"finalizers": others or None}})
        except NotFound:
            return


def _replacing_patch(before: Object, after: Object) -> Object:
    """Returns the merge patch that leaves nothing of `before` where `after` is silent."""
    gone = {key: None for key in before if key not in after}
    return gone | {
        key: _replacing_patch(before[key], value)
        if isinstance(value, dict) and isinstance(before.get(key), dict)
        else value
        for key, value in after.items()
    }
