"""A folder belongs to one server at a time; the lock goes with the process that holds it, however that ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class InUse(Exception):
    """The folder is another server's, or cannot be written."""


class FolderLock:
    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            why = f"{folder} cannot be written ({error.strerror}): make it writable, or choose another folder"
            raise InUse(why) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise InUse(f"another API server is running on {folder}: stop it, or choose another folder") from None

    def release(self) -> None:
        os.close(self._file)
