"""The cache: optional kinds follow their CRDs, for a watch on the names of all CRDs shows when to look for them again.

Objects that are read are shared: never change one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import NamedTuple, Protocol

from isvc.kube.objects import Key, Object, resource_version_of
from isvc.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource
from isvc.toolkit.cache.informer import Handler, Informer
from isvc.toolkit.cache.mirror import Mirror
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock, SystemClock
from isvc.toolkit.reads import ConflictingReads, Declaration, Read, merge
from isvc.toolkit.store import Decoded
from isvc.toolkit.tasks import cancel

log = logging.getLogger(__name__)


class Reader(Protocol):
    """Reads from memory alone. What it returns is shared: never change it."""

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None: ...

    def by_index(self, resource: Resource, index_name: str, value: str) -> list[Object]: ...

    def keys(self, resource: Resource, index_name: str, value: str) -> Sequence[Key]:
        """Returns the names of `by_index`, where they are enough: nothing has to be decoded."""
        ...

    def all_keys(self, resource: Resource, namespace: str = "") -> Sequence[Key]:
        """Returns the names of `list`, where they are enough or objects are read one by one: none stays decoded."""
        ...

    def list(self, resource: Resource, namespace: str = "") -> list[Object]: ...

    def edition(self, resource: Resource) -> int:
        """Returns another number after every change of the kind: what was made of its objects is good until then."""
        ...

    def serves(self, resource: Resource) -> bool:
        """Returns False when the cluster does not have this kind."""
        ...


class Memory(Reader, Protocol):
    """A reader that notes our own writes, so that the next read sees them."""

    def note(self, resource: Resource, obj: Object, *, owner: Object | None = None) -> None: ...


class OwnWrites(NamedTuple):
    """The versions that a reconcile has written for the object that it is about.

    A write of a reconcile comes back as an event of the watch. A controller that ignores such events has to
    distinguish them from events that others caused, among them other controllers of the same kind.
    """

    kind: str
    key: Key
    versions: set[str]


_UNDER_WAY: ContextVar[OwnWrites | None] = ContextVar("own writes of the reconcile under way", default=None)


@contextmanager
def record_own_writes(kind: str, key: Key) -> Iterator[set[str]]:
    """Yields the set to which each version is added that this task writes for the object meanwhile."""
    own = OwnWrites(kind, key, set())
    token = _UNDER_WAY.set(own)
    try:
        yield own.versions
    finally:
        _UNDER_WAY.reset(token)


def _add_own_write(owner: Object, written: Object) -> None:
    own = _UNDER_WAY.get()
    if own is not None and (own.kind, own.key) == (owner.get("kind", ""), Key.of(owner)):
        own.versions.add(resource_version_of(written))


class Cache:
    def __init__(
        self,
        client: Client,
        clock: Clock | None = None,
        namespaces: Sequence[str] = (),
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        """`namespaces` are all that may be read; without any, the whole cluster is.

        `on_lost` is called whenever the server cannot be reached, and what is in memory may be old.
        """
        self._on_lost = on_lost
        self._client = client
        self._namespaces = tuple(namespaces)
        self._clock = clock or SystemClock()
        self._declarations: dict[Resource, list[Declaration]] = {}
        self._waiting: dict[Resource, list[tuple[Handler, bool]]] = {}  # subscribed before there was a mirror
        self._mirrors: dict[Resource, Mirror] = {}  # built at the start, or when first read
        self._decoded = Decoded()
        self._crds = Informer(client, _CRD_NAMES, self._clock, decoded=self._decoded)
        self._tasks: list[asyncio.Task[None]] = []

    def declare(self, part: str, *reads: Read) -> None:
        """Keeps in memory what this part of the program reads. All parts declare before the cache starts.

        Raises ConflictingReads if that cannot be served together with what others have declared.
        """
        for read in reads:
            if read.resource in self._mirrors:
                raise ConflictingReads(f"{part} declares a read of {read.resource} too late: it is in use already")
            allowed = (Declaration(part, each) for each in self._within_namespaces(read))
            declared = [*self._declarations.get(read.resource, ()), *allowed]
            merge(declared)
            self._declarations[read.resource] = declared

    def subscribe(self, resource: Resource, handler: Handler, *, before: bool = True) -> None:
        """Calls the handler with each change; see Informer.subscribe."""
        if resource in self._mirrors:
            self._mirrors[resource].subscribe(handler, before=before)
        else:
            self._waiting.setdefault(resource, []).append((handler, before))

    def count(self) -> int:
        """Returns how many objects are in memory, of all kinds."""
        return sum(len(informer.store) for mirror in self._mirrors.values() for informer in mirror.informers)

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return self._mirror(resource).get(Key(namespace if resource.namespaced else "", name))

    def by_index(self, resource: Resource, index_name: str, value: str) -> list[Object]:
        return self._mirror(resource).by_index(index_name, value)

    def keys(self, resource: Resource, index_name: str, value: str) -> Sequence[Key]:
        return self._mirror(resource).keys(index_name, value)

    def all_keys(self, resource: Resource, namespace: str = "") -> Sequence[Key]:
        return self._mirror(resource).all_keys(namespace)

    def list(self, resource: Resource, namespace: str = "") -> list[Object]:
        return self._mirror(resource).list(namespace)

    def edition(self, resource: Resource) -> int:
        return self._mirror(resource).edition

    def serves(self, resource: Resource) -> bool:
        mirror = self._mirrors.get(resource)
        return mirror is not None and mirror.synced

    def forbids(self, resource: Resource) -> bool:
        """Returns whether the cluster does not let us read this kind, or not all that was declared of it."""
        mirror = self._mirrors.get(resource)
        return mirror is not None and mirror.forbidden

    def note(self, resource: Resource, obj: Object, *, owner: Object | None = None) -> None:
        """Takes the answer to a write of ours, made for `owner`: reads see it before the watch brings it."""
        if owner is not None:
            _add_own_write(owner, obj)
        if resource in self._mirrors:
            self._mirrors[resource].note(obj)

    def start(self) -> None:
        """Starts to read, unless another manager that shares the cache has started it."""
        if self._tasks:
            return
        for resource in (*self._declarations, *self._waiting):
            self._mirror(resource)
        informers = [informer for mirror in self._mirrors.values() for informer in mirror.informers]
        if not self._namespaces and any(informer.read.optional for informer in informers):
            self._crds.subscribe(self._crds_changed, before=False)
            informers.append(self._crds)
        self._tasks = [
            asyncio.create_task(informer.run(), name=f"informer {informer.resource}") for informer in informers
        ]

    async def wait_for_sync(self) -> None:
        """Waits until every kind has been listed, or is known to be missing."""
        await asyncio.gather(*(mirror.wait_for_sync() for mirror in self._mirrors.values()))

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        await cancel(*tasks)

    def _within_namespaces(self, read: Read) -> Iterable[Read]:
        """Yields the read for each namespace where not all may be read; none of a kind that belongs to the cluster."""
        if not self._namespaces or read.namespace:
            return (read,)
        return (replace(read, namespace=each) for each in self._namespaces if read.resource.namespaced)

    def _mirror(self, resource: Resource) -> Mirror:
        mirror = self._mirrors.get(resource)
        if mirror is None:
            if resource not in self._declarations:
                raise KeyError(f"no part of the program has declared to read {resource}")
            selections = merge(self._declarations[resource])
            informers = (Informer(self._client, each, self._clock, self._on_lost, self._decoded) for each in selections)
            mirror = Mirror(tuple(informers))
            self._mirrors[resource] = mirror
            for handler, before in self._waiting.pop(resource, ()):
                mirror.subscribe(handler, before=before)
        return mirror

    def _crds_changed(self, before: Object | None, after: Object | None) -> None:
        name = (after or before or {})["metadata"]["name"]
        for resource, mirror in self._mirrors.items():
            if str(resource) == name:
                for informer in mirror.informers:
                    informer.nudge(hopeful=after is not None)


def _name_only(crd: Object) -> Object:
    metadata = {name: crd["metadata"].get(name) for name in ("name", "uid", "resourceVersion")}
    return {"apiVersion": crd["apiVersion"], "kind": crd["kind"], "metadata": metadata}


_CRD_NAMES = Read(CUSTOM_RESOURCE_DEFINITIONS, optional=True, metadata_only=True, transform=_name_only)
