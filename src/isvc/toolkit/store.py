"""Objects of one kind in memory, as JSON bytes that are decoded when an object is read.

A decoded object takes about six times the memory of its JSON and is walked by the garbage collector; most cached
objects are looked at once an hour. The last few that were decoded are kept, of all kinds together, so a reconcile that
reads the same object twice pays once. Objects that are read are shared: never change one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import orjson

from isvc.kube.objects import Key, Object, uid_of

log = logging.getLogger(__name__)

Indexer = Callable[[Object], Iterable[str]]

OWNER = "owner"
KEPT_DECODED = 256

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def owner_index(obj: Object) -> Iterable[str]:
    """Yields the uid of the owner that controls the object."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            yield reference["uid"]


class _Entry(msgspec.Struct, gc=False):  # the collector need not look at what cannot be part of a cycle
    raw: bytes
    version: int
    indexed: tuple[tuple[str, str], ...]


class Decoded:
    """The last objects that were decoded, of any number of stores."""

    def __init__(self) -> None:
        self._objects: dict[tuple[Store, Key], Object] = {}  # by store and key, in the order of last use

    def get(self, store: Store, key: Key) -> Object | None:
        obj = self._objects.pop((store, key), None)
        if obj is not None:
            self._objects[store, key] = obj
        return obj

    def keep(self, store: Store, key: Key, obj: Object) -> None:
        self._objects.pop((store, key), None)
        self._objects[store, key] = obj
        if len(self._objects) > KEPT_DECODED:
            del self._objects[next(iter(self._objects))]

    def drop(self, store: Store, key: Key) -> None:
        self._objects.pop((store, key), None)


class Store:
    def __init__(self, indexers: Mapping[str, Indexer] | None = None, decoded: Decoded | None = None) -> None:
        """`decoded` is shared with other stores."""
        self._indexers: dict[str, Indexer] = {OWNER: owner_index, **(indexers or {})}
        self._entries: dict[str, dict[str, _Entry]] = {}  # namespace, name
        self._index: dict[tuple[str, str], set[Key]] = {}
        self._decoded = decoded or Decoded()
        self.edition = 0  # grows with every change

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def __iter__(self) -> Iterator[Key]:
        return (Key(namespace, name) for namespace, names in self._entries.items() for name in names)

    def version(self, key: Key) -> int:
        """Returns the resourceVersion that is stored, or -1."""
        entry = self._entries.get(key.namespace, {}).get(key.name)
        return entry.version if entry else -1

    def holds_another(self, key: Key, obj: Object) -> bool:
        """Returns whether what is stored has the name of the object and another uid, without decoding it."""
        entry = self._entries.get(key.namespace, {}).get(key.name)
        uid = uid_of(obj)
        return entry is not None and bool(uid) and b'"uid":"%b"' % uid.encode() not in entry.raw

    def get(self, key: Key) -> Object | None:
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
        spaces = [namespace] if namespace else self._entries
        return sorted(Key(space, name) for space in spaces for name in self._entries.get(space, {}))

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
        indexed = tuple(dict.fromkeys(self._values(key, obj)))  # an indexer may name a value twice
        if before is None or before.indexed != indexed:
            if before is not None:
                self._unindex(key, before)
            for pair in indexed:
                self._index.setdefault(pair, set()).add(key)
        names[key.name] = _Entry(exact, version, indexed)
        self._decoded.keep(self, key, obj)

    def remove(self, key: Key) -> None:
        names = self._entries.get(key.namespace, {})
        entry = names.pop(key.name, None)
        if entry is not None:
            self.edition += 1
            self._unindex(key, entry)
            self._decoded.drop(self, key)
        if not names:
            self._entries.pop(key.namespace, None)

    def _values(self, key: Key, obj: Object) -> Iterator[tuple[str, str]]:
        """Yields what the object is found by. One that an indexer fails on is not found by it, and keeps none away."""
        for name, indexer in self._indexers.items():
            try:
                yield from [(name, str(value)) for value in indexer(obj)]
            except Exception as error:
                log.error("%s is not found by %s: %s: %s", key, name, type(error).__name__, error)

    def _unindex(self, key: Key, entry: _Entry) -> None:
        for pair in entry.indexed:
            keys = self._index[pair]
            keys.discard(key)
            if not keys:
                del self._index[pair]

    def _open(self, key: Key, entry: _Entry) -> Object:
        obj = self._decoded.get(self, key)
        if obj is None:
            obj = _decode(entry.raw)
            self._decoded.keep(self, key, obj)
        return obj
