"""HTTP with the standard library: ranges, private CAs, and headers that stay with their host.

Where requests may go, and what may follow a redirect, is in `web_policy`.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from typing import IO, Any, Final

from isvc.pods.storage_initializer.transfer import CHUNK, Body, Digest
from isvc.pods.storage_initializer.web_policy import opener
from isvc.pods.stores.errors import Damaged, Denied, Interrupted, StorageError, from_http_status
from isvc.pods.stores.settings import Settings

TIMEOUT: Final = 30.0
LARGEST_JSON: Final = 64 << 20


class Web:
    """Opens URLs. `context` verifies servers: the system's CAs and those that the pod's administrator mounted."""

    def __init__(self, context: ssl.SSLContext, timeout: float = TIMEOUT) -> None:
        self.timeout = timeout
        self._opener = opener(context)

    @classmethod
    def of(cls, settings: Settings) -> Web:
        return cls(tls_context(settings), float(settings.get("HTTP_TIMEOUT", str(TIMEOUT))))

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str] | None = None) -> Iterator[http.client.HTTPResponse]:
        """Yields a response with a good status; anything else is one of our errors."""
        request = urllib.request.Request(url, headers={"Accept-Encoding": "identity", **(headers or {})})  # noqa: S310
        if request.type not in ("http", "https"):
            raise StorageError(f"{url} is not an HTTP address")
        try:
            with self._opener.open(request, timeout=self.timeout) as response:
                yield response
        except urllib.error.HTTPError as error:
            with error:
                raise from_http_status(error.code, url, error.reason) from error
        except ssl.SSLCertVerificationError as error:
            raise Denied(f"{url}: the server's certificate is not trusted: {error.verify_message}") from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                reason = error.reason.verify_message
                raise Denied(f"{url}: the server's certificate is not trusted: {reason}") from error
            raise Interrupted(f"{url}: {error.reason}") from error
        except (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
            raise Interrupted(f"{url}: {error or type(error).__name__}") from error

    def read(self, url: str, headers: Mapping[str, str] | None = None, limit: int = LARGEST_JSON) -> bytes:
        """Returns a whole answer, for those that have to be small."""
        with self.get(url, headers) as response:
            content = response.read(limit + 1)
        if len(content) > limit:
            raise Damaged(f"{url}: the server answered with more than {limit} bytes")
        return content

    def json(self, url: str, headers: Mapping[str, str] | None = None) -> Any:
        try:
            return json.loads(self.read(url, headers))
        except (ValueError, RecursionError) as error:
            raise Damaged(f"{url}: the server's answer is no JSON") from error


class WebFile:
    """A URL that can be read from an offset, as long as it stays the same file.

    `digest` is for those who know what the content has to be; then it can only be the same file.
    """

    def __init__(
        self, web: Web, url: str, headers: Mapping[str, str] | None = None, digest: Digest | None = None
    ) -> None:
        self.web, self.url, self.headers, self.digest = web, url, dict(headers or {}), digest
        self._validator = ""

    @contextmanager
    def open(self, offset: int) -> Iterator[Body]:
        headers = dict(self.headers)
        if offset and (self._validator or self.digest):
            headers["Range"] = f"bytes={offset}-"
            if not self.digest:
                headers["If-Range"] = self._validator
        with self.web.get(self.url, headers) as response:
            start, size = _extent(response)
            self._validator = _validator(response.headers)
            self.check(response.headers)
            yield Body(chunks(response), start, size, self.digest or _digest(response.headers))

    def check(self, headers: Message) -> None:
        """Accepts any headers; overridden by those who know what to expect."""


def tls_context(settings: Settings) -> ssl.SSLContext:
    context = ssl.create_default_context()
    for variable in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        if settings.get(variable):
            context.load_verify_locations(settings.get(variable))
    if settings.ca_bundle:
        try:
            context.load_verify_locations(settings.ca_bundle)
        except (OSError, ssl.SSLError) as error:
            raise StorageError(f"CA certificates {settings.ca_bundle} cannot be used: {error}") from error
    return context


def chunks(stream: IO[bytes] | http.client.HTTPResponse) -> Iterator[bytes]:
    """Yields content piece by piece; a connection that breaks in between is worth another try."""
    while True:
        try:
            chunk = stream.read(CHUNK)
        except http.client.IncompleteRead as error:
            if error.partial:
                yield error.partial
            raise Interrupted("the connection broke") from error
        except (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
            raise Interrupted(f"the connection broke: {error or type(error).__name__}") from error
        if not chunk:
            return
        yield chunk


def _extent(response: http.client.HTTPResponse) -> tuple[int, int | None]:
    """Returns where the content starts, and the size of the whole file."""
    if response.status == 206:
        found = re.fullmatch(r"bytes ([0-9]{1,18})-[0-9]+/([0-9]{1,18}|\*)", response.headers.get("Content-Range", ""))
        if not found:
            raise StorageError("the server answered a part without saying which")
        return int(found[1]), None if found[2] == "*" else int(found[2])
    length = response.headers.get("Content-Length") or ""
    return 0, int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None


def _validator(headers: Message) -> str:
    """Identifies the file's content: only a strong tag, or a date, can be trusted to continue."""
    tag = str(headers.get("ETag") or "")
    return tag if tag and not tag.startswith("W/") else str(headers.get("Last-Modified") or "")


def _digest(headers: Message) -> Digest | None:
    """Returns the whole file's checksum, where the server gives it: Content-MD5, or Google's and the RFCs' lists."""
    written = dict(
        item.strip().partition("=")[::2]
        for name in ("x-goog-hash", "Digest", "Repr-Digest")
        for line in headers.get_all(name, [])
        for item in str(line).split(",")
    )
    sums = {name.lower(): value.strip(":") for name, value in written.items()}
    for name, make in (("sha-256", Digest.sha256), ("md5", Digest.md5)):
        if expected := _decode(sums.get(name, "")):
            return make(expected)
    expected = _decode(str(headers.get("Content-MD5") or ""))
    return Digest.md5(expected) if expected else None


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
