"""Models in S3, and in what speaks its protocol."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from isvc.pods.storage_initializer.remote import CHUNK, Body, Digest, RemoteFile
from isvc.pods.storage_initializer.transfer import download, relative_to
from isvc.pods.stores.errors import NotFound
from isvc.pods.stores.s3 import client, explain_errors
from isvc.pods.stores.settings import Settings


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    parts = urlsplit(uri)
    bucket, prefix = parts.netloc, parts.path.lstrip("/")
    s3 = client(settings)
    with explain_errors(uri):
        objects = list(_objects(s3, bucket, prefix))
    exact = [found for found in objects if found["Key"] == prefix]
    files = [
        RemoteFile(path, partial(_open, s3, bucket, found), found["Size"], found["ETag"])
        for found in exact or objects
        if (path := relative_to(prefix, found["Key"])) and (exact or settings.wants(path))
    ]
    if not files:
        raise NotFound(f"{uri}: there is no object")
    download(uri, files, folder, side_by_side=settings.number("S3_MAX_FILE_CONCURRENCY", 4))


def _objects(s3: Any, bucket: str, prefix: str) -> Iterator[Any]:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for found in page.get("Contents", ()):
            if not found["Key"].endswith("/"):
                yield found


@contextmanager
def _open(s3: Any, bucket: str, found: Any, start: int, end: int | None, version: str) -> Iterator[Body]:
    where = f"s3://{bucket}/{found['Key']}"
    # A range of an empty object cannot be satisfied.
    part = {"Range": f"bytes={start}-{'' if end is None else end - 1}"} if start or end else {}
    with explain_errors(where):
        answer = s3.get_object(Bucket=bucket, Key=found["Key"], IfMatch=found["ETag"], **part)
    with closing(answer["Body"]) as stream:
        yield Body(_chunks(stream, where), start, found["Size"], _digest(answer), found["ETag"], ranges=True)


def _chunks(stream: Any, where: str) -> Iterator[bytes]:
    with explain_errors(where):
        yield from stream.iter_chunks(CHUNK)


def _digest(answer: Any) -> Digest | None:
    """The tag is the MD5 of what was uploaded in one piece, unless a key service encrypted it."""
    tag = answer["ETag"].strip('"')
    plain = not str(answer.get("ServerSideEncryption", "")).startswith("aws:kms")
    return Digest.md5(bytes.fromhex(tag)) if plain and re.fullmatch("[0-9a-f]{32}", tag) else None
