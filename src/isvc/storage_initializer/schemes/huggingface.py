"""Models of the Hugging Face Hub, through its own library, which knows its caches and transfer protocols.

What the Hub keeps outside Git carries a SHA-256, which is compared once a file is here.
"""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from isvc.storage_initializer.errors import (
    Damaged,
    Denied,
    NotFound,
    StorageError,
    Unreachable,
    from_http_status,
    need,
)
from isvc.storage_initializer.progress import watched
from isvc.storage_initializer.settings import Settings
from isvc.storage_initializer.tls import export_ca_bundle

log = logging.getLogger("isvc.storage-initializer")

ADDRESS: Final = re.compile(r"hf://(?P<owner>[^/:]+)/(?P<model>[^/:]+)(?::(?P<revision>[^:]+))?/?")


class Model(NamedTuple):
    repository: str
    revision: str | None


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    model = parse(uri)
    export_ca_bundle(settings)
    hub = need("huggingface_hub", "huggingface")
    token = settings.get("HF_TOKEN") or None
    with _explained(uri):
        info = hub.HfApi(token=token).model_info(model.repository, revision=model.revision, files_metadata=True)
        log.info("%s is at commit %s, %d files", uri, info.sha, len(info.siblings))
        hub.utils.disable_progress_bars()
        with watched(folder, uri, sum(each.size or 0 for each in info.siblings if settings.wants(each.rfilename))):
            hub.snapshot_download(
                model.repository,
                revision=info.sha,  # one commit, even if the branch moves meanwhile
                local_dir=folder,
                token=token,
                allow_patterns=settings.patterns("STORAGE_ALLOW_PATTERNS") or None,
                ignore_patterns=settings.patterns("STORAGE_IGNORE_PATTERNS") or None,
                max_workers=settings.number("HF_MAX_FILE_CONCURRENCY", 4),
            )
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    if not any(folder.iterdir()):
        raise NotFound(f"{uri}: there is no file")
    for sibling in info.siblings:
        _check(folder / sibling.rfilename, sibling)


def parse(uri: str) -> Model:
    """`hf://owner/model[:revision]`"""
    found = ADDRESS.fullmatch(uri)
    if not found:
        raise StorageError(f"{uri}: expected hf://owner/model or hf://owner/model:revision")
    return Model(f"{found['owner']}/{found['model']}", found["revision"])


def _check(file: Path, sibling: Any) -> None:
    if not file.exists():  # left out by a pattern
        return
    if sibling.size is not None and file.stat().st_size != sibling.size:
        raise Damaged(f"{sibling.rfilename}: {file.stat().st_size} bytes arrived where {sibling.size} were announced")
    if sibling.lfs:
        with file.open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        if found != sibling.lfs.sha256:
            raise Damaged(f"{sibling.rfilename}: its sha256 is not the one that the Hub announced")


@contextmanager
def _explained(uri: str) -> Iterator[None]:
    """The library's errors as ours."""
    errors = need("huggingface_hub.errors", "huggingface")
    try:
        yield
    except errors.GatedRepoError as error:
        raise Denied(f"{uri}: the model is gated, and the token may not read it") from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise NotFound(f"{uri}: no such model or revision, or it is private and needs a token") from error
    except errors.HfHubHTTPError as error:
        raise from_http_status(getattr(error.response, "status_code", 500), uri) from error
    except (errors.LocalEntryNotFoundError, ConnectionError, TimeoutError) as error:
        raise Unreachable(f"{uri}: {error}") from error
