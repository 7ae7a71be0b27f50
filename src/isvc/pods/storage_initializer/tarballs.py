"""Read tar files from strangers, with whatever compression, without trusting the sizes that they announce."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import struct
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import IO, Any, Final

from isvc.pods.storage_initializer.unpacking import Budget, Tree, is_mangled, path_inside, quote_name
from isvc.pods.stores.errors import Damaged, Unsupported

LARGEST_READ: Final = 16 << 20  # tarfile reads a whole extended header into memory
ZSTD_MODULES: Final = ("compression.zstd", "backports.zstd")  # Python's own from 3.14 on
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
# What the standard library raises for content that is cut off or mangled.
BROKEN: Final = (
    tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError, LookupError, OverflowError, struct.error,
    RecursionError,
)  # fmt: skip


def zstd() -> ModuleType | None:
    for name in ZSTD_MODULES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


@contextmanager
def open_tar(path: Path, budget: Budget) -> Iterator[tarfile.TarFile]:
    """Yields the tar file at a path. Whatever is wrong with it is `Damaged`; its checksum is compared at the end."""
    known = zstd()
    broken = (*BROKEN, known.ZstdError) if known else BROKEN
    try:
        with _open_decompressed(path) as stream:
            metered = _Metered(stream, budget)
            with tarfile.open(fileobj=metered, mode="r:") as tar:
                yield tar
            while metered.read(1 << 20):
                pass  # the checksum of a compressed stream is behind its end, where tarfile does not look
    except broken as error:
        raise Damaged(f"it cannot be read: {error}") from error
    except OSError as error:
        if is_mangled(error):
            raise Damaged(f"it cannot be read: {error}") from error
        raise


def unpack_member(tar: tarfile.TarFile, member: tarfile.TarInfo, path: PurePosixPath, tree: Tree) -> None:
    """Writes one entry."""
    if member.isdir():
        tree.make_folder(path)
    elif member.issym():
        tree.make_symlink(path, member.linkname)
    elif member.islnk():
        tree.make_hard_link(path, path_inside(member.linkname))
    elif member.isfile():
        content = tar.extractfile(member)
        assert content is not None
        with content:
            tree.write_file(path, content, executable=bool(member.mode & 0o100))
    else:
        raise Damaged(f"{quote_name(member.name)} is a device or a pipe, not a file")


def members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yields every entry, forgotten once it has been dealt with: an archive may have millions."""
    for member in tar:
        yield member
        tar.members = []  # type: ignore[attr-defined]


def _open_decompressed(path: Path) -> IO[bytes] | gzip.GzipFile:
    with path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.open(path)
    if magic.startswith(b"BZh"):
        return bz2.open(path)
    if magic.startswith(b"\xfd7zXZ\0"):
        return lzma.open(path)
    if magic.startswith(ZSTD_MAGIC):
        if (library := zstd()) is None:
            raise Unsupported("it is compressed with zstd; install isvc[oci]")
        opened: IO[bytes] = library.open(path)
        return opened
    return path.open("rb")


class _Metered:
    """A stream that refuses to give more than the budget, or very much at once."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, budget: Budget) -> None:
        self._stream, self._budget = stream, budget

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= LARGEST_READ:
            raise Damaged(f"it has a header of {size} bytes")
        self._budget.check(self._stream.tell() + size)
        return self._stream.read(size)

    def seek(self, position: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_SET:
            self._budget.check(position)
        return self._stream.seek(position, whence)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
