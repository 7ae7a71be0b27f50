"""Write the entries of an archive or an image layer below a folder, and nowhere else.

Archives come from strangers. Nothing is written through a link or into an existing file, devices and pipes are refused,
and once all is unpacked every symbolic link has to lead to something inside the folder. A budget stops archives that
unpack to far more than was downloaded.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Final

from isvc.pods.storage_initializer.remote import CHUNK
from isvc.pods.stores.errors import Damaged

log = logging.getLogger("isvc.storage-initializer")

UNSUSPICIOUS_SIZE: Final = 1 << 30
HIGHEST_RATIO: Final = 200  # of what is unpacked to what was downloaded; weights rarely shrink to a half
ENTRY_COST: Final = 4096  # what even an empty file takes on a disk
DEEPEST: Final = 100  # folders in folders
LONGEST_QUOTE: Final = 80  # of a name in a message: an archive may have names of megabytes
_BAD_NAME: Final = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ELOOP, errno.ENOTDIR)


class Budget:
    """How many bytes an archive may still unpack to."""

    def __init__(self, archive_size: int) -> None:
        self._archive_size = self._spent = 0
        self.grow(archive_size)

    def grow(self, archive_size: int) -> None:
        """Allows for a further archive."""
        self._archive_size += archive_size
        self.limit = max(UNSUSPICIOUS_SIZE, self._archive_size * HIGHEST_RATIO)

    def spend(self, count: int) -> None:
        self._spent += count
        self.check(self._spent)

    def check(self, total: int) -> None:
        if total > self.limit:
            raise Damaged(f"it unpacks to more than {HIGHEST_RATIO} times its size, as an archive made to fill disks")


def quote_name(name: object) -> str:
    """Returns a name from an archive as messages have it, however long it is."""
    text = str(name)
    return repr(text) if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]!r}…"


def path_inside(name: str) -> PurePosixPath:
    """Returns an entry's name as a path below the folder; a name that leads out of it is refused."""
    if "\0" in name or name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/"):
        raise Damaged(f"{quote_name(name)} would be unpacked outside the model's folder")
    path = PurePosixPath(*(part for part in name.split("/") if part not in ("", ".")))
    if len(path.parts) > DEEPEST:
        raise Damaged(f"{quote_name(name)} is more than {DEEPEST} folders deep")
    return path


def is_mangled(error: OSError) -> bool:
    """Returns whether content is at fault: gzip and bz2 raise errors without a number, seek refuses what zip wants."""
    return error.errno in (None, errno.EINVAL)


class Tree:
    """A folder that is being filled. Paths come from `path_inside`."""

    def __init__(self, root: Path, budget: Budget) -> None:
        self.root, self.budget = root, budget

    def make_folder(self, path: PurePosixPath) -> None:
        if not path.name:  # the folder itself
            return
        with self._refuse_bad_name(path):
            target = self._parent(path) / path.name
            if target.is_symlink() or not target.is_dir():
                self._empty_place(path).mkdir()

    def write_file(self, path: PurePosixPath, content: IO[bytes], *, executable: bool = False) -> None:
        with self._refuse_bad_name(path):
            mode = 0o755 if executable else 0o644
            target = os.open(self._empty_place(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with os.fdopen(target, "wb") as out:
            while chunk := content.read(CHUNK):
                self.budget.spend(len(chunk))
                out.write(chunk)

    def make_symlink(self, path: PurePosixPath, target: str) -> None:
        if not target or target.startswith("/") or "\0" in target:
            raise Damaged(f"{quote_name(path)} is a link to {quote_name(target)}, outside the model's folder")
        with self._refuse_bad_name(path):
            self._empty_place(path).symlink_to(target)

    def make_hard_link(self, path: PurePosixPath, source: PurePosixPath) -> None:
        with self._refuse_bad_name(path):
            original = self._parent(source) / source.name
            if path == source or original.is_symlink() or not original.is_file():
                raise Damaged(f"{quote_name(path)} is a hard link to {quote_name(source)}, which is no file before it")
            os.link(original, self._empty_place(path), follow_symlinks=False)

    def remove_symlinks_to_nowhere(self) -> None:
        """Refuses a link out of the folder and removes one to nothing, once all is unpacked."""
        root = self.root.resolve()
        for folder, folders, files in os.walk(self.root):
            for link in (path for name in (*folders, *files) if (path := Path(folder, name)).is_symlink()):
                shown = str(link.relative_to(self.root))
                try:
                    link.stat()  # the system follows 40 links at most; resolve() would follow each of a long chain
                    target = link.resolve(strict=True)
                except (OSError, RuntimeError):  # RuntimeError: a circle
                    log.warning("%s is a link that leads nowhere; it is left out", quote_name(shown))
                    link.unlink()
                    continue
                if not target.is_relative_to(root):
                    raise Damaged(f"{quote_name(shown)} is a link that leads outside the model's folder")

    def _parent(self, path: PurePosixPath) -> Path:
        """Returns the folder of an entry, made when it is missing and never reached through a link."""
        place = self.root
        for part in path.parts[:-1]:
            place /= part
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                raise Damaged(f"{quote_name(path)} would be unpacked through {quote_name(part)}, which is no folder")
            if not place.exists():
                self.budget.spend(ENTRY_COST)
                place.mkdir()
        return place

    def _empty_place(self, path: PurePosixPath) -> Path:
        """Returns where an entry goes; what an earlier entry put there is removed."""
        self.budget.spend(ENTRY_COST)
        target = self._parent(path) / path.name
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        return target

    @contextmanager
    def _refuse_bad_name(self, path: PurePosixPath) -> Iterator[None]:
        if not path.name:
            raise Damaged("an entry has no name")
        try:
            yield
        except OSError as error:
            if error.errno in _BAD_NAME:
                raise Damaged(f"{quote_name(path)} cannot be unpacked: {error.strerror}") from error
            raise
