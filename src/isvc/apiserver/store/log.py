"""The log on disk: one SQLite table with a row per revision, written by one thread in group commits.

A row is inserted once and never updated. It is deleted when it is older than the compaction revision and a later row
replaced it, so what remains always rebuilds both the current objects and every event since the compaction.
Rows queue up while a commit is under way and share the next one: throughput grows with the number of writers, and
nobody is answered before their row is committed. WAL with synchronous=NORMAL keeps a committed row through kill -9; a
power cut may lose the last moments but not the file.
"""

from __future__ import annotations

import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

SCHEMA = """
CREATE TABLE IF NOT EXISTS revisions (
  rv INTEGER PRIMARY KEY, collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  deleted INTEGER NOT NULL, value BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
INSERT = "INSERT INTO revisions VALUES (?, ?, ?, ?, ?, ?)"
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


class Damaged(Exception):
    """The file is there and cannot be read."""


Done = Callable[[list[Row], BaseException | None], None]


class Log:
    def __init__(self, path: Path, done: Done) -> None:
        """`done(rows, error)` is called from the writing thread after each commit, successful or not."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        with self._readable():
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            path.chmod(0o600)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(SCHEMA)
        self._done = done
        self._work: queue.SimpleQueue[Row | Compaction | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="store-log", daemon=True)

    def load(self) -> Iterator[Row]:
        """Every row that is kept, oldest first."""
        with self._readable():
            yield from map(Row._make, self._db.execute("SELECT * FROM revisions ORDER BY rv"))

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            words = f"{self._path} cannot be read ({error}); put a copy in its place, or move it away to start anew"
            raise Damaged(words) from None

    def mark(self, name: str) -> int:
        with self._readable():
            found = self._db.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
        return int(found[0]) if found else 0

    def start(self) -> None:
        self._thread.start()

    def append(self, row: Row) -> None:
        self._work.put(row)

    def compact(self, compaction: Compaction) -> None:
        self._work.put(compaction)

    def close(self) -> None:
        if self._thread.is_alive():
            self._work.put(None)
            self._thread.join()
        self._db.close()

    def _run(self) -> None:
        while True:
            batch = [self._work.get()]
            while not self._work.empty():
                batch.append(self._work.get())
            rows = [item for item in batch if isinstance(item, Row)]
            try:
                self._commit(rows, [item for item in batch if isinstance(item, Compaction)])
                error = None
            except sqlite3.Error as failure:
                error = failure
            self._done(rows, error)
            if None in batch:
                return

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
