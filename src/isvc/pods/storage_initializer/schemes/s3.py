"""S3 and what speaks its protocol, through boto3."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from isvc.pods.storage_initializer.errors import Interrupted, NotFound, StorageError, from_http_status, need
from isvc.pods.storage_initializer.settings import Settings
from isvc.pods.storage_initializer.transfer import CHUNK, Body, Digest, RemoteFile, download


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    parts = urlsplit(uri)
    bucket, prefix = parts.netloc, parts.path.lstrip("/")
    client = _client(settings)
    with _explained(uri):
        objects = list(_objects(client, bucket, prefix))
    exact = [found for found in objects if found["Key"] == prefix]
    files = [
        RemoteFile(path, partial(_open, client, bucket, found), found["Size"])
        for found in exact or objects
        if (path := _relative(found["Key"], prefix)) and (exact or settings.wants(path))
    ]
    if not files:
        raise NotFound(f"{uri}: there is no object")
    download(uri, files, folder, side_by_side=settings.number("S3_MAX_FILE_CONCURRENCY", 4))


def _relative(key: str, prefix: str) -> str:
    """Prefixes are plain text in S3, but `models/a` must not bring `models/ab`."""
    if key == prefix:
        return key.rpartition("/")[2]
    folder = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
    return key.removeprefix(folder) if key.startswith(folder) else ""


def _objects(client: Any, bucket: str, prefix: str) -> Iterator[Any]:
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for found in page.get("Contents", ()):
            if not found["Key"].endswith("/"):
                yield found


@contextmanager
def _open(client: Any, bucket: str, found: Any, offset: int) -> Iterator[Body]:
    where = f"s3://{bucket}/{found['Key']}"
    # A range of an empty object cannot be satisfied.
    part = {"Range": f"bytes={offset}-"} if offset else {}
    with _explained(where):
        answer = client.get_object(Bucket=bucket, Key=found["Key"], IfMatch=found["ETag"], **part)
    with closing(answer["Body"]) as stream:
        yield Body(_chunks(stream, where), offset, found["Size"], _digest(answer))


def _chunks(stream: Any, where: str) -> Iterator[bytes]:
    with _explained(where):
        yield from stream.iter_chunks(CHUNK)


def _digest(answer: Any) -> Digest | None:
    """The tag is the MD5 of what was uploaded in one piece, unless a key service encrypted it."""
    tag = answer["ETag"].strip('"')
    plain = not str(answer.get("ServerSideEncryption", "")).startswith("aws:kms")
    return Digest.md5(bytes.fromhex(tag)) if plain and re.fullmatch("[0-9a-f]{32}", tag) else None


@contextmanager
def _explained(where: str) -> Iterator[None]:
    """boto3's errors as ours."""
    exceptions = need("botocore.exceptions", "s3")
    try:
        yield
    except exceptions.ClientError as error:
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        if status == 412:
            raise StorageError(f"{where} changed while it was downloaded") from error
        raise from_http_status(status, where, error.response.get("Error", {}).get("Code", "")) from error
    except exceptions.NoCredentialsError as error:
        raise from_http_status(401, where, "no credentials") from error
    except (exceptions.HTTPClientError, exceptions.ConnectionError, exceptions.IncompleteReadError) as error:
        raise Interrupted(f"{where}: {error}") from error
    except exceptions.BotoCoreError as error:
        raise StorageError(f"{where}: {error}") from error


def _client(settings: Settings) -> Any:
    boto3 = need("boto3", "s3")
    optional = {
        "endpoint_url": settings.get("AWS_ENDPOINT_URL"),
        "region_name": settings.get("AWS_DEFAULT_REGION"),
        "aws_access_key_id": settings.get("AWS_ACCESS_KEY_ID"),
        "aws_secret_access_key": settings.get("AWS_SECRET_ACCESS_KEY"),
        "aws_session_token": settings.get("AWS_SESSION_TOKEN"),
    }
    given = {name: value for name, value in optional.items() if value}
    try:
        return boto3.client("s3", config=_config(settings), verify=_verify(settings), **given)
    except ValueError as error:
        raise StorageError(f"S3: {error}") from error


def _config(settings: Settings) -> Any:
    botocore, config = need("botocore", "s3"), need("botocore.config", "s3")
    s3: dict[str, Any] = {}
    region = settings.get("AWS_DEFAULT_REGION", "us-east-1")
    # The old global endpoint answers for other regions only when the bucket is in the host name.
    global_endpoint = settings.get("AWS_ENDPOINT_URL") == "https://s3.amazonaws.com" and region != "us-east-1"
    if settings.flag("S3_USER_VIRTUAL_BUCKET") or global_endpoint:
        s3["addressing_style"] = "virtual"
    if settings.flag("S3_USE_ACCELERATE"):
        s3["use_accelerate_endpoint"] = True
    return config.Config(
        connect_timeout=settings.number("S3_CONNECT_TIMEOUT", 15),
        read_timeout=settings.number("S3_READ_TIMEOUT", 30),
        retries={"max_attempts": settings.number("S3_MAX_ATTEMPTS", 3), "mode": "standard"},
        signature_version=botocore.UNSIGNED if settings.flag("awsAnonymousCredential") else None,
        s3=s3 or None,
        # Many servers that speak the protocol know nothing of its newer checksums.
        response_checksum_validation="when_required",
    )


def _verify(settings: Settings) -> bool | str:
    if not settings.flag("S3_VERIFY_SSL", default=True):
        return False
    bundle = Path(settings.get("AWS_CA_BUNDLE")) if settings.get("AWS_CA_BUNDLE") else settings.ca_bundle
    if bundle is None:
        return True
    if not bundle.exists():
        raise StorageError(f"CA certificates {bundle} do not exist")
    return str(bundle)
