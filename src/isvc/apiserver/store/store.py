"""The store: what is committed, what is about to be, and the recent past.

Three views, all in memory:
- the collections: committed objects, which every read and watch sees;
- the heads: the newest revision of objects with a write under way, which only writers see, so that two of them cannot
  both win;
- the past: events since the compaction revision, from which watches resume and old lists are rebuilt.

A write takes the next revision, is encoded once, goes to the log, and becomes visible when the log has it. If a commit
fails, every write queued behind it fails too, since it may have been based on what was lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import TypeAlias

from isvc.apiserver.store.entry import ADDED, DELETED, MODIFIED, Entry, Event, encode, labels_in
from isvc.apiserver.store.log import Compaction, Log, Row, Unusable, entry_of
from isvc.apiserver.store.past import Collection, InMemory, Past
from isvc.kube.errors import ApiError, Gone, InternalError
from isvc.kube.objects import Object

log = logging.getLogger(__name__)

WINDOW_EVENTS = 8192
WINDOW_BYTES = 12 << 20
KEPT_SECONDS = 300.0  # events younger than that are forgotten only when there are far more
MAX_EVENTS = 8 * WINDOW_EVENTS
MAX_BYTES = 2 * WINDOW_BYTES
MARK_SECONDS = 10.0

Listener: TypeAlias = Callable[[Event], None]
Entries: TypeAlias = list[Entry]
Rows: TypeAlias = list[Row]


class Stale(ApiError):
    """A write was based on a revision that is no longer the newest: read again, decide again."""

    code, reason = 409, "Conflict"


class _Write:
    """A revision on its way to the log."""

    __slots__ = ("done", "event")

    def __init__(self, event: Event, done: asyncio.Future[None]) -> None:
        self.event = event
        self.done = done


class Store:
    def __init__(self, folder: Path | None = None, *, durable: bool = False) -> None:
        """Keeps objects in `folder`, or in memory alone; `durable` ones survive a power cut."""
        self._loop = asyncio.get_running_loop()
        self._collections: dict[str, Collection] = {}
        self._revisions: dict[str, int] = {}
        self._listeners: dict[str, dict[Listener, None]] = {}
        self._everywhere: list[Listener] = []
        self._heads: dict[tuple[str, str, str], Entry | None] = {}
        self._under_way: dict[int, _Write] = {}
        self._marks: list[tuple[float, int]] = []  # times, and the revisions that began then
        self.rv = 1  # the newest committed revision
        self._next = 1  # the newest revision given out
        self._log: Log | None = None
        if folder is None:
            self._past = Past(InMemory(), self.get)
            return
        self._log = Log(folder / "objects.db", self._from_log, durable=durable)
        self._past = Past(self._log, self.get)
        self._load(self._log)
        self._log.start()

    @property
    def compacted(self) -> int:
        """Returns the revision up to which events are forgotten."""
        return self._past.compacted

    @property
    def issued(self) -> int:
        """Returns the newest revision given out, committed or not."""
        return self._next

    def close(self) -> None:
        if self._log:
            self._log.close()

    # Reading

    def get(self, collection: str, namespace: str, name: str) -> Entry | None:
        objects = self._collections.get(collection)
        return objects.get((namespace, name)) if objects else None

    def latest(self, collection: str, namespace: str, name: str) -> Entry | None:
        """Returns the newest revision, committed or not: what a writer has to build on."""
        key = (collection, namespace, name)
        return self._heads[key] if key in self._heads else self.get(*key)

    def list(self, collection: str, namespace: str = "", at: int | None = None) -> Entries:
        """Returns entries in the order of namespace and name, now or as they were at revision `at`."""
        objects = self._collections.get(collection, {})
        if at is not None and at < self.rv:
            if at < self.compacted:
                raise Gone(f"The resourceVersion for the provided list is too old: {at} ({self.compacted})")
            objects = self._past.rewind(objects, collection, at)
        keys = [key for key in objects if key[0] == namespace] if namespace else objects
        return [objects[key] for key in sorted(keys)]

    def count(self, collection: str = "") -> int:
        """Returns how many objects there are in a collection ("" for all)."""
        collections = (self._collections.get(collection, ()),) if collection else self._collections.values()
        return sum(map(len, collections))

    def collections(self) -> tuple[str, ...]:
        """Returns the collections that hold something."""
        return tuple(name for name, objects in self._collections.items() if objects)

    def revision(self, collection: str) -> int:
        """Returns the revision of the last change in a collection."""
        return self._revisions.get(collection, 0)

    def since(self, rv: int, collection: str = "") -> Iterator[Event]:
        """Yields events after `rv`, oldest first, of one collection or of all; raises Gone when some are forgotten."""
        if rv < self.compacted:
            raise Gone(f"too old resource version: {rv} ({self.compacted})")
        return self._past.since(rv, collection)

    def subscribe(self, collection: str, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with every event in a collection ("" for all) until the result is called."""
        if not collection:
            self._everywhere.append(listener)
            return lambda: self._everywhere.remove(listener)
        listeners = self._listeners.setdefault(collection, {})
        listeners[listener] = None
        return lambda: listeners.pop(listener, None)

    # Writing

    async def put(
        self, collection: str, namespace: str, name: str, obj: Object, base: Entry | None, epoch: int = -1
    ) -> Entry:
        """Writes the revision that follows `base` (None: the object must not exist). Sets metadata.resourceVersion."""
        return await self._write(MODIFIED if base else ADDED, collection, namespace, name, obj, base, epoch)

    async def remove(self, base: Entry, obj: Object) -> Entry:
        """Deletes; `obj` is the last state, which watchers are sent with the revision of the deletion."""
        return await self._write(DELETED, base.collection, base.namespace, base.name, obj, base, base.epoch)

    async def _write(
        self, kind: str, collection: str, namespace: str, name: str, obj: Object, base: Entry | None, epoch: int
    ) -> Entry:
        if self.latest(collection, namespace, name) is not base:
            raise Stale("the object changed meanwhile")
        self._next += 1
        rv = self._next
        obj["metadata"]["resourceVersion"] = str(rv)
        entry = _revision_of(collection, namespace, name, rv, obj, base)
        entry.epoch = epoch
        event = Event(rv, kind, entry, base)
        if self._log is None:
            self._commit(event)
            return entry
        write = _Write(event, self._loop.create_future())
        self._heads[collection, namespace, name] = None if kind == DELETED else entry
        self._under_way[rv] = write
        self._log.append(Row(rv, collection, namespace, name, kind == DELETED, entry.raw))
        await write.done
        return entry

    def _from_log(self, rows: Rows, error: Unusable | None) -> None:
        self._loop.call_soon_threadsafe(self._settle, rows, error)

    def _settle(self, rows: Rows, error: Unusable | None) -> None:
        if error is not None:
            self._fail(error)
            return
        for row in rows:
            write = self._under_way.pop(row.rv, None)
            if write is None:
                continue
            entry = write.event.entry
            key = (entry.collection, entry.namespace, entry.name)
            head = self._heads.get(key)
            if head is entry or (head is None and write.event.type == DELETED):
                self._heads.pop(key, None)
            self._commit(write.event)
            if not write.done.done():
                write.done.set_result(None)

    def _fail(self, error: Unusable) -> None:
        log.error("%s", error)
        lost, self._under_way = self._under_way, {}
        self._heads.clear()
        if self._log:
            self._log.resume()
        for write in lost.values():
            if not write.done.done():
                write.done.set_exception(InternalError(str(error)))

    def _commit(self, event: Event) -> None:
        rv, kind, entry = event.rv, event.type, event.entry
        objects = self._collections.setdefault(entry.collection, {})
        if kind == DELETED:
            objects.pop((entry.namespace, entry.name), None)
        else:
            objects[entry.namespace, entry.name] = entry
        self.rv = rv
        self._revisions[entry.collection] = rv
        self._remember(event)
        for listener in tuple(self._listeners.get(entry.collection, ())):
            listener(event)
        for listener in self._everywhere:
            listener(event)

    # The past

    def _remember(self, event: Event) -> None:
        past = self._past
        past.add(event)
        now = monotonic()
        if not self._marks or now - self._marks[-1][0] > MARK_SECONDS:
            self._marks.append((now, event.rv))
        if len(past) > MAX_EVENTS or past.size > MAX_BYTES:
            self.compact(past.middle)
        elif len(past) > WINDOW_EVENTS or past.size > WINDOW_BYTES:
            old = [rv for time, rv in self._marks if now - time > KEPT_SECONDS]
            if old:
                self._marks = [mark for mark in self._marks if mark[1] > old[-1]]
                self.compact(old[-1] - 1)

    def compact(self, through: int) -> None:
        """Forgets the events up to and including a revision."""
        rows = self._past.compact(through)
        if self._log and rows is not None:
            self._log.compact(Compaction(self.compacted, self._next, rows))

    def _load(self, log: Log) -> None:
        self._past.compacted = log.mark("compacted")
        self.rv = self._next = max(self.rv, log.mark("head"))
        for row in log.load():
            objects = self._collections.setdefault(row.collection, {})
            key = (row.namespace, row.name)
            old = objects.get(key)
            entry = entry_of(row)
            if row.deleted:
                objects.pop(key, None)
            else:
                objects[key] = entry
            if row.rv > self.compacted:
                kind = DELETED if row.deleted else MODIFIED if old else ADDED
                self._past.add(Event(row.rv, kind, entry, old))
            self._revisions[row.collection] = row.rv
            self.rv = self._next = max(self.rv, row.rv)


def _revision_of(collection: str, namespace: str, name: str, rv: int, obj: Object, base: Entry | None) -> Entry:
    """Returns the object as an entry, which shares with the revision before whatever both have."""
    labels = labels_in(obj)
    if base is None:
        return Entry(collection, namespace, name, rv, encode(obj), labels)
    same = base.labels if base.labels == labels else labels
    return Entry(base.collection, base.namespace, base.name, rv, encode(obj), same)
