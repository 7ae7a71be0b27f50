"""Azure blobs, through Azure's client library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from isvc.pods.storage_initializer.remote import Body, Digest, RemoteFile
from isvc.pods.storage_initializer.transfer import download, relative_to
from isvc.pods.stores import azure
from isvc.pods.stores.errors import NotFound, need
from isvc.pods.stores.settings import Settings
from isvc.pods.stores.tls import export_ca_bundle


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    export_ca_bundle(settings)
    blob = need("azure.storage.blob", "azure")
    place = azure.parse(uri, settings)
    with azure.explain_errors(uri):
        service = blob.BlobServiceClient(place.account_url, credential=azure.credential(settings))
        container = service.get_container_client(place.container)
        found = [item for item in container.list_blobs(name_starts_with=place.prefix or None) if item.size]
    files = [
        RemoteFile(path, partial(_open, container, item), item.size, item.etag)
        for item in found
        if (path := relative_to(place.prefix, item.name)) and settings.wants(path)
    ]
    if not files:
        raise NotFound(f"{uri}: there is no blob")
    download(uri, files, folder, side_by_side=settings.number("AZURE_MAX_FILE_CONCURRENCY", 4))


@contextmanager
def _open(container: Any, item: Any, start: int, end: int | None, version: str) -> Iterator[Body]:
    with azure.explain_errors(item.name):
        unchanged = need("azure.core", "azure").MatchConditions.IfNotModified
        part = azure.extent(start, end)
        stream = container.download_blob(item.name, etag=item.etag, match_condition=unchanged, **part)
    md5 = item.content_settings.content_md5
    digest = Digest.md5(bytes(md5)) if md5 else None
    yield Body(azure.chunks(stream, item.name), start, item.size, digest, item.etag, ranges=True)
