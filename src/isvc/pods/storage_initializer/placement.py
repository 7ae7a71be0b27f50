"""Put a model into its folder whole, or not at all.

A download goes into a hidden folder on the same volume. When it is complete it is renamed to the destination, which is
one step; a destination that is a volume of its own, or holds other models, gets the finished files moved into it
instead. A process that is killed, or that cannot reach the store any longer, leaves the hidden folder. The next one
goes on with it if it brings the same, and removes it if not.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from isvc.pods.stores.errors import Unreachable

PREFIX: Final = ".isvc-incoming-"


@contextmanager
def stage(destination: Path, source: str = "", others: Collection[str] = ()) -> Iterator[Path]:
    """Yields a folder to fill, or to fill up. It becomes the destination when the block ends well.

    What is beside it is needed only meanwhile. `others` are sources whose turn is still to come.
    """
    destination = destination.absolute()
    home = destination if _has_to_stay(destination) else destination.parent
    home.mkdir(parents=True, exist_ok=True)
    with _lock(home):
        incoming, lock = _adopt(home, _prefix(source)) or _make(home, _prefix(source))
        _remove_leftovers(home, {_prefix(other) for other in others})
    folder = incoming / "model"
    folder.mkdir(exist_ok=True)
    worth_keeping = False
    try:
        yield folder
        folder.chmod(0o755)
        if _has_to_stay(destination):
            _merge(folder, destination)
        else:
            folder.rename(destination)
    except Exception as error:
        worth_keeping = bool(source) and isinstance(error, Unreachable)
        raise
    except BaseException:
        worth_keeping = bool(source)  # the process is asked to end
        raise
    finally:
        if not worth_keeping:
            shutil.rmtree(incoming, ignore_errors=True)
        os.close(lock)


def notes_of(folder: Path) -> Path:
    """Returns the folder beside another in which is remembered how far the downloads into that are."""
    return folder.with_name(f"{folder.name}.partial")


def _prefix(source: str) -> str:
    """Returns the beginning of the hidden folder's name. What is signed and who asks makes no other file of it."""
    parts = urlsplit(source)
    plain = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return f"{PREFIX}{hashlib.sha256(plain.encode()).hexdigest()[:16]}-"


def _make(home: Path, prefix: str) -> tuple[Path, int]:
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=home))
    lock = _try_lock(made)
    assert lock is not None
    return made, lock


def _adopt(home: Path, prefix: str) -> tuple[Path, int] | None:
    """Takes over what another process left; files of which nothing is known are removed."""
    for left in home.glob(f"{prefix}*"):
        if (lock := _try_lock(left)) is not None:
            if not notes_of(left / "model").is_dir():
                shutil.rmtree(left / "model", ignore_errors=True)
            return left, lock
    return None


def _has_to_stay(destination: Path) -> bool:
    """Returns whether it is a mount point, which nothing can replace, or has content, which may be another's model."""
    return destination.is_dir() and (
        os.path.ismount(destination) or any(destination.iterdir()) or not _can_make_folders(destination.parent)
    )


def _can_make_folders(folder: Path) -> bool:
    """Returns whether that works, found out by trying: permissions know nothing of read-only volumes and sandboxes."""
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


def _remove_leftovers(home: Path, wanted: Collection[str]) -> None:
    """Removes the folders of processes that were killed; one that is still at work holds a lock."""
    for folder in home.glob(f"{PREFIX}*"):
        if folder.name.startswith(tuple(wanted)):
            continue
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
