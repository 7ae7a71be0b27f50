"""Objects in memory behind the cache's reading interface, for reading without a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from isvc.kube.objects import Key, Object
from isvc.kube.resource import Resource
from isvc.toolkit.reads import Declaration, Read, merge
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
        self._indexers = _indexers(reads)
        self._absent = frozenset(absent)
        for resource, obj in objects:
            self.put(resource, obj)

    def put(self, resource: Resource, obj: Object) -> None:
        self._objects.setdefault(resource, {})[Key.of(obj)] = obj

    def remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        del self._objects[resource][Key(namespace, name)]

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return self._objects.get(resource, {}).get(Key(namespace if resource.namespaced else "", name))

    def keys(self, resource: Resource, index_name: str, value: str) -> Sequence[Key]:
        indexers = self._indexers.get(resource, {}) | {OWNER: owner_index}
        if index_name not in indexers:
            raise KeyError(f"no index {index_name!r} of {resource}; declared: {', '.join(sorted(indexers))}")
        index = indexers[index_name]
        return sorted(key for key, obj in self._objects.get(resource, {}).items() if value in index(obj))

    def by_index(self, resource: Resource, index_name: str, value: str) -> list[Object]:
        return [self._objects[resource][key] for key in self.keys(resource, index_name, value)]

    def serves(self, resource: Resource) -> bool:
        return resource not in self._absent

    def list(self, resource: Resource, namespace: str = "") -> list[Object]:
        found = self._objects.get(resource, {}).items()
        return [obj for key, obj in found if namespace in ("", key.namespace)]


def _indexers(reads: Iterable[Read]) -> dict[Resource, dict[str, Indexer]]:
    declared: dict[Resource, list[Declaration]] = {}
    for read in reads:
        declared.setdefault(read.resource, []).append(Declaration("reader", read))
    return {resource: dict(merge(each)[0].indexers) for resource, each in declared.items()}
