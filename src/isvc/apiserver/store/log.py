"""The log on disk: one SQLite table with a row per revision, written by one thread in group commits.

A row is inserted once and never updated. It is deleted when it is older than the compaction revision and a later row
replaced it, so what remains always rebuilds both the current objects and every event since the compaction.
Rows queue up while a commit is under way and share the next one: throughput grows with the number of writers, and
nobody is answered before their row is committed. WAL with synchronous=NORMAL keeps a committed row through kill -9; a
power cut may lose the last moments but not the file. `durable` (synchronous=FULL) waits for the disk at every commit,
so that a power cut loses nothing that was acknowledged.

After a failed commit rows are dropped until `resume`: they may build on what was lost.
"""

from __future__ import annotations

import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from isvc.apiserver.store.entry import Entry, labels_within
from isvc.kube.errors import InternalError

SCHEMA = """
CREATE TABLE IF NOT EXISTS revisions (
  rv INTEGER PRIMARY KEY, collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  deleted INTEGER NOT NULL, value BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
INSERT = "INSERT INTO revisions VALUES (?, ?, ?, ?, ?, ?)"
_CACHE_KB = 256  # rows are added at the end and read back seldom; by itself SQLite keeps 2 MB of them
MARK = "INSERT INTO marks (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class Row(NamedTuple):
    rv: int
    collection: str
    namespace: str
    name: str
    deleted: bool
    value: bytes


class Compaction(NamedTuple):
    """Forget superseded rows; `through` is the new compaction revision, `head` the newest revision ever given out."""

    through: int
    head: int
    rows: list[int]


class _Resume:
    """Marks the place in the queue up to which rows are dropped after a failed commit."""


class Unusable(Exception):
    """The objects cannot be read or written; the message says what to do."""


_ADVICE = {
    "SQLITE_FULL": "the disk is full: free some space; until then nothing can be written",
    "SQLITE_READONLY": "it cannot be written: make the folder and the file writable, or choose another folder",
    "SQLITE_CANTOPEN": "it cannot be opened: make the folder writable, or choose another folder",
    "SQLITE_IOERR": "the disk does not work as it should: check it, or choose a folder on another one",
    "SQLITE_CORRUPT": "it is damaged: put a copy in its place, or move it away to start anew",
    "SQLITE_NOTADB": "it is damaged: put a copy in its place, or move it away to start anew",
}


def unusable(path: Path, error: sqlite3.Error) -> Unusable:
    name = "_".join((getattr(error, "sqlite_errorname", None) or "").split("_")[:2])
    advice = _ADVICE.get(name, "put a copy in its place, or move it away to start anew")
    return Unusable(f"{path} cannot be used ({error}): {advice}")


_Item: TypeAlias = Row | Compaction | _Resume | None
Done = Callable[[list[Row], Unusable | None], None]


def entry_of(row: Row) -> Entry:
    return Entry(row.collection, row.namespace, row.name, row.rv, row.value, labels_within(row.value))


class Log:
    def __init__(self, path: Path, done: Done, *, durable: bool = False) -> None:
        """`done(rows, error)` is called from the writing thread after each commit, successful or not."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._failed = False
        with self._usable():
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            path.chmod(0o600)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._db.execute(f"PRAGMA cache_size=-{_CACHE_KB}")
            self._db.executescript(SCHEMA)
            self._reader = sqlite3.connect(path, isolation_level=None)
            self._reader.execute("PRAGMA query_only=1")
        self._done = done
        self._work: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="store-log", daemon=True)

    def load(self) -> Iterator[Row]:
        """Yields every row that is kept, oldest first."""
        with self._usable():
            yield from map(Row._make, self._db.execute("SELECT * FROM revisions ORDER BY rv"))

    @contextlib.contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise unusable(self._path, error) from None

    def mark(self, name: str) -> int:
        with self._usable():
            found = self._db.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
        return int(found[0]) if found else 0

    def start(self) -> None:
        self._thread.start()

    def add(self, entry: Entry) -> None:
        """Has every revision already."""

    def read(self, rv: int) -> Entry | None:
        """Returns a revision that was committed and is not compacted."""
        try:
            found = self._reader.execute("SELECT * FROM revisions WHERE rv = ?", (rv,)).fetchone()
        except sqlite3.Error as error:
            raise InternalError(str(unusable(self._path, error))) from None
        return entry_of(Row._make(found)) if found else None

    def remove(self, rvs: list[int]) -> None:
        """Removes them when `compact` says so."""

    def append(self, row: Row) -> None:
        self._work.put(row)

    def compact(self, compaction: Compaction) -> None:
        self._work.put(compaction)

    def resume(self) -> None:
        """Rows from here on know that a commit failed."""
        self._work.put(_Resume())

    def close(self) -> None:
        if self._thread.is_alive():
            self._work.put(None)
            self._thread.join()
        self._reader.close()
        self._db.close()

    def _run(self) -> None:
        while True:
            batch = [self._work.get()]
            while not self._work.empty():
                batch.append(self._work.get())
            self._write(self._pending(batch))
            if None in batch:
                return

    def _pending(self, batch: list[_Item]) -> list[_Item]:
        """Returns the items that are to be written: after a failed commit, those behind the mark."""
        marks = [index for index, item in enumerate(batch) if isinstance(item, _Resume)]
        if not self._failed:
            return batch
        if not marks:
            return []
        self._failed = False
        return batch[marks[-1] + 1 :]

    def _write(self, batch: list[_Item]) -> None:
        rows = [item for item in batch if isinstance(item, Row)]
        compactions = [item for item in batch if isinstance(item, Compaction)]
        if not rows and not compactions:
            return
        try:
            self._commit(rows, compactions)
        except sqlite3.Error as error:
            self._failed = True
            self._done(rows, unusable(self._path, error))
        else:
            self._done(rows, None)

    def _commit(self, rows: list[Row], compactions: list[Compaction]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany(INSERT, rows)
            for compaction in compactions:
                self._db.executemany("DELETE FROM revisions WHERE rv = ?", [(rv,) for rv in compaction.rows])
                self._db.executemany(MARK, [("compacted", compaction.through), ("head", compaction.head)])
            self._db.execute("COMMIT")
        except sqlite3.Error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
