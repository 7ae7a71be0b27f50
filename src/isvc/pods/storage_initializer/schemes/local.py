"""Models that are already on a file system: file:// addresses, plain paths, and folders that stand in for claims."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from isvc.pods.storage_initializer.transfer import place
from isvc.pods.stores.errors import Denied, NotFound
from isvc.pods.stores.settings import Settings

CLAIMS: Final = "/mnt/pvc"


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    """Links or copies; a link costs neither time nor space, and the model outlives its source."""
    source = _path(uri, settings)
    try:
        found = list(_files(source))
    except PermissionError as error:
        raise Denied(f"{uri}: {error.strerror}: {error.filename}") from error
    wanted = [(path, relative) for path, relative in found if settings.wants(relative)]
    if not wanted:
        raise NotFound(f"{uri}: there is no file")
    for path, relative in wanted:
        if path.exists() and not path.is_file():  # a device or pipe, which may never end
            raise Denied(f"{uri}: {path} is not a regular file")
        _link_or_copy(path, place(folder, relative))


def _path(uri: str, settings: Settings) -> Path:
    if uri.startswith("pvc://"):
        claim, _, inside = uri.removeprefix("pvc://").partition("/")
        root = Path(settings.get("ISVC_PVC_ROOT", CLAIMS)) / claim
        path = (root / inside).resolve()
        if not path.is_relative_to(root.resolve()):
            raise Denied(f"{uri} leaves its claim")
    else:
        path = Path(uri.removeprefix("file://"))
        if not path.exists():
            path = Path(unquote(str(path)))
    if not path.exists():
        raise NotFound(f"{uri}: {path} does not exist")
    return path


def _files(source: Path) -> Iterator[tuple[Path, str]]:
    """Yields every file and its path inside the model; links are followed, once per folder."""
    if not source.is_dir():
        yield source.resolve(), source.name
        return
    seen: set[str] = set()
    for root, folders, names in os.walk(source, followlinks=True, onerror=_raise):
        folders[:] = sorted(name for name in folders if os.path.realpath(os.path.join(root, name)) not in seen)
        seen.update(os.path.realpath(os.path.join(root, name)) for name in folders)
        for name in sorted(names):
            path = Path(root, name)
            yield path.resolve(), path.relative_to(source).as_posix()


def _raise(error: OSError) -> None:
    raise error


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or a file that we may read but not link
        shutil.copyfile(source, target)
