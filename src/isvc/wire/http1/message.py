"""Requests and responses: a whole body at once, a stream of chunks, or a switch to another protocol."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Protocol

from isvc.wire.http1.tunnel import Tunnel

JSON = "application/json"
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


_TARGET = re.compile(r"[!-~]+").fullmatch
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_VALUE = re.compile(r"[\t -~\x80-\xff]*").fullmatch


def header_lines(headers: Iterable[tuple[str, str]]) -> str:
    """Returns headers as they are sent; raises ValueError for what would end up as another header, or as none."""
    lines = []
    for name, value in headers:
        if not _NAME(name) or not _VALUE(value):
            raise ValueError(f"the header {name!r} has a character that HTTP does not allow")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines)


def encode_request(method: str, target: str, headers: str, body: bytes | None) -> bytes:
    """Returns a request as it is sent; `headers` are those of `header_lines`."""
    if not _TARGET(target):
        raise ValueError(f"the request target {target!r} has a character that HTTP does not allow")
    length = f"Content-Length: {len(body)}\r\n" if body is not None else ""
    head = f"{method} {target} HTTP/1.1\r\n{headers}{length}\r\n".encode("latin-1")
    return head + body if body else head


class Request:
    """An HTTP request, read to its end. Header names are in lower case."""

    __slots__ = ("body", "headers", "method", "path", "query_string")

    def __init__(self, method: str, path: str, query_string: str, headers: dict[str, str], body: bytes) -> None:
        self.method = method
        self.path = path
        self.query_string = query_string
        self.headers = headers
        self.body = body

    @property
    def media_type(self) -> str:
        """The Content-Type without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Response:
    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self, body: bytes, status: int = 200, content_type: str = JSON, headers: dict[str, str] | None = None
    ) -> None:
        self.body = body
        self.status = status
        self.content_type = content_type
        self.headers = headers

    def head(self, *, close: bool, chunked: bool = False, more: str = "") -> bytes:
        """Returns the status line and headers; `more` are header lines with their ends."""
        length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(self.body)}"
        text = (
            f"HTTP/1.1 {self.status} {_PHRASES.get(self.status, '')}\r\n"
            f"Content-Type: {self.content_type}\r\n{length}\r\n{more}"
        )
        if self.headers:
            text += "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        if close:
            text += "Connection: close\r\n"
        return f"{text}\r\n".encode("utf-8", "replace")


class Writer(Protocol):
    """The sending end of a stream."""

    def write(self, data: bytes) -> None: ...

    def backlog(self) -> int:
        """Returns how many bytes the client has not taken yet."""

    async def drain(self) -> None:
        """Returns when the client keeps up again."""

    @property
    def gone(self) -> asyncio.Future[None]:
        """Done when the client has left or the server stops."""


class Stream(Response):
    """A body that is produced while it is sent; `produce` ends the response by returning."""

    __slots__ = ("produce",)

    def __init__(self, produce: Callable[[Writer], Awaitable[None]], content_type: str = JSON) -> None:
        super().__init__(b"", 200, content_type)
        self.produce = produce


class Upgrade(Response):
    """Another protocol from here on; `serve` speaks it, and the connection ends when it returns."""

    __slots__ = ("serve",)

    def __init__(self, headers: dict[str, str], serve: Callable[[Tunnel], Awaitable[None]]) -> None:
        """`headers` name the protocol in `Upgrade`."""
        super().__init__(b"", 101, "", {"Connection": "Upgrade", **headers})
        self.serve = serve

    def head(self, *, close: bool, chunked: bool = False, more: str = "") -> bytes:
        lines = "".join(f"{name}: {value}\r\n" for name, value in (self.headers or {}).items())
        return f"HTTP/1.1 101 Switching Protocols\r\n{lines}\r\n".encode("latin-1", "replace")
