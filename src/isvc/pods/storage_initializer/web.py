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
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from isvc.pods.storage_initializer.remote import CHUNK, Body, Digest
from isvc.pods.storage_initializer.web_policy import opener
from isvc.pods.stores.errors import Damaged, Denied, Interrupted, StorageError, from_http_status
from isvc.pods.stores.settings import Settings
from isvc.wire.failures import message_of

TIMEOUT: Final = 30.0
LARGEST_JSON: Final = 64 << 20
SLOW_SECONDS = 60.0
LEAST_SPEED: Final = 1024  # bytes a second


class Web:
    """Opens URLs. `context` verifies servers: the system's CAs and those that the pod's administrator mounted."""

    def __init__(self, context: ssl.SSLContext, timeout: float = TIMEOUT) -> None:
        self.timeout = timeout
        self._opener = opener(context)

    @classmethod
    def of(cls, settings: Settings) -> Web:
        return cls(tls_context(settings), float(settings.get("HTTP_TIMEOUT", str(TIMEOUT))))

    @contextmanager
    def get(
        self, url: str, headers: Mapping[str, str] | None = None, data: bytes | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """Yields a response with a good status; anything else is one of our errors."""
        given = {"Accept-Encoding": "identity", **(headers or {})}
        request = urllib.request.Request(url, data, given)  # noqa: S310
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
            raise Interrupted(f"{url}: {message_of(error)}") from error

    def read(
        self, url: str, headers: Mapping[str, str] | None = None, limit: int = LARGEST_JSON, data: bytes | None = None
    ) -> bytes:
        """Returns a whole answer, for those that have to be small."""
        content = bytearray()
        with self.get(url, headers, data) as response:
            for chunk in chunks(response):
                content += chunk
                if len(content) > limit:
                    raise Damaged(f"{url}: the server answered with more than {limit} bytes")
        return bytes(content)

    def json(self, url: str, headers: Mapping[str, str] | None = None, asked: Any = None) -> Any:
        """Returns what a GET answers, or a POST of what is asked."""
        data = None if asked is None else json.dumps(asked).encode()
        try:
            return json.loads(self.read(url, headers, data=data))
        except (ValueError, RecursionError) as error:
            raise Damaged(f"{url}: the server's answer is no JSON") from error


def split_login(url: str) -> tuple[str, str, str]:
    """Returns an address without the user that stands in it, the user and the password: urllib takes all for a host."""
    parts = urlsplit(url)
    plain = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return plain, unquote(parts.username or ""), unquote(parts.password or "")


def basic(user: str, password: str) -> dict[str, str]:
    """Returns the header that carries a login, if there is one."""
    login = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {login}"} if user or password else {}


class WebFile:
    """A URL that can be read from an offset, as long as it stays the same file.

    `digest` is for those who know what the content has to be; then it can only be the same file.
    """

    def __init__(
        self, web: Web, url: str, headers: Mapping[str, str] | None = None, digest: Digest | None = None
    ) -> None:
        self.web, self.url, self.headers, self.digest = web, url, dict(headers or {}), digest

    @contextmanager
    def open(self, start: int, end: int | None, version: str) -> Iterator[Body]:
        headers = dict(self.headers)
        if version and (start or end is not None):
            headers["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
            if not self.digest:
                headers["If-Range"] = version
        with self.web.get(self.url, headers) as response:
            begin, size = _extent(response)
            ranges = response.status == 206 or response.headers.get("Accept-Ranges") == "bytes"
            known = self.digest.expected.hex() if self.digest else _validator(response.headers)
            self.check(response.headers)
            yield Body(chunks(response), begin, size, self.digest or _digest(response.headers), known, ranges)

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


class Pace:
    """Tells a connection that hardly moves, however alive each single byte makes it look."""

    def __init__(self) -> None:
        self._since, self._count = time.monotonic(), 0

    def take(self, count: int) -> None:
        self._count += count
        if (elapsed := time.monotonic() - self._since) > SLOW_SECONDS:
            if self._count < elapsed * LEAST_SPEED:
                raise Interrupted(f"only {self._count} bytes came in {elapsed:.0f} s")
            self._since, self._count = time.monotonic(), 0


def chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yields content as it comes; a connection that breaks in between is worth another try."""
    pace, empty = Pace(), True
    until_close = response.length is None and not response.chunked
    while True:
        try:
            chunk = response.read1(CHUNK)
        except http.client.IncompleteRead as error:
            if error.partial:
                yield error.partial
            raise Interrupted("the connection broke") from error
        except (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
            raise Interrupted(f"the connection broke: {message_of(error)}") from error
        if not chunk:
            if empty and until_close:  # the library takes a head that was cut off for a whole one
                raise Interrupted("the connection broke before any content")
            return
        empty = False
        yield chunk
        pace.take(len(chunk))


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
