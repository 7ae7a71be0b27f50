"""HDFS over its REST interface, WebHDFS, which needs no library.

The settings are the files of a mounted secret, or come with the storage-config secret: HDFS_NAMENODE, HDFS_ROOTPATH,
USER_PROXY, TLS_CERT, TLS_KEY, TLS_CA, TLS_SKIP_VERIFY, HEADERS, and HDFS_DELEGATION_TOKEN for secured clusters.
"""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from isvc.pods.storage_initializer.transfer import Body, RemoteFile, download
from isvc.pods.storage_initializer.web import Web, chunks
from isvc.pods.stores.errors import NotFound, StorageError, Unsupported
from isvc.pods.stores.settings import Settings

SECRETS: Final = "/var/secrets/kserve-hdfscreds"


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    with tempfile.TemporaryDirectory() as keys:  # of which nothing is left once they are loaded
        options = _options(settings, Path(keys))
        if options.get("KERBEROS_PRINCIPAL"):
            raise Unsupported(f"{uri}: Kerberos is not supported; put a delegation token into HDFS_DELEGATION_TOKEN")
        hdfs = _Hdfs(options, float(settings.get("HTTP_TIMEOUT", "30")))
    root = options.get("HDFS_ROOTPATH", "").strip("/")
    path = "/" + "/".join(part for part in (root, uri.partition("://")[2].strip("/")) if part)
    files = [
        RemoteFile(relative, partial(hdfs.open, found, size), size)
        for found, relative, size in hdfs.walk(path)
        if settings.wants(relative)
    ]
    if not files:
        raise NotFound(f"{uri}: there is no file")
    download(uri, files, folder, side_by_side=int(options.get("N_THREADS", "2")))


class _Hdfs:
    def __init__(self, options: Mapping[str, str], timeout: float) -> None:
        self.web = Web(_context(options), timeout)
        # A client with high availability lists its namenodes; the first that answers would do, we take the first.
        self.namenode = options["HDFS_NAMENODE"].split(";")[0].rstrip("/")
        if "://" not in self.namenode:
            self.namenode = f"http://{self.namenode}"
        self.headers = _headers(options)
        self.query = {
            name: options[option]
            for name, option in (("doas", "USER_PROXY"), ("delegation", "HDFS_DELEGATION_TOKEN"), ("user.name", "USER"))
            if options.get(option)
        }

    def walk(self, path: str) -> Iterator[tuple[str, str, int]]:
        """Yields every file below a path, or the file at it: full path, path in the model, size."""
        status = self._ask("GETFILESTATUS", path)["FileStatus"]
        if status["type"] == "FILE":
            yield path, path.rpartition("/")[2], status["length"]
        else:
            yield from self._below(path, "")

    def _below(self, path: str, relative: str) -> Iterator[tuple[str, str, int]]:
        for status in self._ask("LISTSTATUS", path)["FileStatuses"]["FileStatus"]:
            name = status["pathSuffix"]
            inner, inner_relative = f"{path.rstrip('/')}/{name}", f"{relative}{name}"
            if status["type"] == "DIRECTORY":
                yield from self._below(inner, f"{inner_relative}/")
            else:
                yield inner, inner_relative, status["length"]

    @contextmanager
    def open(self, path: str, size: int, offset: int) -> Iterator[Body]:
        with self.web.get(self._url("OPEN", path, offset=str(offset)), self.headers) as response:
            yield Body(chunks(response), offset, size)

    def _ask(self, operation: str, path: str) -> Any:
        return self.web.json(self._url(operation, path), self.headers)

    def _url(self, operation: str, path: str, **query: str) -> str:
        return f"{self.namenode}/webhdfs/v1{quote(path)}?{urlencode({'op': operation, **self.query, **query})}"


def _options(settings: Settings, keys: Path) -> dict[str, str]:
    """Reads the storage-config secret, whose files are base64 and go into `keys`, or a mounted secret's folder."""
    if settings.storage.get("type") in ("hdfs", "webhdfs"):
        options = dict(settings.storage)
        for name in ("TLS_CERT", "TLS_KEY", "TLS_CA"):
            if name in options:
                (keys / name).write_bytes(base64.b64decode(options[name]))
                options[name] = str(keys / name)
    else:
        folder = Path(settings.get("HDFS_SECRET_DIR", SECRETS))
        files = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
        options = {path.name: str(path) if path.name.startswith("TLS_C") else path.read_text() for path in files}
        if (folder / "TLS_KEY").exists():
            options["TLS_KEY"] = str(folder / "TLS_KEY")
    if not options.get("HDFS_NAMENODE"):
        raise StorageError("HDFS: no HDFS_NAMENODE in the secret")
    return {name: value.strip() for name, value in options.items()}


def _context(options: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=options.get("TLS_CA"))
    if options.get("TLS_CERT"):
        context.load_cert_chain(options["TLS_CERT"], options.get("TLS_KEY"))
    if options.get("TLS_SKIP_VERIFY", "").lower() == "true":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _headers(options: Mapping[str, str]) -> dict[str, str]:
    try:
        return {str(name): str(value) for name, value in json.loads(options.get("HEADERS") or "{}").items()}
    except (ValueError, AttributeError):
        raise StorageError("HDFS: HEADERS is not a JSON map") from None
