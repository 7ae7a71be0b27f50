"""A container's log: every line with the time it was written, in one file per start, readable while it grows.

The first 31 characters of a line are its time, as in `2026-11-15T12:00:00.000000000Z `; a long line may come in pieces,
which only the last ends with a newline. Lines that cannot be written, as when the disk is full, are dropped and
counted: the process that wrote them goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from isvc.wire.private_files import open_private

_STAMP = 31
_ROTATE_AT = 10 * 1024 * 1024
_MAX_BEHIND = 1 << 20
_LAST_LINES, _LAST_CHARACTERS = 20, 2048  # that a status has room for
_LOOK = 0.5  # seconds between looks at a file that another program writes


@dataclass(frozen=True, slots=True)
class LogOptions:
    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None


class _Follower:
    """Keeps what one reader has not taken yet, up to a limit."""

    def __init__(self) -> None:
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._size = 0

    def feed(self, chunk: bytes) -> None:
        if not chunk or self._size + len(chunk) <= _MAX_BEHIND:
            self._size += len(chunk)
            self._chunks.put_nowait(chunk)

    async def next(self) -> bytes:
        """Returns the next piece, empty at the end."""
        chunk = await self._chunks.get()
        self._size -= len(chunk)
        return chunk


class Log:
    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = open_private(path, "ab", buffering=0)
        self._unfinished = b""
        self._dropped = 0
        self._grown = asyncio.Event()
        self._followers: set[_Follower] = set()
        self.closed = False

    def write(self, chunk: bytes) -> None:
        for follower in self._followers:
            follower.feed(chunk)
        *lines, self._unfinished = (self._unfinished + chunk).split(b"\n")
        if len(self._unfinished) > 1 << 16:
            lines, self._unfinished = [*lines, self._unfinished], b""
        self._store(lines)

    def note(self, text: str) -> None:
        """Writes a line of the node's own."""
        self.write(text.encode() + b"\n")

    def close(self) -> None:
        if not self.closed:
            self._store([self._unfinished] if self._unfinished else [])
            self.closed = True
            self._file.close()
            self._wake()
            for follower in self._followers:
                follower.feed(b"")

    async def follow(self) -> AsyncIterator[bytes]:
        """Yields what is written from now on, as it comes; a follower who is slow misses some of it."""
        if self.closed:
            return
        follower = _Follower()
        self._followers.add(follower)
        try:
            while chunk := await follower.next():
                yield chunk
        finally:
            self._followers.discard(follower)

    def _store(self, lines: list[bytes]) -> None:
        if not lines or self.closed:
            return
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z ").encode()
        lost = [b"[%d lines could not be written here]" % self._dropped] if self._dropped else []
        try:
            self._append(b"".join(stamp + line + b"\n" for line in (*lost, *lines)))
            self._dropped = 0
            self._rotate()
        except OSError:
            self._dropped += len(lines)
        self._wake()

    def _append(self, content: bytes) -> None:
        """Writes all of it, or leaves the file as it was."""
        end, left = self._file.seek(0, os.SEEK_END), memoryview(content)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            self._file.truncate(end)
            raise

    def _rotate(self) -> None:
        if self._file.tell() > _ROTATE_AT:
            self.path.replace(_older(self.path))
            full, self._file = self._file, open_private(self.path, "ab", buffering=0)
            full.close()

    def _wake(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()

    def next_growth(self) -> asyncio.Event:
        """Returns an event that the next write sets; who takes it before reading misses nothing."""
        return self._grown


def log_file(pod: Path, container: str, restarts: int) -> Path:
    """Returns what a container wrote between two restarts; `pod` is the folder of its pod."""
    return pod / "containers" / container / f"{restarts}.log"


def _older(path: Path) -> Path:
    return path.with_suffix(".old")


def last_lines(path: Path) -> str:
    """Returns the end of a log without its times, short enough for a status."""
    with contextlib.suppress(OSError):
        lines = deque((line[_STAMP:].decode("utf-8", "replace") for line in _lines(path)), maxlen=_LAST_LINES)
        return "".join(lines)[-_LAST_CHARACTERS:].strip()
    return ""


def _lines(path: Path) -> Iterator[bytes]:
    for file in (_older(path), path):
        if file.exists():
            with file.open("rb") as stream:
                yield from stream


async def read(path: Path, options: LogOptions, live: Log | None = None) -> AsyncIterator[bytes]:
    """Yields what `kubectl logs` shows of a log; with `follow` and a live one, until it is closed."""
    left = options.limit_bytes
    with contextlib.ExitStack() as files:
        earlier = files.enter_context(_older(path).open("rb")) if _older(path).exists() else ()
        stream = files.enter_context(path.open("rb"))
        for line in _select(itertools.chain(earlier, stream), options):
            yield line if left is None else line[:left]
            if left is not None:
                left -= len(line)
                if left <= 0:
                    return
        while options.follow and live is not None:
            growth, ended = live.next_growth(), live.closed
            if new := b"".join(_strip_time(line, options) for line in stream):
                yield new
            elif _is_rotated(stream, path):
                stream = files.enter_context(path.open("rb"))
            elif ended:
                return
            else:
                await growth.wait()


async def read_plain(path: Path, options: LogOptions) -> AsyncIterator[bytes]:
    """Yields the last lines of a log whose lines have times of their own, or none; with `follow` for ever."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as stream:
        shown = b"".join(stream if options.tail_lines is None else deque(stream, maxlen=options.tail_lines))
        yield shown if options.limit_bytes is None else shown[: options.limit_bytes]
        while options.follow:
            if new := stream.read():
                yield new
            else:
                await asyncio.sleep(_LOOK)


def _is_rotated(stream: IO[bytes], path: Path) -> bool:
    """Returns whether the file that is being read has become the older one."""
    return path.exists() and os.fstat(stream.fileno()).st_ino != path.stat().st_ino


def _select(lines: Iterable[bytes], options: LogOptions) -> Iterator[bytes]:
    recent = (line for line in lines if _is_recent(line, options.since))
    chosen = recent if options.tail_lines is None else deque(recent, maxlen=options.tail_lines)
    return (_strip_time(line, options) for line in chosen)


def _strip_time(line: bytes, options: LogOptions) -> bytes:
    return line if options.timestamps else line[_STAMP:]


def _is_recent(line: bytes, since: datetime | None) -> bool:
    if since is None:
        return True
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(line[:26].decode() + "+00:00") >= since
    return True
