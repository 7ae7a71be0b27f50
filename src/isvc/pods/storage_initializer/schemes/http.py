"""A file, often an archive, at a web address."""

from __future__ import annotations

import json
from email.message import Message
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qsl, unquote, urlsplit

from isvc.pods.storage_initializer.archive import is_archive
from isvc.pods.storage_initializer.remote import RemoteFile
from isvc.pods.storage_initializer.transfer import download
from isvc.pods.storage_initializer.web import Web, WebFile, basic, split_login
from isvc.pods.stores.errors import Denied, StorageError
from isvc.pods.stores.settings import Settings


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    name = file_name(uri)
    url, *login = split_login(uri)
    page = _Page(Web.of(settings), url, {**basic(*login), **headers_for(uri, settings)})
    download(name, [RemoteFile(name, page.open)], folder)


class _Page(WebFile):
    def check(self, headers: Message) -> None:
        """Refuses pages: a login form or an error looks like one, and no model does."""
        kind = str(headers.get("Content-Type") or "")
        if kind.startswith("text/html") and not urlsplit(self.url).path.endswith((".html", ".htm")):
            raise Denied(f"{urlsplit(self.url).hostname} answered with a web page instead of a file")


def file_name(uri: str) -> str:
    """Returns the last part of the path, unless only the query names an archive, as download scripts do."""
    parts = urlsplit(uri)
    name = PurePosixPath(unquote(parts.path)).name
    if not is_archive(name):
        asked = [PurePosixPath(value).name for _, value in parse_qsl(parts.query)]
        name = next((value for value in asked if is_archive(value)), name)
    if not name:
        raise StorageError(f"{uri} names no file")
    return name


def headers_for(uri: str, settings: Settings) -> dict[str, str]:
    """Reads what a secret holds for that host in `HOST-headers`: a JSON map, or one `name: value` a line."""
    variable = f"{urlsplit(uri).hostname}-headers"
    written = settings.get(variable).strip()
    if written.startswith("{"):
        try:
            return {str(name): str(value) for name, value in json.loads(written).items()}
        except ValueError:
            raise StorageError(f"variable {variable} is not a JSON map") from None
    pairs = (line.partition(":") for line in written.splitlines() if line.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}
