"""Models in Google Cloud Storage."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from isvc.pods.storage_initializer.progress import reaching
from isvc.pods.storage_initializer.remote import CHUNK, Body, Digest, RemoteFile
from isvc.pods.storage_initializer.transfer import download
from isvc.pods.stores.errors import NotFound, need
from isvc.pods.stores.gcs import client, explain_errors, host_of
from isvc.pods.stores.settings import Settings
from isvc.pods.stores.tls import export_ca_bundle

PATIENCE = 30.0  # seconds


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    export_ca_bundle(settings)
    bucket_name, _, prefix = uri.removeprefix("gs://").partition("/")
    host = host_of(settings)
    with explain_errors(uri, host), reaching(host, uri):
        bucket = client().bucket(bucket_name)
        patience = _patience()
        # A folder's name is no object's: look for what is in it first.
        inside = f"{prefix.rstrip('/')}/" if prefix else ""
        found = [blob for blob in bucket.list_blobs(prefix=inside or None, **patience) if not blob.name.endswith("/")]
        if not found and prefix:
            found = [blob for blob in (bucket.get_blob(prefix, **patience),) if blob]
            inside = prefix[: -len(prefix.rpartition("/")[2])] if prefix else ""
    files = [
        RemoteFile(path, partial(_open, blob), blob.size, str(blob.generation))
        for blob in found
        if (path := blob.name.removeprefix(inside)) and settings.wants(path)
    ]
    if not files:
        raise NotFound(f"{uri}: there is no object")
    download(uri, files, folder, side_by_side=settings.number("GCS_MAX_FILE_CONCURRENCY", 4))


def _patience() -> dict[str, Any]:
    """Returns how long to try for a first answer. Google's own two minutes are long for somebody who waits."""
    retry = need("google.cloud.storage.retry", "gcs").DEFAULT_RETRY
    return {"timeout": 10, "retry": retry.with_timeout(PATIENCE)}


@contextmanager
def _open(blob: Any, start: int, end: int | None, version: str) -> Iterator[Body]:
    where = f"gs://{blob.bucket.name}/{blob.name}"
    with explain_errors(where):
        stream = blob.open("rb", chunk_size=8 * CHUNK, if_generation_match=blob.generation)
        stream.seek(start)
    with stream:
        yield Body(_chunks(stream, where), start, blob.size, _digest(blob), str(blob.generation), ranges=True)


def _chunks(stream: Any, where: str) -> Iterator[bytes]:
    with explain_errors(where):
        while chunk := stream.read(CHUNK):
            yield chunk


def _digest(blob: Any) -> Digest | None:
    """Objects that were put together from parts have only a CRC."""
    if blob.md5_hash:
        return Digest.md5(base64.b64decode(blob.md5_hash))
    if blob.crc32c:
        return Digest("crc32c", base64.b64decode(blob.crc32c), need("google_crc32c", "gcs").Checksum)
    return None
