"""Models that come as one archive: tar, compressed or not, and zip.

An archive that names a place outside its folder is refused as a whole: it was made to do harm, or is broken.
"""

from __future__ import annotations

import gzip
import lzma
import mimetypes
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from isvc.storage_initializer.errors import Damaged

# What the standard library raises for content that is cut off, mangled, encrypted or packed in an unknown way.
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError)


def is_archive(name: str) -> bool:
    return mimetypes.guess_type(name)[0] in ("application/x-tar", "application/zip")


def unpack_single(folder: Path) -> None:
    """If the folder holds one file and that is an archive, put what is in it in its place."""
    entries = list(folder.iterdir())
    if len(entries) == 1 and entries[0].is_file() and is_archive(entries[0].name):
        unpack(entries[0], folder)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack into the folder and remove the archive, which may be in that folder."""
    moved = archive.rename(folder / f".{archive.name}.unpacking")
    try:
        if mimetypes.guess_type(archive.name)[0] == "application/zip":
            _unpack_zip(moved, folder)
        else:
            _unpack_tar(moved, folder)
    except _BROKEN as error:
        raise Damaged(f"{archive.name} cannot be unpacked: {error}") from error
    moved.unlink()


def _unpack_tar(archive: Path, folder: Path) -> None:
    with tarfile.open(archive, "r:*") as tar:
        for member in tar:
            _refuse_escape(archive, member.name)
            tar.extract(member, folder, filter="data")
        while tar.fileobj is not None and tar.fileobj.read(1 << 20):
            pass  # the checksum of a compressed stream is behind its end, where tarfile does not look


def _unpack_zip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as packed:
        for entry in packed.infolist():
            _refuse_escape(archive, entry.filename)
            target = folder / entry.filename
            if entry.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with packed.open(entry) as source, target.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)


def _refuse_escape(archive: Path, name: str) -> None:
    if name.startswith(("/", "\\")) or ".." in PurePosixPath(name.replace("\\", "/")).parts:
        raise Damaged(
            f"{archive.name.strip('.')}: refused, since {name!r} would be unpacked outside the model's folder"
        )
