"""Download files, several at a time, so that what is on disk is what the store holds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path, PurePosixPath

from isvc.pods.storage_initializer.fetching import Job, Patience, expect_room, fetch
from isvc.pods.storage_initializer.placement import notes_of
from isvc.pods.storage_initializer.progress import Progress
from isvc.pods.storage_initializer.remote import RemoteFile
from isvc.pods.stores.errors import Damaged

log = logging.getLogger("isvc.storage-initializer")


def download(
    what: str,
    files: Sequence[RemoteFile],
    folder: Path,
    *,
    side_by_side: int = 4,
    alone: bool = True,
    patience: Patience | None = None,
) -> None:
    """Brings all files into the folder, several at a time; the first failure ends it.

    They are `alone` in it where nothing else brings any.
    """
    _refuse_same_place(files)
    sizes = [file.size for file in files]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    expect_room(folder, total or 0)
    side_by_side = max(1, side_by_side)
    workers = min(side_by_side, len(files))
    job = Job(Progress(what, total), patience or Patience(), max(1, side_by_side // workers), notes_of(folder))
    if alone:
        remove_others(folder, [file.path for file in files])
    pool = ThreadPoolExecutor(workers, thread_name_prefix="download")
    try:
        tasks = [pool.submit(fetch, file, place(folder, file.path), job) for file in files]
        for task in as_completed(tasks):
            task.result()
    finally:
        # Whoever waits for a slow server notices later; nobody waits for that.
        job.stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        for partial in tuple(job.under_way):
            partial.save()
    log.info("%s: %d files, %s", what, len(files), job.progress.describe())


def _refuse_same_place(files: Sequence[RemoteFile]) -> None:
    """Object stores tell `a/b` from `a//b`, folders do not: two downloads would write into one file."""
    seen: set[PurePosixPath] = set()
    for file in files:
        if (path := PurePosixPath(file.path)) in seen:
            raise Damaged(f"the store has several files that would be {str(path)!r} in the model's folder")
        seen.add(path)


def place(folder: Path, path: str) -> Path:
    """Returns where a file belongs, which is inside the folder whatever its name says."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise Damaged(f"a file named {path!r} would leave the model's folder")
    target = folder.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def relative_to(prefix: str, name: str) -> str:
    """Returns the path inside the folder that a prefix names, or the name of the one object that it names.

    Prefixes are plain text in object stores, but `models/a` must not bring `models/ab`: that has no path.
    """
    if name == prefix:
        return name.rpartition("/")[2]
    folder = f"{prefix.removesuffix('/')}/" if prefix else ""
    return name.removeprefix(folder) if name.startswith(folder) else ""


def remove_others(folder: Path, paths: Sequence[str]) -> None:
    """Removes what an earlier process brought and the store no longer has."""
    wanted = {folder.joinpath(path) for path in paths}
    for path in folder.rglob("*"):
        if path not in wanted and (path.is_symlink() or not path.is_dir()):
            path.unlink()
