"""Files that only their owner can read, whatever the umask and whoever made the folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO, Any, Final

_LONGEST_SOCKET: Final = 100  # bytes of a socket's path that every kernel takes


def open_private(path: Path, mode: str, buffering: int = -1) -> IO[Any]:
    """Opens as `path.open` does, for a file that holds what others must not read: a log, a key."""
    file: IO[Any] = open(path, mode, buffering, opener=_opener)  # noqa: SIM115 - Path.open takes no opener
    os.fchmod(file.fileno(), 0o600)  # one that an earlier version left
    return file


def write_private(path: Path, content: bytes) -> None:
    """Replaces a file in one step: after a kill or a power cut there is the old content or the new, never a part.

    One that is right already stays, which takes no room on a disk that has none.
    """
    if _is_private(path, content):
        return
    fresh = path.with_name(f"{path.name}.new")
    with open_private(fresh, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _is_private(path: Path, content: bytes) -> bool:
    """Returns whether there is a file with that content that only its owner can read."""
    try:
        found = path.lstat()
        is_ours = stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o600
        return is_ours and found.st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def fits_a_socket(path: Path) -> bool:
    """Returns whether a socket can be made at that path, if its folder is there."""
    return len(os.fsencode(path)) <= _LONGEST_SOCKET
