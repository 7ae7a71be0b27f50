"""What the cluster holds, as far as we care, readable at any moment without waiting.

A Cache runs one informer per kind. Optional kinds follow their CRDs: one watch on the names of all CRDs tells when to
look for them again. Objects that are read are shared: never change one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Protocol

from isvc.kube.objects import Key, Object, namespace_of, resource_version_of
from isvc.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock, SystemClock
from isvc.toolkit.informer import Handler, Informer, Selection, Transform
from isvc.toolkit.store import OWNER, Indexer

__all__ = ["OWNER", "Cache", "Reader"]

log = logging.getLogger(__name__)

# The versions that the reconcile under way has written itself, for a controller that wants to know.
own_writes: ContextVar[set[str] | None] = ContextVar("own_writes", default=None)


class Reader(Protocol):
    """Reads from memory alone. What it returns is shared: never change it."""

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None: ...

    def by_index(self, resource: Resource, index_name: str, value: str) -> list[Object]: ...

    def list(self, resource: Resource, namespace: str = "") -> list[Object]: ...

    def serves(self, resource: Resource) -> bool:
        """False when the cluster does not have this kind."""
        ...


class Cache:
    def __init__(self, client: Client, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._informers: dict[Resource, Informer] = {}
        self._tasks: dict[Resource, asyncio.Task[None]] = {}
        self._running = False

    def watch(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        optional: bool = False,
        metadata_only: bool = False,
        transform: Transform | None = None,
        indexers: Mapping[str, Indexer] | None = None,
    ) -> None:
        """Mirror this kind. Whoever says it first chooses the selection; later callers may add indexers."""
        informer = self._informers.get(resource)
        if informer is None:
            selection = Selection(namespace, labels, fields, metadata_only, optional, transform, indexers or {})
            informer = self._informers[resource] = Informer(self._client, resource, selection, self._clock)
            if self._running:
                self._launch(informer)
        else:
            informer.store.add_indexers(indexers or {})
            if informer.selection.optional and not optional:
                informer.selection = replace(informer.selection, optional=False)

    def subscribe(self, resource: Resource, handler: Handler, *, before: bool = True) -> None:
        """Tell of each change; see Informer.subscribe."""
        self._informers[resource].subscribe(handler, before=before)

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return self._informers[resource].store.get(Key(namespace if resource.namespaced else "", name))

    def by_index(self, resource: Resource, index_name: str, value: str) -> list[Object]:
        return self._informers[resource].store.by_index(index_name, value)

    def keys(self, resource: Resource, index_name: str, value: str) -> Sequence[Key]:
        """As `by_index`, for whom the names are enough: nothing has to be decoded."""
        return self._informers[resource].store.keys(index_name, value)

    def list(self, resource: Resource, namespace: str = "") -> list[Object]:
        return self._informers[resource].store.list(namespace)

    def serves(self, resource: Resource) -> bool:
        informer = self._informers.get(resource)
        return informer is not None and informer.synced

    def note(self, resource: Resource, obj: Object) -> None:
        """The answer to a write of ours: reads see it at once, and its watch event will be no news."""
        own = own_writes.get()
        if own is not None:
            own.add(resource_version_of(obj))
        informer = self._informers.get(resource)
        if informer is not None and informer.selection.namespace in ("", namespace_of(obj)):
            informer.note(obj)

    @property
    def watched(self) -> tuple[Resource, ...]:
        return tuple(self._informers)

    def start(self) -> None:
        self._running = True
        if any(informer.selection.optional for informer in self._informers.values()):
            self.watch(CUSTOM_RESOURCE_DEFINITIONS, metadata_only=True, optional=True, transform=_name_only)
            self.subscribe(CUSTOM_RESOURCE_DEFINITIONS, self._crds_changed, before=False)
        for informer in self._informers.values():
            self._launch(informer)

    async def synced(self) -> None:
        """Wait until every kind has been listed, or is known to be missing."""
        waits = [informer.settled() for informer in self._informers.values()]
        await asyncio.gather(*waits)

    async def stop(self) -> None:
        self._running = False
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _launch(self, informer: Informer) -> None:
        name = f"informer {informer.resource}"
        self._tasks[informer.resource] = asyncio.create_task(informer.run(), name=name)

    def _crds_changed(self, before: Object | None, after: Object | None) -> None:
        name = (after or before or {})["metadata"]["name"]
        for resource, informer in self._informers.items():
            if str(resource) == name:
                informer.nudge(hopeful=after is not None)


def _name_only(crd: Object) -> Object:
    metadata = {name: crd["metadata"].get(name) for name in ("name", "uid", "resourceVersion")}
    return {"apiVersion": crd["apiVersion"], "kind": crd["kind"], "metadata": metadata}
