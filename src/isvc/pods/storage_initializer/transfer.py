"""Download files so that what is on disk is what the store holds.

A scheme describes a file by how to open it at an offset. A connection that breaks is opened again where it stopped; if
the store cannot continue, or the file has changed, the file starts over. Length and checksum are compared at the end.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Final, Protocol

from isvc.pods.storage_initializer.progress import Progress, amount
from isvc.pods.stores.errors import Damaged, Interrupted, NoSpace, StorageError, Unreachable

log = logging.getLogger("isvc.storage-initializer")

CHUNK: Final = 1 << 20


class Sum(Protocol):
    """A running checksum, as `hashlib` makes them."""

    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Digest:
    """What a file's content has to sum up to."""

    name: str
    expected: bytes
    new: Callable[[], Sum] = field(compare=False)

    @classmethod
    def md5(cls, expected: bytes) -> Digest:
        return cls("md5", expected, lambda: hashlib.md5(usedforsecurity=False))

    @classmethod
    def sha256(cls, expected: bytes) -> Digest:
        return cls("sha256", expected, hashlib.sha256)


@dataclass(frozen=True, slots=True)
class Body:
    """Content from an offset on. `start` is 0 when the store began again instead of continuing."""

    chunks: Iterator[bytes]
    start: int = 0
    size: int | None = None
    digest: Digest | None = None


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a model. `path` is relative to the model's folder; `open` takes an offset."""

    path: str
    open: Callable[[int], AbstractContextManager[Body]]
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Patience:
    """How often to try without getting any further, and how long to wait in between."""

    tries: int = 5
    first_pause: float = 0.5

    def seconds(self, failures: int) -> float:
        return float(min(self.first_pause * 2 ** (failures - 1), 15.0))


def download(
    what: str, files: Sequence[RemoteFile], folder: Path, *, side_by_side: int = 4, patience: Patience | None = None
) -> None:
    """Bring all files into the folder, several at a time; the first failure ends it."""
    patience = patience or Patience()
    sizes = [file.size for file in files]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    _expect_room(folder, total or 0)
    progress = Progress(what, total)
    stop = threading.Event()
    pool = ThreadPoolExecutor(max(1, min(side_by_side, len(files))), thread_name_prefix="download")
    try:
        tasks = [pool.submit(fetch, file, place(folder, file.path), progress, patience, stop) for file in files]
        for task in as_completed(tasks):
            task.result()
    finally:
        # Whoever waits for a slow server notices later; nobody waits for that.
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
    log.info("%s: %d files, %s", what, len(files), progress.describe())


def place(folder: Path, path: str) -> Path:
    """Returns where a file belongs, which is inside the folder whatever its name says."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise Damaged(f"a file named {path!r} would leave the model's folder")
    target = folder.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def fetch(file: RemoteFile, target: Path, progress: Progress, patience: Patience, stop: threading.Event) -> None:
    """Bring one file, trying again as long as tries get further."""
    failures = 0
    with target.open("w+b") as out:
        copy = _Copy(out, progress, stop)
        while True:
            before = copy.length
            try:
                copy.go_on(file)
                return
            except (Interrupted, Damaged) as error:
                failures = 1 if copy.length > before else failures + 1
                if failures >= patience.tries:
                    kind = Damaged if isinstance(error, Damaged) else Unreachable
                    raise kind(f"{file.path}: gave up after {failures} tries: {error}") from error
                log.warning("%s: %s; going on from %s", file.path, error, amount(copy.length))
                if stop.wait(patience.seconds(failures)):
                    raise
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    raise NoSpace(f"{file.path}: {error.strerror} after {amount(copy.length)}") from error
                raise


class _Copy:
    """A file being written, with a running checksum of the kind that its store announces."""

    def __init__(self, out: IO[bytes], progress: Progress, stop: threading.Event) -> None:
        self.out, self.progress, self.stop = out, progress, stop
        self.length = 0
        self._name = ""
        self._sum: Sum | None = None

    def go_on(self, file: RemoteFile) -> None:
        with file.open(self.length) as body:
            if body.start != self.length:
                self._start_over()
            if self.length == 0 and body.digest:
                self._name, self._sum = body.digest.name, body.digest.new()
            for chunk in body.chunks:
                if self.stop.is_set():
                    raise StorageError("stopped")
                self.out.write(chunk)
                self.length += len(chunk)
                if self._sum:
                    self._sum.update(chunk)
                self.progress.add(len(chunk))
            self.out.flush()
            self._check(file.size if body.size is None else body.size, body.digest)

    def _check(self, size: int | None, digest: Digest | None) -> None:
        if size is not None and self.length < size:
            raise Interrupted(f"the connection ended after {amount(self.length)} of {amount(size)}")
        if size is not None and self.length > size:
            self._start_over()
            raise Damaged(f"more than the {size} bytes that were announced arrived")
        if digest and self._checksum(digest) != digest.expected:
            self._start_over()
            raise Damaged(f"its {digest.name} is not the one that the store announced")

    def _checksum(self, digest: Digest) -> bytes:
        if self._sum and self._name == digest.name:
            return self._sum.digest()
        whole = digest.new()
        self.out.seek(0)
        while chunk := self.out.read(CHUNK):
            whole.update(chunk)
        return whole.digest()

    def _start_over(self) -> None:
        self.progress.add(-self.length)
        self.out.seek(0)
        self.out.truncate()
        self.length = 0
        self._name, self._sum = "", None


def _expect_room(folder: Path, size: int) -> None:
    """Fails at once rather than after an hour if there is no room."""
    volume = os.statvfs(folder)
    free = volume.f_bavail * volume.f_frsize
    if size > free:
        raise NoSpace(f"the model needs {amount(size)}, but {folder} has {amount(free)} left")
