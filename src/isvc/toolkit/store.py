"""Objects of one kind in memory, as JSON bytes that are decoded when an object is read.

A decoded object takes about six times the memory of its JSON and is walked by the garbage collector; most cached
objects are looked at once an hour. The last few that were decoded are kept, so a reconcile that reads the same
object twice pays once. Objects that are read are shared: never change one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import orjson

from isvc.kube.objects import Key, Object

Indexer = Callable[[Object], Iterable[str]]

OWNER = "owner"
KEPT_DECODED = 128

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def owner_index(obj: Object) -> Iterable[str]:
    """Yields the uid of the owner that controls the object."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            yield reference["uid"]


class _Entry:
    __slots__ = ("indexed", "raw", "version")

    def __init__(self, raw: bytes, version: int, indexed: tuple[tuple[str, str], ...]) -> None:
        self.raw = raw
        self.version = version
        self.indexed = indexed


class Store:
    def __init__(self, indexers: Mapping[str, Indexer] | None = None) -> None:
        self._indexers: dict[str, Indexer] = {OWNER: owner_index, **(indexers or {})}
        self._entries: dict[str, dict[str, _Entry]] = {}  # namespace, name
        self._index: dict[tuple[str, str], set[Key]] = {}
        self._decoded: dict[Key, Object] = {}  # in the order of last use
        self.edition = 0  # grows with every change

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def __iter__(self) -> Iterator[Key]:
        return (Key(namespace, name) for namespace, names in self._entries.items() for name in names)

    def version(self, key: Key) -> int:
        """Returns the resourceVersion that is stored, or -1."""
        entry = self._entries.get(key.namespace, {}).get(key.name)
        return entry.version if entry else -1

    def get(self, key: Key) -> Object | None:
        decoded = self._decoded
        if (obj := decoded.pop(key, None)) is not None:
            decoded[key] = obj
            return obj
        entry = self._entries.get(key.namespace, {}).get(key.name)
        return self._open(key, entry) if entry else None

    def by_index(self, index: str, value: str) -> list[Object]:
        return [obj for key in self.keys(index, value) if (obj := self.get(key)) is not None]

    def keys(self, index: str, value: str) -> Sequence[Key]:
        if index not in self._indexers:
            raise KeyError(f"no index {index!r}; declared: {', '.join(sorted(self._indexers))}")
        found = self._index.get((index, value))
        return sorted(found) if found else ()

    def all_keys(self, namespace: str = "") -> Sequence[Key]:
        return sorted(key for key in self if namespace in ("", key.namespace))

    def list(self, namespace: str = "") -> list[Object]:
        spaces = [namespace] if namespace else list(self._entries)
        return [
            self._open(Key(space, name), entry)
            for space in spaces
            for name, entry in self._entries.get(space, {}).items()
        ]

    def put(self, key: Key, obj: Object, version: int) -> None:
        """Stores the object, which is shared from now on: the caller does not change it either.

        Raises TypeError for an object that is nested too deeply to be written as JSON.
        """
        exact = bytes(memoryview(orjson.dumps(obj)))  # orjson leaves its buffer around what it returns
        self.edition += 1
        names = self._entries.setdefault(key.namespace, {})
        before = names.get(key.name)
        values = ((name, value) for name, indexer in self._indexers.items() for value in indexer(obj))
        indexed = tuple(dict.fromkeys(values))  # an indexer may name a value twice
        if before is None or before.indexed != indexed:
            if before is not None:
                self._unindex(key, before)
            for pair in indexed:
                self._index.setdefault(pair, set()).add(key)
        names[key.name] = _Entry(exact, version, indexed)
        self._keep(key, obj)

    def remove(self, key: Key) -> None:
        names = self._entries.get(key.namespace, {})
        entry = names.pop(key.name, None)
        if entry is not None:
            self.edition += 1
            self._unindex(key, entry)
            self._decoded.pop(key, None)
        if not names:
            self._entries.pop(key.namespace, None)

    def _unindex(self, key: Key, entry: _Entry) -> None:
        for pair in entry.indexed:
            keys = self._index[pair]
            keys.discard(key)
            if not keys:
                del self._index[pair]

    def _open(self, key: Key, entry: _Entry) -> Object:
        obj = self._decoded.get(key)
        if obj is None:
            obj = _decode(entry.raw)
        self._keep(key, obj)
        return obj

    def _keep(self, key: Key, obj: Object) -> None:
        self._decoded.pop(key, None)
        self._decoded[key] = obj
        if len(self._decoded) > KEPT_DECODED:
            del self._decoded[next(iter(self._decoded))]
