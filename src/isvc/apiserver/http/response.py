"""What goes back: a whole body at once, or a stream of chunks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Protocol

import orjson

from isvc.kube.errors import ApiError

JSON = "application/json"
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_date: tuple[int, str] = (0, "")


class Response:
    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self, body: bytes, status: int = 200, content_type: str = JSON, headers: dict[str, str] | None = None
    ) -> None:
        self.body = body
        self.status = status
        self.content_type = content_type
        self.headers = headers

    @classmethod
    def json(cls, value: Any, status: int = 200) -> Response:
        return cls(orjson.dumps(value), status)

    @classmethod
    def text(cls, text: str, status: int = 200) -> Response:
        return cls(text.encode(), status, "text/plain; charset=utf-8")

    @classmethod
    def error(cls, error: ApiError) -> Response:
        headers = {"Retry-After": str(int(error.retry_after))} if error.retry_after else None
        return cls(orjson.dumps(error.status()), error.status_code, JSON, headers)


class Writer(Protocol):
    """The sending end of a stream."""

    def write(self, data: bytes) -> None: ...

    def backlog(self) -> int:
        """Bytes that the client has not taken yet."""

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


def head(response: Response, warnings: list[str], close: bool, chunked: bool = False) -> bytes:
    """Status line and headers."""
    global _date
    now = int(time.time())
    if now != _date[0]:
        _date = (now, formatdate(now, usegmt=True))
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(response.body)}"
    text = (
        f"HTTP/1.1 {response.status} {_PHRASES.get(response.status, '')}\r\n"
        f"Cache-Control: no-cache, private\r\nContent-Type: {response.content_type}\r\nDate: {_date[1]}\r\n{length}\r\n"
    )
    if response.headers:
        text += "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
    if warnings:
        text += "".join(f"Warning: 299 - {quote(warning)}\r\n" for warning in warnings)
    if close:
        text += "Connection: close\r\n"
    return f"{text}\r\n".encode("utf-8", "replace")


def quote(text: str) -> str:
    """A quoted-string of RFC 7230, on one line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(max(c, " ") for c in escaped) + '"'
