"""HTTP/1.1 as it passes: what a head says, and where a body ends. Nothing is changed, and what is malformed is refused.

Heads are parsed by httptools (the llhttp of Node), which refuses what could be read in two ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import ClassVar, Protocol

import httptools

from isvc.pods.agent.peer import Peer

HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\n"  # as far as it looks like a head of HTTP/1.1
END_OF_HEAD = b"\r\n\r\n"
_LONGEST_LINE = 1 << 14
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(;[^\r\n]*)?\r\n")
_WITHOUT_BODY = (204, 304)
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class Malformed(ValueError):
    """This is not HTTP/1.1."""


class Cut(ConnectionError):
    """A message ended before its end."""


class Headers:
    """The headers of a message; names are found whatever their case."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs = list(pairs)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.pairs if key == name]

    def get(self, name: str, default: str = "") -> str:
        """Returns the first value; `name` is in lower case."""
        return next((value for key, value in self.pairs if key == name), default)


@dataclass(frozen=True, slots=True)
class Head:
    raw: bytes
    headers: Headers
    keep_alive: bool
    method: str = ""  # of a request
    target: str = ""
    status: int = 0  # of an answer


class Body(Protocol):
    """Counts bytes off until a body is complete; `keep` gets its content."""

    done: bool
    by_close: ClassVar[bool] = False

    def scan(self, data: bytes, keep: Callable[[bytes], None] | None) -> int:
        """Returns how many of the bytes belong to the body."""


class Counted:
    by_close: ClassVar[bool] = False

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0

    def scan(self, data: bytes, keep: Callable[[bytes], None] | None) -> int:
        taken = min(self._left, len(data))
        self._left -= taken
        self.done = self._left == 0
        if keep is not None:
            keep(data if taken == len(data) else data[:taken])
        return taken


class UntilClose:
    by_close: ClassVar[bool] = True
    done = False

    def scan(self, data: bytes, keep: Callable[[bytes], None] | None) -> int:
        if keep is not None:
            keep(data)
        return len(data)


class Chunked:
    """Chunks, then trailers; both are lines, of which one may come in pieces."""

    by_close: ClassVar[bool] = False

    def __init__(self) -> None:
        self._left = 0  # of the chunk
        self._line = b""
        self._expected = self._size_line
        self.done = False

    def scan(self, data: bytes, keep: Callable[[bytes], None] | None) -> int:
        at = 0
        while at < len(data) and not self.done:
            if self._left:
                content = data[at : at + self._left]
                self._left -= len(content)
                at += len(content)
                if keep is not None:
                    keep(content)
                continue
            end = data.find(b"\n", at) + 1 or len(data)
            self._line += data[at:end]
            at = end
            if len(self._line) > _LONGEST_LINE:
                raise Malformed("a line between chunks is too long")
            if self._line.endswith(b"\n"):
                line, self._line = self._line, b""
                self._expected(line)
        return at

    def _size_line(self, line: bytes) -> None:
        size = _CHUNK_SIZE.fullmatch(line)
        if size is None:
            raise Malformed("a chunk has no size")
        self._left = int(size[1], 16)
        self._expected = self._end_of_chunk if self._left else self._trailer

    def _end_of_chunk(self, line: bytes) -> None:
        if line != b"\r\n":
            raise Malformed("a chunk is longer than its size")
        self._expected = self._size_line

    def _trailer(self, line: bytes) -> None:
        self.done = line == b"\r\n"


class _Parsed:
    """Takes httptools' callbacks."""

    def __init__(self) -> None:
        self.url = b""
        self.pairs: list[tuple[str, str]] = []

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.pairs.append((name.decode("latin-1").lower(), value.decode(errors="surrogateescape")))


def parse_request(raw: bytes) -> tuple[Head, Body]:
    parsed = _Parsed()
    parser = httptools.HttpRequestParser(parsed)
    _feed(parser, raw)
    method = parser.get_method().decode("latin-1")
    headers = Headers(parsed.pairs)
    version = parser.get_http_version()
    head = Head(raw, headers, _keeps_alive(version, headers), method, parsed.url.decode("latin-1"))
    if headers.get("transfer-encoding"):
        return head, Chunked()
    return head, Counted(_length(headers) or 0)


def parse_response(raw: bytes, method: str) -> tuple[Head, Body]:
    """`method` is that of the request: what answers a HEAD has no body, whatever it says."""
    parsed = _Parsed()
    parser = httptools.HttpResponseParser(parsed)
    _feed(parser, raw)
    status, headers = parser.get_status_code(), Headers(parsed.pairs)
    body: Body
    if method == "HEAD" or status < 200 or status in _WITHOUT_BODY:
        body = Counted(0)
    elif coding := headers.get("transfer-encoding"):
        body = Chunked() if coding.lower().endswith("chunked") else UntilClose()
    else:
        length = _length(headers)
        body = UntilClose() if length is None else Counted(length)
    keep_alive = _keeps_alive(parser.get_http_version(), headers) and not body.by_close
    return Head(raw, headers, keep_alive, status=status), body


def _feed(parser: httptools.HttpRequestParser | httptools.HttpResponseParser, raw: bytes) -> None:
    try:
        parser.feed_data(raw)
    except httptools.HttpParserUpgrade:
        pass
    except httptools.HttpParserError as error:
        raise Malformed(str(error)) from None


def _keeps_alive(version: str, headers: Headers) -> bool:
    options = ",".join(headers.all("connection")).lower()
    return "close" not in options if version == "1.1" else "keep-alive" in options


def _length(headers: Headers) -> int | None:
    text = headers.get("content-length")
    return int(text) if text.isdigit() else None


async def take_head(peer: Peer, largest: int) -> bytes | None:
    """Waits for a head; None where the peer sends none."""
    while (head := peer.take_until(END_OF_HEAD)) is None:
        if peer.waiting > largest:
            raise Malformed("the headers are too large")
        if not await peer.more():
            if peer.waiting:
                raise Cut("the connection ended within a head")
            return None
    return head


async def take_body(peer: Peer, body: Body, keep: Callable[[bytes], None]) -> None:
    """Reads a body, of which `keep` gets the content."""
    while not body.done:
        if not peer.waiting and not await peer.more():
            _end(body)
            return
        _scan(peer, body, keep)


async def copy_body(source: Peer, body: Body, target: Peer, keep: Callable[[bytes], None] | None) -> None:
    """Passes a body on as it is, as fast as the target takes it."""
    while not body.done:
        if not source.waiting and not await source.more():
            _end(body)
            return
        target.write(_scan(source, body, keep))
        await target.drain()


def copy_head(head: Head, source: Peer, body: Body, target: Peer, keep: Callable[[bytes], None] | None) -> None:
    """Passes on a head, and with it what has arrived of its body, which often is all of it."""
    pieces = [head.raw]
    while source.waiting and not body.done:
        pieces.append(_scan(source, body, keep))
    target.write(b"".join(pieces) if len(pieces) > 1 else head.raw)


def _scan(peer: Peer, body: Body, keep: Callable[[bytes], None] | None) -> bytes:
    data = peer.take()
    used = body.scan(data, keep)
    if used < len(data):
        peer.put_back(data[used:])
        return data[:used]
    return data


def _end(body: Body) -> None:
    if not body.by_close:
        raise Cut("the connection ended within a body")


def encode_response(
    status: int, body: bytes, content_type: str = "text/plain; charset=utf-8", *, close: bool = False
) -> bytes:
    """Writes an answer; one that the model server made up has no phrase for its status."""
    ending = "Connection: close\r\n" if close else ""
    return (
        f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\n{ending}\r\n"
    ).encode() + body
