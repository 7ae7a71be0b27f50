"""The folder in which a node keeps models. A model is in it whole, or not at all, whatever is killed and when.

    models/KEY                  a model; KEY is made from its source as in KServe, whose copies are found, too
    models/.downloads/KEY/model a download under way, which a Job fills
    models/.downloads/KEY.source  where that comes from: KEY is short, and somebody may look for two sources with one
    models/.downloads/KEY.json  the receipt of a complete model: that folder, by its inode, and what it took
    models/.downloads/NODE.node what a node wants to keep: the folder may be a share of several
    models/.removed-KEY         a model on its way out

A complete download is written to the disk, then its receipt is, and then it is renamed, which is one step. Whoever
starts in between finds the receipt and goes on. KServe downloads in place: a folder without a receipt proves nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

MODELS: Final = "models"
_DOWNLOADS: Final = ".downloads"
_INCOMING: Final = "model"
_REMOVED: Final = ".removed-"
_NODE: Final = ".node"
_LEFT_BEHIND: Final = ".isvc-incoming-"  # by our storage initializer, where another has gone on without it
_BLOCK: Final = 512
_FORGOTTEN: Final = 3600.0  # seconds after which what a node wanted counts no longer, if it does not say so again


def final_path(key: str) -> str:
    """Returns where a model is, from the root of the volume."""
    return f"{MODELS}/{key}"


def incoming_path(key: str) -> str:
    """Returns where a download goes, from the root of the volume."""
    return f"{MODELS}/{_DOWNLOADS}/{key}/{_INCOMING}"


@dataclass(frozen=True, slots=True)
class Receipt:
    """A complete model: its folder, and how it came. Whoever wrote the first receipts did not say from where."""

    inode: int
    bytes: int
    seconds: float | None = None
    attempts: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True)
class Stock:
    """What is on the disk.

    `complete`  models, by key
    `unproven`  folders that may be models: KServe's, or incomplete ones of it
    `empty`     folders that a kubelet made for a pod that came too early
    `incoming`  bytes of downloads under way, or left behind
    `arrived`   those of them of which there is anything
    `ended`     the Jobs that had ended well before it was looked at
    `free`      bytes
    `problem`   why the folder cannot be used
    """

    complete: Mapping[str, Receipt] = field(default_factory=dict)
    unproven: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()
    incoming: Mapping[str, int] = field(default_factory=dict)
    arrived: frozenset[str] = frozenset()
    ended: frozenset[str] = frozenset()
    free: int = 0
    problem: str = ""

    @property
    def folders(self) -> frozenset[str]:
        return self.unproven | self.empty | frozenset(self.complete)


class Disk:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._models = root / MODELS
        self._downloads = self._models / _DOWNLOADS

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps others out who look after the same folder: a program that is just being replaced, for example."""
        self._downloads.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._downloads, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def take_stock(self) -> Stock:
        """Finishes what was interrupted, and returns what there is."""
        try:
            self._downloads.mkdir(parents=True, exist_ok=True)
            self._resume()
            volume = os.statvfs(self._models)
            return self._look(volume.f_bavail * volume.f_frsize)
        except OSError as error:
            return Stock(problem=f"{self._models} cannot be used: {error.strerror or error}")

    def share(self, node: str, keys: Collection[str]) -> frozenset[str]:
        """Notes what this node wants to keep; returns what others want with whom it shares the folder."""
        own, wanted = self._downloads / f"{node}{_NODE}", set[str]()
        with suppress(OSError):  # a full disk keeps nobody from making space
            fresh = own.with_suffix(".new")
            fresh.write_text(json.dumps(sorted(keys)))
            fresh.replace(own)
        now = own.stat().st_mtime if own.exists() else 0.0
        for note in self._downloads.glob(f"*{_NODE}"):
            if now - note.stat().st_mtime > _FORGOTTEN:
                note.unlink()
            elif note != own:
                wanted.update(json.loads(note.read_text()))
        return frozenset(wanted)

    def expect(self, key: str, source: str) -> None:
        """Makes the folder that a Job downloads into, as any user. What was begun from another source goes."""
        folder = self._incoming(key)
        if self._source_of(key) != source:
            self.discard(key)
            self._source(key).write_text(source)
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o777)

    def complete(self, key: str, source: str, seconds: float | None, attempts: int) -> None:
        """Turns a download that has ended well into the model, unless it was begun from another source."""
        if self._source_of(key) != source:
            self.discard(key)
            return
        incoming = self._incoming(key)
        for entry in _folders(incoming):  # a file or link of such a name is the model's own
            if entry.name.startswith(_LEFT_BEHIND):
                _remove_tree(Path(entry.path))
        _write_through(incoming)
        self._write_receipt(key, incoming, seconds, attempts, source)
        self._publish(key)

    def adopt(self, key: str, source: str) -> None:
        """Counts a model of KServe's as complete from now on."""
        self._write_receipt(key, self._models / key, None, 0, source)

    def remove(self, key: str) -> None:
        """Removes a model, in one step for whoever looks at it."""
        self._receipt(key).unlink(missing_ok=True)
        removed = self._models / f"{_REMOVED}{key}"
        _remove_tree(removed)
        with suppress(FileNotFoundError):
            (self._models / key).rename(removed)
        _remove_tree(removed)

    def discard(self, key: str) -> None:
        """Removes what there is of a download."""
        self._source(key).unlink(missing_ok=True)
        _remove_tree(self._downloads / key)

    # -- steps ------------------------------------------------------------------------------------------------------

    def _resume(self) -> None:
        """Does what a kill kept from being done."""
        for entry in _folders(self._models):
            if entry.name.startswith(_REMOVED):
                _remove_tree(Path(entry.path))
        for entry in _folders(self._downloads):
            receipt = self._read_receipt(entry.name)
            if receipt is None:
                continue
            if _inode(self._incoming(entry.name)) == receipt.inode:
                self._publish(entry.name)
            elif _inode(self._models / entry.name) == receipt.inode:
                self.discard(entry.name)

    def _publish(self, key: str) -> None:
        incoming, final, removed = self._incoming(key), self._models / key, self._models / f"{_REMOVED}{key}"
        with suppress(PermissionError):  # it is another user's, and as that user made it
            incoming.chmod(0o755)
        if _has_content(final):
            _remove_tree(removed)
            final.rename(removed)
        incoming.rename(final)  # an empty folder of a pod that came too early is replaced
        _sync(self._models)
        _remove_tree(removed)
        self.discard(key)

    def _look(self, free: int) -> Stock:
        complete, unproven, empty = dict[str, Receipt](), set[str](), set[str]()
        for entry in _folders(self._models):
            if entry.name.startswith("."):
                continue
            receipt = self._read_receipt(entry.name)
            if not _has_content(Path(entry.path)):
                empty.add(entry.name)
            elif receipt is not None and receipt.inode == entry.inode():
                complete[entry.name] = receipt
            else:
                unproven.add(entry.name)
        incoming = {entry.name: size_of(Path(entry.path)) for entry in _folders(self._downloads)}
        arrived = frozenset(key for key in incoming if _has_content(self._incoming(key)))
        return Stock(complete, frozenset(unproven), frozenset(empty), incoming, arrived, free=free)

    def _incoming(self, key: str) -> Path:
        return self._downloads / key / _INCOMING

    def _receipt(self, key: str) -> Path:
        return self._downloads / f"{key}.json"

    def _source(self, key: str) -> Path:
        return self._downloads / f"{key}.source"

    def _source_of(self, key: str) -> str | None:
        try:
            return self._source(key).read_text()
        except (OSError, ValueError):
            return None

    def _read_receipt(self, key: str) -> Receipt | None:
        try:
            return Receipt(**json.loads(self._receipt(key).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def _write_receipt(self, key: str, folder: Path, seconds: float | None, attempts: int, source: str) -> None:
        receipt = Receipt(folder.stat().st_ino, size_of(folder), seconds, attempts, source)
        fresh = self._receipt(key).with_suffix(".new")
        fresh.write_text(json.dumps(asdict(receipt)))
        _sync(fresh)
        fresh.replace(self._receipt(key))
        _sync(self._downloads)


def size_of(folder: Path) -> int:
    """Returns what a folder takes on the disk; files that come and go meanwhile do not count."""
    total = 0
    for path in _files(folder):
        with suppress(OSError):
            total += os.lstat(path).st_blocks * _BLOCK
    return total


def _files(folder: Path) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        yield from (os.path.join(parent, name) for name in names)


def _folders(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]


def _has_content(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entries)
    except FileNotFoundError:
        return False


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _write_through(folder: Path) -> None:
    """Waits until everything is on the disk, so that a loss of power leaves it.

    A Job may leave pipes and sockets, which would make us wait, and files that only its user can open.
    """
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            if stat.S_ISREG(path.lstat().st_mode):
                with suppress(PermissionError):
                    _sync(path)
        _sync(Path(parent))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_tree(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
