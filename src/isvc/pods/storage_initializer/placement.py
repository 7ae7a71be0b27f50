"""Put a model into its folder whole, or not at all.

A download goes into a hidden folder on the same volume. When it is complete it is renamed to the destination, which is
one step; a destination that is a volume of its own, or holds other models, gets the finished files moved into it
instead. A process that is killed leaves only the hidden folder, which the next one removes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PREFIX: Final = ".isvc-incoming-"


@contextmanager
def stage(destination: Path) -> Iterator[Path]:
    """Yields a folder to fill. It becomes the destination when the block ends well, and is removed when it does not.

    What is beside it is removed in any case: a place for what is needed only meanwhile.
    """
    destination = destination.absolute()
    home = destination if _has_to_stay(destination) else destination.parent
    home.mkdir(parents=True, exist_ok=True)
    with _lock(home):
        _remove_leftovers(home)
        incoming = Path(tempfile.mkdtemp(prefix=PREFIX, dir=home))
        lock = _try_lock(incoming)
    folder = incoming / "model"
    folder.mkdir()
    try:
        yield folder
        folder.chmod(0o755)
        if _has_to_stay(destination):
            _merge(folder, destination)
        else:
            folder.rename(destination)
    finally:
        shutil.rmtree(incoming, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _has_to_stay(destination: Path) -> bool:
    """Whether it is a mount point, which cannot be renamed over, or has content, which may be somebody else's model."""
    return destination.is_dir() and (
        os.path.ismount(destination) or any(destination.iterdir()) or not _can_make_folders(destination.parent)
    )


def _can_make_folders(folder: Path) -> bool:
    """Whether that works, found out by trying: permissions know nothing of read-only volumes and sandboxes."""
    try:
        made = tempfile.mkdtemp(prefix=PREFIX, dir=folder)
    except OSError:
        return False
    with suppress(FileNotFoundError):  # another process took it for a leftover
        os.rmdir(made)
    return True


def _merge(source: Path, destination: Path) -> None:
    for entry in source.iterdir():
        target = destination / entry.name
        if entry.is_dir() and not entry.is_symlink() and target.is_dir() and not target.is_symlink():
            _merge(entry, target)
            continue
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        elif entry.is_dir() and target.exists():
            target.unlink()
        entry.replace(target)


def _remove_leftovers(home: Path) -> None:
    """Folders of processes that were killed; one that is still at work holds a lock."""
    for folder in home.glob(f"{PREFIX}*"):
        lock = _try_lock(folder)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _try_lock(folder: Path) -> int | None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
