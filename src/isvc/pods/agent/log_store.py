"""Where records are kept: objects of S3, Google Cloud Storage and Azure, or files of a volume.

A store is asked from a thread of its own, with the credentials that the pod has for it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

from isvc.pods.stores.errors import StorageError, need
from isvc.pods.stores.settings import Settings
from isvc.pods.stores.tls import export_ca_bundle

CLAIMS: Final = "/mnt/pvc"  # where claims are mounted, each under its name; ISVC_MOUNTS knows better on a laptop


class LogStore(Protocol):
    def put(self, key: str, content: bytes) -> None:
        """Keeps an object; raises StorageError."""


class _S3:
    def __init__(self, url: str, settings: Settings) -> None:
        from isvc.pods.stores import s3

        self._bucket, self._prefix = _bucket_and_prefix(url)
        self._client, self._explained = s3.client(settings), s3.explain_errors

    def put(self, key: str, content: bytes) -> None:
        key = _join(self._prefix, key)
        with self._explained(f"s3://{self._bucket}/{key}"):
            self._client.put_object(Bucket=self._bucket, Key=key, Body=content)


class _Gcs:
    def __init__(self, url: str, settings: Settings) -> None:
        from isvc.pods.stores import gcs

        export_ca_bundle(settings)
        bucket, self._prefix = _bucket_and_prefix(url)
        self._explained, self._host = gcs.explain_errors, gcs.host_of(settings)
        with self._explained(url, self._host):
            self._bucket = gcs.client().bucket(bucket)

    def put(self, key: str, content: bytes) -> None:
        key = _join(self._prefix, key)
        with self._explained(f"gs://{self._bucket.name}/{key}", self._host):
            self._bucket.blob(key).upload_from_string(content, "application/octet-stream", timeout=30, retry=None)


class _Azure:
    def __init__(self, url: str, settings: Settings) -> None:
        """`abfs://container@account.dfs.core.windows.net/path`; a variable may name another address of the account."""
        from isvc.pods.stores import azure

        export_ca_bundle(settings)
        parts = urlsplit(url)
        container, _, host = parts.netloc.rpartition("@")
        container, host = (container, host) if container else (host, "")
        self._prefix, self._explained = parts.path.strip("/"), azure.explain_errors
        account = settings.get("AZURE_ACCOUNT_NAME") or host.partition(".")[0]
        address = settings.get("AZURE_SERVICE_URL") or f"https://{_blob_host(host, account, url)}"
        with azure.explain_errors(url):
            service = need("azure.storage.blob", "azure").BlobServiceClient(
                address, credential=azure.credential(settings, account)
            )
            self._container = service.get_container_client(container)

    def put(self, key: str, content: bytes) -> None:
        key = _join(self._prefix, key)
        with self._explained(key):
            self._container.upload_blob(key, content, overwrite=True, timeout=30)


class _Files:
    """A folder. A file appears whole: whoever reads it meanwhile sees none of it."""

    def __init__(self, url: str, settings: Settings) -> None:
        parts = urlsplit(url)
        if parts.scheme == "pvc":
            mounted = f"{CLAIMS}/{parts.netloc}"
            root = Path(json.loads(settings.get("ISVC_MOUNTS", "{}")).get(mounted, mounted))
            self._folder = root / parts.path.strip("/")
            if not root.is_dir():
                raise StorageError(f"{url}: the claim is not mounted at {root}")
        else:
            self._folder = Path(unquote(parts.netloc + parts.path))

    def put(self, key: str, content: bytes) -> None:
        target = self._folder / key
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            descriptor, path = tempfile.mkstemp(dir=target.parent, prefix=".incoming-")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                Path(path).chmod(0o644)
                Path(path).replace(target)
            except OSError:
                Path(path).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise StorageError(f"{target}: {error.strerror}") from error


_KINDS: Final[Mapping[str, Callable[[str, Settings], LogStore]]] = {
    "s3": _S3, "s3a": _S3, "gs": _Gcs, "gcs": _Gcs, "abfs": _Azure, "abfss": _Azure, "file": _Files, "pvc": _Files,
}  # fmt: skip


def check(url: str) -> None:
    """Raises ValueError for an address that no kind of store has."""
    if urlsplit(url).scheme not in _KINDS:
        raise ValueError(f"{url}: logs are sent to http:// and https://, or kept at {'://, '.join(_KINDS)}://")


def open_store(url: str, environment: Mapping[str, str]) -> LogStore:
    """Raises StorageError when it cannot be used, whatever is written to it."""
    return _KINDS[urlsplit(url).scheme](url, Settings.read(environment))


def _bucket_and_prefix(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    if not parts.netloc:
        raise StorageError(f"{url} names no bucket")
    return parts.netloc, parts.path.strip("/")


def _blob_host(host: str, account: str, url: str) -> str:
    """Blobs have a host of their own beside the one that `abfs` names."""
    if host:
        return host.replace(".dfs.", ".blob.", 1)
    if account:
        return f"{account}.blob.core.windows.net"
    raise StorageError(f"{url}: it names no account, and neither AZURE_SERVICE_URL nor AZURE_ACCOUNT_NAME does")


def _join(*parts: str) -> str:
    return "/".join(part for part in parts if part)
