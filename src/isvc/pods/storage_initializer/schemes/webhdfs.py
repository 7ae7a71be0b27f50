"""HDFS over its REST interface, WebHDFS, which needs no library.

The settings are the files of a mounted secret, or come with the storage-config secret: HDFS_NAMENODE, HDFS_ROOTPATH,
USER_PROXY, TLS_CERT, TLS_KEY, TLS_CA, TLS_SKIP_VERIFY, HEADERS. A secured cluster wants KERBEROS_PRINCIPAL and
KERBEROS_KEYTAB, with KRB5_CONF where DNS does not tell the realm's servers, or an HDFS_DELEGATION_TOKEN.
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
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from isvc.pods.storage_initializer.kerberos import Kerberos
from isvc.pods.storage_initializer.remote import Body, RemoteFile
from isvc.pods.storage_initializer.transfer import download
from isvc.pods.storage_initializer.web import Web, chunks
from isvc.pods.stores.errors import Denied, Interrupted, NotFound, StorageError
from isvc.pods.stores.settings import Settings
from isvc.pods.stores.tls import accept_any

SECRETS: Final = "/var/secrets/kserve-hdfscreds"
FILES: Final = ("TLS_CERT", "TLS_KEY", "TLS_CA", "KERBEROS_KEYTAB", "KRB5_CONF")


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    with tempfile.TemporaryDirectory() as keys:
        options = _options(settings, Path(keys))
        hdfs = _Hdfs(options, float(settings.get("HTTP_TIMEOUT", "30")))
        root = options.get("HDFS_ROOTPATH", "").strip("/")
        path = "/" + "/".join(part for part in (root, uri.partition("://")[2].strip("/")) if part)
        files = [
            RemoteFile(each.relative, partial(hdfs.open, each), each.size, each.version)
            for each in hdfs.walk(path)
            if settings.wants(each.relative)
        ]
        if not files:
            raise NotFound(f"{uri}: there is no file")
        download(uri, files, folder, side_by_side=int(options.get("N_THREADS", "2")))


class _File(NamedTuple):
    path: str
    relative: str  # in the model
    size: int
    version: str

    @classmethod
    def decode(cls, path: str, relative: str, status: Any) -> _File:
        changed = status.get("modificationTime")
        return cls(path, relative, status["length"], f"{changed}-{status['length']}" if changed else "")


class _Hdfs:
    def __init__(self, options: Mapping[str, str], timeout: float) -> None:
        self.web = Web(_context(options), timeout)
        named = [name.strip().rstrip("/") for name in options["HDFS_NAMENODE"].split(";") if name.strip()]
        self._namenodes = [name if "://" in name else f"http://{name}" for name in named]
        self._headers = _headers(options)
        self._kerberos = _kerberos(options)
        self.query = {
            name: options[option]
            for name, option in (("doas", "USER_PROXY"), ("delegation", "HDFS_DELEGATION_TOKEN"), ("user.name", "USER"))
            if options.get(option)
        }

    def walk(self, path: str) -> Iterator[_File]:
        """Yields every file below a path, or the file at it."""
        status = self._find_active(path)["FileStatus"]
        if status["type"] == "FILE":
            yield _File.decode(path, path.rpartition("/")[2], status)
        else:
            yield from self._below(path, "")

    def _below(self, path: str, relative: str) -> Iterator[_File]:
        for status in self._ask("LISTSTATUS", path)["FileStatuses"]["FileStatus"]:
            name = status["pathSuffix"]
            inner, inner_relative = f"{path.rstrip('/')}/{name}", f"{relative}{name}"
            if status["type"] == "DIRECTORY":
                yield from self._below(inner, f"{inner_relative}/")
            else:
                yield _File.decode(inner, inner_relative, status)

    @contextmanager
    def open(self, file: _File, start: int, end: int | None, version: str) -> Iterator[Body]:
        length = {} if end is None else {"length": str(end - start)}
        url = self._url("OPEN", file.path, offset=str(start), **length)
        with self.web.get(url, self._proof()) as response:
            yield Body(chunks(response), start, file.size, None, file.version, ranges=bool(file.version))

    def _find_active(self, path: str) -> Any:
        """Asks one namenode after the other, where there are several: those that stand by refuse."""
        while True:
            try:
                return self._ask("GETFILESTATUS", path)
            except (Interrupted, Denied):
                if len(self._namenodes) == 1:
                    raise
                del self._namenodes[0]

    def _ask(self, operation: str, path: str) -> Any:
        return self.web.json(self._url(operation, path), self._proof())

    def _proof(self) -> dict[str, str]:
        """Returns the headers of one request."""
        host = urlsplit(self._namenodes[0]).hostname or ""
        return {**self._headers, **(self._kerberos.header(host) if self._kerberos else {})}

    def _url(self, operation: str, path: str, **query: str) -> str:
        return f"{self._namenodes[0]}/webhdfs/v1{quote(path)}?{urlencode({'op': operation, **self.query, **query})}"


def _options(settings: Settings, keys: Path) -> dict[str, str]:
    """Reads the storage-config secret, whose files are base64 and go into `keys`, or a mounted secret's folder."""
    if settings.storage.get("type") in ("hdfs", "webhdfs"):
        options = dict(settings.storage)
        for name in FILES:
            if name in options:
                (keys / name).write_bytes(base64.b64decode(options[name]))
                options[name] = str(keys / name)
    else:
        folder = Path(settings.get("HDFS_SECRET_DIR", SECRETS))
        files = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
        options = {path.name: str(path) if path.name in FILES else path.read_text() for path in files}
    if not options.get("HDFS_NAMENODE"):
        raise StorageError("HDFS: no HDFS_NAMENODE in the secret")
    return {name: value.strip() for name, value in options.items()}


def _kerberos(options: Mapping[str, str]) -> Kerberos | None:
    if not options.get("KERBEROS_PRINCIPAL"):
        return None
    if not options.get("KERBEROS_KEYTAB"):
        raise StorageError("HDFS: KERBEROS_PRINCIPAL needs a KERBEROS_KEYTAB beside it")
    config = options.get("KRB5_CONF")
    return Kerberos(options["KERBEROS_PRINCIPAL"], Path(options["KERBEROS_KEYTAB"]), Path(config) if config else None)


def _context(options: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=options.get("TLS_CA"))
    if options.get("TLS_CERT"):
        context.load_cert_chain(options["TLS_CERT"], options.get("TLS_KEY"))
    if options.get("TLS_SKIP_VERIFY", "").lower() == "true":
        accept_any(context)
    return context


def _headers(options: Mapping[str, str]) -> dict[str, str]:
    try:
        return {str(name): str(value) for name, value in json.loads(options.get("HEADERS") or "{}").items()}
    except (ValueError, AttributeError):
        raise StorageError("HDFS: HEADERS is not a JSON map") from None
