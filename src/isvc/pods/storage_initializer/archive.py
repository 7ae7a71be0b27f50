"""Models that come as one archive: tar, compressed or not, and zip.

An archive that names a place outside its folder is refused as a whole: it was made to do harm, or is broken.
"""

from __future__ import annotations

import mimetypes
import zipfile
from pathlib import Path
from typing import Final

from isvc.pods.storage_initializer.tarballs import BROKEN, members, open_tar, unpack_member
from isvc.pods.storage_initializer.unpacking import Budget, Tree, is_mangled, path_inside
from isvc.pods.stores.errors import Damaged

# RuntimeError: encrypted, or packed in a way that Python does not know.
_BROKEN_ZIP: Final = (*BROKEN, zipfile.BadZipFile, RuntimeError)


def is_archive(name: str) -> bool:
    return mimetypes.guess_type(name)[0] in ("application/x-tar", "application/zip")


def unpack_single(folder: Path) -> bool:
    """Puts what is in an archive in its place, if it is the only file in the folder; returns whether it was one."""
    entries = list(folder.iterdir())
    if len(entries) != 1 or not entries[0].is_file() or not is_archive(entries[0].name):
        return False
    unpack(entries[0], folder)
    return True


def unpack(archive: Path, folder: Path) -> None:
    """Unpacks into the folder and removes the archive, which may be in that folder: so it is moved out first."""
    moved = archive.rename(folder.with_name(f"{folder.name}.archive"))
    tree = Tree(folder, Budget(moved.stat().st_size))
    is_zip = mimetypes.guess_type(archive.name)[0] == "application/zip"
    try:
        (_unpack_zip if is_zip else _unpack_tar)(moved, tree)
        tree.remove_symlinks_to_nowhere()
    except Damaged as error:
        raise Damaged(f"{archive.name} cannot be unpacked: {error}") from error
    finally:
        moved.unlink()


def _unpack_tar(archive: Path, tree: Tree) -> None:
    with open_tar(archive, tree.budget) as tar:
        for member in members(tar):
            unpack_member(tar, member, path_inside(member.name), tree)


def _unpack_zip(archive: Path, tree: Tree) -> None:
    try:
        with zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                path = path_inside(entry.filename)
                if entry.is_dir():
                    tree.make_folder(path)
                    continue
                with packed.open(entry) as content:
                    tree.write_file(path, content)
    except _BROKEN_ZIP as error:
        raise Damaged(f"it cannot be read: {error}") from error
    except OSError as error:
        if is_mangled(error):
            raise Damaged(f"it cannot be read: {error}") from error
        raise
