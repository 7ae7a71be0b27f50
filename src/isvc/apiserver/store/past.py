"""The recent past: what happened since the compaction revision, from which watches resume and old lists are rebuilt.

An event is remembered by its revisions. What they were is read back from the log when somebody asks, which is seldom;
only a store without a log keeps them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

import msgspec

from isvc.apiserver.store.entry import DELETED, Entry, Event
from isvc.kube.errors import Gone

Collection: TypeAlias = dict[tuple[str, str], Entry]


class Revisions(Protocol):
    """Revisions that are no longer the newest ones of their objects."""

    def add(self, entry: Entry) -> None: ...

    def read(self, rv: int) -> Entry | None: ...

    def remove(self, rvs: list[int]) -> None: ...


class InMemory:
    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}

    def add(self, entry: Entry) -> None:
        self._entries[entry.rv] = entry

    def read(self, rv: int) -> Entry | None:
        return self._entries.get(rv)

    def remove(self, rvs: list[int]) -> None:
        for rv in rvs:
            self._entries.pop(rv, None)


class _Change(msgspec.Struct, gc=False, eq=False):
    rv: int
    type: str
    collection: str
    namespace: str
    name: str
    old: int  # the revision before; 0 if there was none
    size: int


class Past:
    def __init__(self, revisions: Revisions, current: Callable[[str, str, str], Entry | None]) -> None:
        self._revisions = revisions
        self._current = current
        self._changes: list[_Change] = []
        self.size = 0  # of what is remembered, in bytes
        self.compacted = 0

    def __len__(self) -> int:
        return len(self._changes)

    @property
    def middle(self) -> int:
        return self._changes[len(self._changes) // 2].rv

    def add(self, event: Event) -> None:
        entry, old = event.entry, event.old
        place = (entry.collection, entry.namespace, entry.name)
        self._changes.append(_Change(event.rv, event.type, *place, old.rv if old else 0, len(entry.raw)))
        self.size += len(entry.raw)
        for superseded in (old, entry if event.type == DELETED else None):
            if superseded:
                self._revisions.add(superseded)

    def since(self, rv: int, collection: str) -> Iterator[Event]:
        """Yields the events of a collection ("" for all) after `rv`, oldest first."""
        for change in self._changes[self._after(rv) :]:
            if collection in ("", change.collection):
                old = self._read(change, change.old) if change.old else None
                yield Event(change.rv, change.type, self._read(change, change.rv), old)

    def rewind(self, objects: Collection, collection: str, at: int) -> Collection:
        """Returns the objects of a collection as they were at a revision."""
        past, seen = dict(objects), set()
        for change in self._changes[self._after(at) :]:
            key = (change.namespace, change.name)
            if change.collection != collection or key in seen:
                continue
            seen.add(key)
            if change.old:
                past[key] = self._read(change, change.old)
            else:
                past.pop(key, None)
        return past

    def compact(self, through: int) -> list[int] | None:
        """Forgets the events up to and including a revision; returns those that are gone for good, None if none was."""
        cut = self._after(through)
        if not cut:
            return None
        forgotten = self._changes[:cut]
        del self._changes[:cut]
        self.compacted = forgotten[-1].rv
        self.size -= sum(change.size for change in forgotten)
        rvs = [change.old for change in forgotten if change.old]
        rvs += [change.rv for change in forgotten if change.type == DELETED]
        self._revisions.remove(rvs)
        return rvs

    def _after(self, rv: int) -> int:
        return bisect_right(self._changes, rv, key=lambda change: change.rv)

    def _read(self, change: _Change, rv: int) -> Entry:
        current = self._current(change.collection, change.namespace, change.name)
        found = current if current is not None and current.rv == rv else self._revisions.read(rv)
        if found is None:  # compacted, while somebody took long to read
            raise Gone(f"too old resource version: {rv} ({self.compacted})")
        return found
