"""How far a download is, or what it waits for, as a line in the log now and then."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger("isvc.storage-initializer")

EVERY_SECONDS = 5.0


class Progress:
    """Counts bytes from several threads; says something at most every few seconds."""

    def __init__(self, what: str, total: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.what, self.total = what, total
        self._clock, self._lock = clock, threading.Lock()
        self._started = self._said = clock()
        self._bytes = 0

    def add(self, count: int) -> None:
        """Counts bytes; a negative count takes back what has to be read again."""
        with self._lock:
            self._bytes += count
            now = self._clock()
            if now - self._said < EVERY_SECONDS:
                return
            self._said = now
        log.info("%s: %s", self.what, self.describe())

    def describe(self) -> str:
        rate = self._bytes / max(self._clock() - self._started, 0.001)
        of_total = f" of {amount(self.total)} ({100 * self._bytes // self.total}%)" if self.total else ""
        return f"{amount(self._bytes)}{of_total}, {amount(rate)}/s"


@contextmanager
def watch_size(folder: Path, what: str, total: int | None) -> Iterator[None]:
    """Logs the progress of a download that a library does, by the size of what it has written."""
    progress, seen = Progress(what, total), 0

    def look() -> None:
        nonlocal seen
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        progress.add(size - seen)
        seen = size

    with _repeating(look):
        yield


@contextmanager
def reaching(host: str, what: str) -> Iterator[None]:
    """Logs what is being tried, for as long as a library waits for a server's answer."""
    started = time.monotonic()

    def say() -> None:
        log.info("%s: no answer from %s for %.0f s, still trying", what, host, time.monotonic() - started)

    with _repeating(say):
        yield


@contextmanager
def _repeating(action: Callable[[], None]) -> Iterator[None]:
    """Does something every few seconds, in a thread of its own, until the block ends."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(EVERY_SECONDS):
            action()

    threading.Thread(target=repeat, name=action.__name__, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def amount(count: float) -> str:
    """`1.5 GiB`"""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
