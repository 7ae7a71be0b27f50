"""One file on its way, a large one in several parts at a time.

A connection that breaks is opened again where it stopped, by another process if need be; if the store cannot continue,
or the file has changed, the file starts over. Length and checksum are compared at the end.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from isvc.pods.storage_initializer.partial import Part, Partial
from isvc.pods.storage_initializer.progress import Progress, amount
from isvc.pods.storage_initializer.remote import Body, Digest, RemoteFile, Sum
from isvc.pods.stores.errors import Damaged, Interrupted, NoSpace, StorageError, Unreachable

log = logging.getLogger("isvc.storage-initializer")

PART: Final = 64 << 20  # of a file that comes in parts
ENOUGH: Final = 1 << 20  # with so much of it a try was not in vain
SPACE_LOOK: Final = 64 << 20  # bytes of unknown length after which the disk is looked at again
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SPACE_LEFT: Final = 20  # the part of a disk, 1/20, that content of unknown length leaves alone


@dataclass(frozen=True, slots=True)
class Patience:
    """How often to try without getting any further, and how long to wait in between."""

    tries: int = 5
    first_pause: float = 0.5

    def seconds(self, failures: int) -> float:
        return float(min(self.first_pause * 2 ** (failures - 1), 15.0))


@dataclass(frozen=True, slots=True)
class Job:
    """What the downloads of one model share."""

    progress: Progress
    patience: Patience
    streams: int  # at a time, for one file
    notes: Path  # a folder for what has to be remembered
    under_way: set[Partial] = field(default_factory=set)
    stop: threading.Event = field(default_factory=threading.Event)


class _Changed(StorageError):
    """The file is not the one that was begun."""


def fetch(file: RemoteFile, target: Path, job: Job) -> None:
    """Brings one file; raises StorageError."""
    _Download(file, target, job).run()


class _Download:
    """One file on its way."""

    def __init__(self, file: RemoteFile, target: Path, job: Job) -> None:
        self._file, self._job = file, job
        self._folder = target.parent
        self._partial = Partial(target, job.notes)
        if file.version != self._partial.version and (file.version or file.size is not None):
            self._partial.start_over()
        self._digest: Digest | None = None
        self._sum: Sum | None = None
        self._summed = 0  # bytes from the beginning
        self._room = Room(self._folder, file.path)

    def run(self) -> None:
        """Brings the file, trying again as long as tries get further."""
        self._job.progress.add(self._partial.length)
        self._job.under_way.add(self._partial)
        try:
            self._insist()
            self._partial.save()
        except OSError as error:
            if error.errno in FULL:
                raise NoSpace(f"{self._file.path}: {error.strerror} after {amount(self._partial.length)}") from error
            raise
        finally:
            self._job.under_way.discard(self._partial)
            self._partial.close()

    def _insist(self) -> None:
        failures = 0
        problem: StorageError
        while True:
            before = self._partial.length
            try:
                self._go_on()
                self._check()
                return
            except _Changed as error:
                self._start_over()
                failures, problem = failures + 1, error
            except (Interrupted, Damaged) as error:
                self._partial.save()
                failures = 1 if self._partial.length - before >= ENOUGH else failures + 1
                problem = error
            if failures >= self._job.patience.tries:
                kind = Unreachable if isinstance(problem, Interrupted) else type(problem)
                raise kind(f"{self._file.path}: gave up after {failures} tries: {problem}") from problem
            log.warning("%s: %s; going on from %s", self._file.path, problem, amount(self._partial.length))
            if self._job.stop.wait(self._job.patience.seconds(failures)):
                raise problem

    def _go_on(self) -> None:
        """Brings what is missing. The first answer shows how large the file is, and whether it can come in parts."""
        part = self._partial.take()
        if part is None:  # the others brought all of it when the first connection broke
            return
        helpers: list[Future[None]] = []
        with ThreadPoolExecutor(self._job.streams, thread_name_prefix="part") as pool:
            try:
                with self._open(part) as body:
                    part = self._accept(body, part)
                    if self._can_split(body, part):
                        self._partial.split(part, PART)
                    helpers = [pool.submit(self._bring_parts) for _ in range(self._job.streams - 1)]
                    self._drain(part, body)
            finally:
                part.busy = False
            self._bring_parts()
        problems = [problem for helper in helpers if (problem := helper.exception())]
        changed = [problem for problem in problems if isinstance(problem, _Changed)]
        if problems and (changed or not self._partial.complete):
            raise (changed or problems)[0]

    def _bring_parts(self) -> None:
        while part := self._partial.take():
            try:
                with self._open(part) as body:
                    if body.start != part.position or body.version != self._partial.version:
                        raise _Changed("the file changed")
                    self._drain(part, body)
            finally:
                part.busy = False

    def _open(self, part: Part) -> AbstractContextManager[Body]:
        end = None if part.end == self._partial.size else part.end
        return self._file.open(part.position, end, self._partial.version)

    def _accept(self, body: Body, part: Part) -> Part:
        """Goes on with the part, or starts over where the content is another."""
        if body.start != part.position or (self._partial.length and body.version != self._partial.version):
            if body.start:
                raise _Changed("the file changed")
            self._start_over()
            part = self._partial.parts[0]
            part.busy = True
        self._partial.version = body.version
        if self._file.size is not None and body.size not in (None, self._file.size):
            raise Damaged(f"the store announced {self._file.size} bytes, the server {body.size}")
        if self._partial.size is None:
            self._partial.size = part.end = self._file.size if body.size is None else body.size
            if self._file.size is None:
                expect_room(self._folder, (self._partial.size or 0) - part.got)
        if body.digest and (self._digest is None or body.digest.name != self._digest.name):
            self._sum, self._summed = body.digest.new(), 0
        self._digest = body.digest
        return part

    def _can_split(self, body: Body, part: Part) -> bool:
        missing = (part.end or 0) - part.position
        return self._job.streams > 1 and body.ranges and bool(body.version) and missing >= 2 * PART

    def _drain(self, part: Part, body: Body) -> None:
        for chunk in body.chunks:
            if self._job.stop.is_set():
                raise StorageError("stopped")
            if part.end is not None and part.position + len(chunk) > part.end:
                if part.end == self._partial.size:
                    raise Damaged(f"more than the {part.end} bytes that were announced arrived")
                chunk = chunk[: part.end - part.position]
            if self._sum and part.position == self._summed:
                self._sum.update(chunk)
                self._summed += len(chunk)
            self._partial.write(part, chunk)
            self._job.progress.add(len(chunk))
            if part.done:
                return
            if part.end is None:
                self._room.take(len(chunk))
        if part.end is None:
            part.end = part.position
        elif not part.done:
            raise Interrupted(f"the connection ended after {amount(part.position)} of {amount(part.end)}")

    def _check(self) -> None:
        if self._digest is None:
            return
        assert self._sum is not None
        for chunk in self._partial.read(self._summed):
            self._sum.update(chunk)
        if self._sum.digest() != self._digest.expected:
            name = self._digest.name
            self._start_over()
            raise Damaged(f"its {name} is not the one that the store announced")

    def _start_over(self) -> None:
        self._job.progress.add(-self._partial.length)
        self._partial.start_over()
        self._digest = self._sum = None
        self._summed = 0


class Room:
    """Looks after the disk while content comes whose length is not known: it may have no end."""

    def __init__(self, folder: Path, what: str) -> None:
        self._folder, self._what = folder, what
        self._taken = self._unlooked = 0

    def take(self, count: int) -> None:
        self._taken += count
        self._unlooked += count
        if self._unlooked < SPACE_LOOK:
            return
        self._unlooked = 0
        volume = os.statvfs(self._folder)
        if volume.f_bavail * SPACE_LEFT < volume.f_blocks:
            raise NoSpace(
                f"{self._what}: the server does not say how long it is, and after {amount(self._taken)} "
                f"less than 1/{SPACE_LEFT} of the disk is left"
            )


def expect_room(folder: Path, size: int) -> None:
    """Fails at once rather than after an hour. A node that keeps models says what is left for this one."""
    if (limit := os.environ.get("STORAGE_MAX_BYTES", "")).isdecimal() and size > int(limit):
        raise NoSpace(f"the model needs {amount(size)}, but {amount(int(limit))} are left of the storageLimit")
    if size > (free := shutil.disk_usage(folder).free):
        raise NoSpace(f"the model needs {amount(size)}, but {folder} has {amount(free)} left")
