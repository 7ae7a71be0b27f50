"""Image layers, laid one over the other: what they add, replace and hide below /models.

A layer hides what earlier layers brought, never what it brings itself: `.wh.NAME` hides one entry, `.wh..wh..opq`
everything in its folder.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import Final

from isvc.pods.storage_initializer.tarballs import members, open_tar, unpack_member
from isvc.pods.storage_initializer.unpacking import Budget, Tree, path_inside, quote_name
from isvc.pods.stores.errors import Damaged

MODELS: Final = "models"
_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
_HERE: Final = PurePosixPath()


def apply_layer(layer: Path, folder: Path, budget: Budget) -> None:
    """Brings the folder, which stands for /models of the layers before, to what it is with this layer.

    The budget is that of all layers: an image may have thousands, each of them harmless.
    """
    budget.grow(layer.stat().st_size)
    tree = Tree(folder, budget)
    try:
        with open_tar(layer, tree.budget) as tar:
            _Layer(tree).unpack(tar)
    except Damaged as error:
        raise Damaged(f"a layer is refused: {error}") from error


def check_links(folder: Path) -> None:
    """Checks links after the last layer, as a later one may bring what an earlier one links to."""
    try:
        Tree(folder, Budget(0)).remove_symlinks_to_nowhere()
    except Damaged as error:
        raise Damaged(f"the image is refused: {error}") from error


class _Layer:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._own: set[Path] = set()  # what this layer has brought so far
        self._hidden: set[tuple[Path, bool]] = set()  # earlier layers bring nothing new: once is enough

    def unpack(self, tar: tarfile.TarFile) -> None:
        for member in members(tar):
            path = path_inside(member.name.lstrip("/"))
            if path.name.startswith(_WHITEOUT):
                self._hide(path)
            elif path.parts[:1] == (MODELS,):
                self._bring(tar, member, _below_models(path))

    def _bring(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: PurePosixPath) -> None:
        if path == _HERE:
            if not member.isdir():
                raise Damaged(f"/{MODELS} is no folder")
            return
        if member.islnk():
            source = path_inside(member.linkname.lstrip("/"))
            if source.parts[:1] != (MODELS,):
                name, target = quote_name(member.name), quote_name(member.linkname)
                raise Damaged(f"{name} is a hard link to {target}, outside /{MODELS}")
            self.tree.make_hard_link(path, _below_models(source))
        else:
            unpack_member(tar, member, path, self.tree)
        place = self.tree.root / path
        self._own.update((place, *place.parents))

    def _hide(self, whiteout: PurePosixPath) -> None:
        if whiteout.name == _OPAQUE:
            hidden, whole = whiteout.parent, False
        elif whiteout.name.startswith(_WHITEOUT * 2):
            return  # bookkeeping of a file system that the image was made on
        else:
            name = whiteout.name.removeprefix(_WHITEOUT)
            if name in ("", ".", ".."):
                raise Damaged(f"{quote_name(whiteout)} hides something outside its folder")
            hidden, whole = whiteout.with_name(name), True
        if hidden == _HERE or hidden == PurePosixPath(MODELS):
            self._hide_earlier(self.tree.root, whole=False)
        elif hidden.parts[0] == MODELS:
            place = self._without_links(_below_models(hidden))
            if place is not None:
                self._hide_earlier(place, whole=whole)

    def _without_links(self, path: PurePosixPath) -> Path | None:
        """Returns the place of an earlier layer's entry; None if there is none, or only through a link."""
        place = self.tree.root
        for part in path.parts[:-1]:
            place /= part
            if place.is_symlink() or not place.is_dir():
                return None
        return place / path.name

    def _hide_earlier(self, place: Path, *, whole: bool) -> None:
        if (place, whole) not in self._hidden:
            self._hidden.add((place, whole))
            self._remove_earlier(place, whole=whole)

    def _remove_earlier(self, place: Path, *, whole: bool) -> None:
        """Removes what earlier layers put there, `whole`: the place itself, too."""
        if place.is_dir() and not place.is_symlink():
            if whole and place not in self._own:
                shutil.rmtree(place)
                return
            for entry in place.iterdir():
                self._remove_earlier(entry, whole=True)
        elif whole and place not in self._own:
            place.unlink(missing_ok=True)


def _below_models(path: PurePosixPath) -> PurePosixPath:
    return PurePosixPath(*path.parts[1:])
