"""Objects in memory behind the cache's reading interface, for reading without a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from isvc.kube.objects import Key, Object
from isvc.kube.resource import Resource
from isvc.toolkit.reads import Read
from isvc.toolkit.store import OWNER, Indexer, owner_index


class MemoryReader:
    """A Reader of given objects. Every kind is served, and empty if it has no objects, unless it is `absent`.

    Indexes are those of the declared `reads`; their selections are not applied.
    """

    def __init__(
        self,
        objects: Iterable[tuple[Resource, Object]] = (),
        *,
        reads: Iterable[Read] = (),
        absent: Collection[Resource] = (),
    ) -> None:
        self._objects: dict[Resource, dict[Key, Object]] = {}
        self._indexers: dict[Resource, dict[str, Indexer]] = {}
        self._indexed: dict[tuple[Resource, str, str], set[Key]] = {}
        self._absent = frozenset(absent)
        self._editions: Counter[Resource] = Counter()
        self.declare(*reads)
        for resource, obj in objects:
            self.put(resource, obj)

    def declare(self, *reads: Read) -> None:
        """Indexes what these read. It is called before there are objects."""
        for read in reads:
            self._indexers.setdefault(read.resource, {}).update(read.indexers)

    def put(self, resource: Resource, obj: Object) -> None:
        key = Key.of(obj)
        self._editions[resource] += 1
        if (before := self._objects.get(resource, {}).get(key)) is not None:
            self._unindex(resource, before)
        self._objects.setdefault(resource, {})[key] = obj
        for entry in self._entries(resource, obj):
            self._indexed.setdefault(entry, set()).add(key)

    def remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        self._editions[resource] += 1
        self._unindex(resource, self._objects[resource].pop(Key(namespace, name)))

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return self._objects.get(resource, {}).get(Key(namespace if resource.namespaced else "", name))

    def keys(self, resource: Resource, index_name: str, value: str) -> Sequence[Key]:
        indexers = self._indexers_of(resource)
        if index_name not in indexers:
            raise KeyError(f"no index {index_name!r} of {resource}; declared: {', '.join(sorted(indexers))}")
        return sorted(self._indexed.get((resource, index_name, value), ()))

    def by_index(self, resource: Resource, index_name: str, value: str) -> list[Object]:
        return [self._objects[resource][key] for key in self.keys(resource, index_name, value)]

    def edition(self, resource: Resource) -> int:
        return self._editions[resource]

    def serves(self, resource: Resource) -> bool:
        return resource not in self._absent

    def all_keys(self, resource: Resource, namespace: str = "") -> Sequence[Key]:
        return sorted(key for key in self._objects.get(resource, {}) if namespace in ("", key.namespace))

    def list(self, resource: Resource, namespace: str = "") -> list[Object]:
        found = self._objects.get(resource, {}).items()
        return [obj for key, obj in found if namespace in ("", key.namespace)]

    def _indexers_of(self, resource: Resource) -> dict[str, Indexer]:
        return self._indexers.get(resource, {}) | {OWNER: owner_index}

    def _entries(self, resource: Resource, obj: Object) -> Iterable[tuple[Resource, str, str]]:
        for name, index in self._indexers_of(resource).items():
            for value in index(obj):
                yield resource, name, value

    def _unindex(self, resource: Resource, obj: Object) -> None:
        for entry in self._entries(resource, obj):
            self._indexed[entry].discard(Key.of(obj))
