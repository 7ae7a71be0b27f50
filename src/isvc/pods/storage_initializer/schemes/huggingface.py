"""Models of the Hugging Face Hub, through its own library, which knows its caches and transfer protocols.

What the Hub keeps outside Git carries a SHA-256, which is compared once a file is here.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from isvc.pods.storage_initializer.fetching import expect_room
from isvc.pods.storage_initializer.placement import notes_of
from isvc.pods.storage_initializer.progress import reaching, watch_size
from isvc.pods.storage_initializer.remote import HubModel
from isvc.pods.storage_initializer.transfer import place, remove_others
from isvc.pods.stores.errors import Damaged, Denied, NotFound, Unreachable, from_http_status, need
from isvc.pods.stores.settings import Settings
from isvc.pods.stores.tls import export_ca_bundle
from isvc.wire.failures import message_of

log = logging.getLogger("isvc.storage-initializer")

_TIMEOUT: Final = 10.0  # seconds to wait for the Hub's answer


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    model = HubModel.parse(uri)
    export_ca_bundle(settings)
    hub = need("huggingface_hub", "huggingface")
    token = settings.get("HF_TOKEN") or None
    host = urlsplit(need("huggingface_hub.constants", "huggingface").ENDPOINT).netloc
    with _explain_errors(uri, host):
        with reaching(host, uri):
            info = hub.HfApi(token=token).model_info(
                model.repository, revision=model.revision, files_metadata=True, timeout=_TIMEOUT
            )
        log.info("%s is at commit %s, %d files", uri, info.sha, len(info.siblings))
        hub.utils.disable_progress_bars()
        wanted = [sibling for sibling in info.siblings if settings.wants(sibling.rfilename)]
        targets = [place(folder, sibling.rfilename) for sibling in wanted]  # the library would write anywhere
        size = sum(sibling.size or 0 for sibling in wanted)
        expect_room(folder, size)
        notes_of(folder).mkdir(exist_ok=True)  # it goes on by itself where another process stopped
        with watch_size(folder, uri, size):
            download = partial(
                hub.hf_hub_download,
                model.repository,
                revision=info.sha,  # one commit, even if the branch moves meanwhile
                local_dir=folder,
                token=token,
            )
            _in_parallel(download, [each.rfilename for each in wanted], settings.number("HF_MAX_FILE_CONCURRENCY", 4))
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    remove_others(folder, [sibling.rfilename for sibling in wanted])
    if not wanted:
        raise NotFound(f"{uri}: there is no file")
    for target, sibling in zip(targets, wanted, strict=True):
        _check(target, sibling)


def _in_parallel(download: Callable[[str], object], names: list[str], workers: int) -> None:
    """Runs them side by side; the first failure ends it."""
    pool = ThreadPoolExecutor(max(workers, 1), thread_name_prefix="download")
    try:
        for _ in pool.map(download, names):
            pass
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _check(file: Path, sibling: Any) -> None:
    if sibling.size is not None and file.stat().st_size != sibling.size:
        raise Damaged(f"{sibling.rfilename}: {file.stat().st_size} bytes arrived where {sibling.size} were announced")
    if sibling.lfs:
        with file.open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        if found != sibling.lfs.sha256:
            raise Damaged(f"{sibling.rfilename}: its sha256 is not the one that the Hub announced")


@contextmanager
def _explain_errors(uri: str, host: str) -> Iterator[None]:
    """Turns the library's errors into ours."""
    errors = need("huggingface_hub.errors", "huggingface")
    try:
        yield
    except errors.GatedRepoError as error:
        raise Denied(f"{uri}: the model is gated, and the token may not read it") from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise NotFound(f"{uri}: no such model or revision, or it is private and needs a token") from error
    except errors.HfHubHTTPError as error:
        raise from_http_status(getattr(error.response, "status_code", 500), uri) from error
    except (errors.LocalEntryNotFoundError, ConnectionError, TimeoutError, *_transport_errors()) as error:
        raise Unreachable(f"{uri}: {host} cannot be reached: {message_of(error)}") from error


def _transport_errors() -> tuple[type[Exception], ...]:
    """Returns what the library's HTTP client raises; which client that is depends on the library's version."""
    clients = {"httpx2": "TransportError", "httpx": "TransportError", "requests": "RequestException"}
    return tuple(getattr(sys.modules[name], error) for name, error in clients.items() if name in sys.modules)
