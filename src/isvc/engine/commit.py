"""Writes to the owner itself: status, finalizers, labels, annotations."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from isvc.kube.conditions import FALSE, TRUE, find
from isvc.kube.errors import NotFound
from isvc.kube.objects import (
    Object,
    annotations_of,
    finalizers_of,
    labels_of,
    name_of,
    namespace_of,
    resource_version_of,
)
from isvc.kube.readiness import READY
from isvc.kube.resource import Resource

PATIENCE = 1.0  # for which a status lets children of others go first, while these are many
PATIENCE_OF_READY = 2.5  # the same of an object that was ready: what has to run for it runs


class Patcher(Protocol):
    async def patch(
        self, resource: Resource, name: str, patch: object, namespace: str = "", *, subresource: str = ""
    ) -> Object: ...

    async def update(
        self, resource: Resource, obj: Object, *, subresource: str = "", patience: float = 0.0
    ) -> Object: ...


class Noted(Protocol):
    def note(self, resource: Resource, obj: Object, *, owner: Object | None = None) -> None: ...


class Commit:
    def __init__(self, client: Patcher, memory: Noted) -> None:
        self._client = client
        self._memory = memory

    async def status(self, resource: Resource, owner: Object, status: Object) -> Object | None:
        """Writes the status and returns the written owner; None if that is gone.

        The write replaces the status that was read: a Conflict is raised when the owner has changed since.
        """
        patience = patience_of(owner.get("status") or {}, status)
        try:
            written = await self._client.update(
                resource, {**owner, "status": status}, subresource="status", patience=patience
            )
        except NotFound:
            return None  # deleted meanwhile
        self._memory.note(resource, written, owner=written)
        return written

    async def metadata(
        self,
        resource: Resource,
        owner: Object,
        *,
        finalizers: list[str] | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        spec: Object | None = None,
    ) -> Object | None:
        """Gives the owner these finalizers and, beside its others, these labels and annotations; None if it has them.

        A patch of the spec goes with that write, and causes none of its own. A Conflict is raised when the owner has
        changed since it was read: whoever counts this write as its own would else take another's edit for it.
        """
        wanted = {"labels": (labels, labels_of(owner)), "annotations": (annotations, annotations_of(owner))}
        change: Object = {
            field: missing
            for field, (given, found) in wanted.items()
            if (missing := {key: value for key, value in (given or {}).items() if found.get(key) != value})
        }
        if finalizers is not None and finalizers != finalizers_of(owner):
            change["finalizers"] = finalizers
        if not change:
            return None
        change["resourceVersion"] = resource_version_of(owner)
        patch = {"metadata": change, **({"spec": spec} if spec else {})}
        written = await self._client.patch(resource, name_of(owner), patch, namespace_of(owner))
        self._memory.note(resource, written, owner=written)
        return written

    async def remove_finalizer(self, resource: Resource, owner: Object, finalizer: str) -> None:
        others = [other for other in finalizers_of(owner) if other != finalizer]
        with suppress(NotFound):
            await self.metadata(resource, owner, finalizers=others)


def patience_of(before: Object, after: Object) -> float:
    """Returns for how long a status may wait: not at all if the object became ready, or is known to be so no longer."""
    was, now = ((find(each.get("conditions") or (), READY) or {}).get("status") for each in (before, after))
    if was == TRUE:
        return 0.0 if now == FALSE else PATIENCE_OF_READY
    return 0.0 if now == TRUE else PATIENCE
