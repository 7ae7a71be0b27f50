"""Models of ModelScope, over its HTTP interface, which needs no library; each file has a SHA-256.

`MODELSCOPE_API_TOKEN` is for private models, `MODELSCOPE_ENDPOINT` for another site.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from isvc.pods.storage_initializer.remote import Digest, HubModel, RemoteFile
from isvc.pods.storage_initializer.transfer import download
from isvc.pods.storage_initializer.web import Web, WebFile
from isvc.pods.stores.errors import Damaged, NotFound, StorageError
from isvc.pods.stores.settings import Settings

ENDPOINT: Final = "https://modelscope.cn"
DEEPEST: Final = 50  # folders in folders
MOST_ENTRIES: Final = 3000  # of one listing: the site leaves the rest out without a word
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class Entry(NamedTuple):
    path: str
    size: int
    digest: Digest | None

    @classmethod
    def decode(cls, document: dict[str, Any]) -> Entry:
        match document:
            case {"Path": str(path), "Size": int(size)}:
                digest = str(document.get("Sha256") or "")
                known = Digest.sha256(bytes.fromhex(digest)) if _DIGEST.fullmatch(digest) else None
                return cls(path, size, known)
        raise Damaged("ModelScope lists a file without path or size")


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    model = HubModel.parse(uri)
    site = _Site(settings, model.repository, model.revision or "master")
    files = [site.file(entry) for entry in site.walk("") if settings.wants(entry.path)]
    if not files:
        raise NotFound(f"{uri}: there is no file")
    download(uri, files, folder, side_by_side=settings.number("MODELSCOPE_MAX_FILE_CONCURRENCY", 4))


class _Site:
    def __init__(self, settings: Settings, model: str, revision: str) -> None:
        self._web, self._revision = Web.of(settings), revision
        self._base = f"{settings.get('MODELSCOPE_ENDPOINT', ENDPOINT).rstrip('/')}/api/v1/models/{model}/repo"
        token = settings.get("MODELSCOPE_API_TOKEN")
        self._headers = {"Authorization": f"Bearer {token}", "Cookie": f"m_session_id={token}"} if token else {}

    def walk(self, folder: str) -> Iterator[Entry]:
        """Yields the files of a folder and of those below it."""
        listed = self._list(folder)
        if len(listed) >= MOST_ENTRIES:
            raise StorageError(f"ModelScope lists no more than {MOST_ENTRIES} files of a folder: /{folder} has more")
        for document in listed:
            if document.get("Type") == "tree":
                below = str(document.get("Path", ""))
                if not below.startswith(f"{folder}/" if folder else "") or below.count("/") > DEEPEST:
                    raise Damaged(f"ModelScope lists {below!r} as a folder in /{folder}")
                yield from self.walk(below)
            else:
                yield Entry.decode(document)

    def file(self, entry: Entry) -> RemoteFile:
        query = urlencode({"Revision": self._revision, "FilePath": entry.path})
        page = WebFile(self._web, f"{self._base}?{query}", self._headers, entry.digest)
        return RemoteFile(entry.path, page.open, entry.size, entry.digest.expected.hex() if entry.digest else "")

    def _list(self, folder: str) -> list[dict[str, Any]]:
        query = {"Revision": self._revision, "Recursive": "False", **({"Root": folder} if folder else {})}
        match self._web.json(f"{self._base}/files?{urlencode(query)}", self._headers):
            case {"Data": {"Files": list(files)}} if all(isinstance(file, dict) for file in files):
                return files
        raise Damaged("ModelScope answered with something else than a list of files")
