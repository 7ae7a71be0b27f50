"""Azure file shares, through Azure's client library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from isvc.pods.storage_initializer.remote import Body, Digest, RemoteFile
from isvc.pods.storage_initializer.transfer import download
from isvc.pods.stores import azure
from isvc.pods.stores.errors import NotFound, need
from isvc.pods.stores.settings import Settings
from isvc.pods.stores.tls import export_ca_bundle


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    export_ca_bundle(settings)
    fileshare = need("azure.storage.fileshare", "azure")
    place = azure.parse(uri, settings)
    with azure.explain_errors(uri):
        service = fileshare.ShareServiceClient(
            place.account_url, credential=settings.get("AZURE_STORAGE_ACCESS_KEY") or None
        )
        share = service.get_share_client(place.container)
        found = list(_walk(share, place.prefix))
    files = [
        RemoteFile(relative, partial(_open, share, path), size)
        for path, size in found
        if settings.wants(relative := path.removeprefix(place.prefix).lstrip("/"))
    ]
    if not files:
        raise NotFound(f"{uri}: there is no file")
    download(uri, files, folder, side_by_side=settings.number("AZURE_MAX_FILE_CONCURRENCY", 4))


def _walk(share: Any, folder: str) -> Iterator[tuple[str, int]]:
    for item in share.list_directories_and_files(directory_name=folder):
        path = f"{folder}/{item.name}".lstrip("/")
        if item.is_directory:
            yield from _walk(share, path)
        else:
            yield path, item.size


@contextmanager
def _open(share: Any, path: str, start: int, end: int | None, version: str) -> Iterator[Body]:
    with azure.explain_errors(path):
        stream = share.get_file_client(path).download_file(**azure.extent(start, end))
    md5, tag = stream.properties.content_settings.content_md5, stream.properties.etag or ""
    digest = Digest.md5(bytes(md5)) if md5 else None
    yield Body(azure.chunks(stream, path), start, None, digest, tag, ranges=bool(tag))
