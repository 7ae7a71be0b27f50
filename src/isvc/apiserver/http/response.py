"""Responses of the API server: JSON, plain text, and errors as Kubernetes' Status."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any

import orjson

from isvc.kube.errors import ApiError
from isvc.wire.http1 import message
from isvc.wire.http1.message import JSON, Writer

__all__ = ["JSON", "Response", "Stream", "Writer", "head"]

_date: tuple[int, str] = (0, "")


class Response(message.Response):
    __slots__ = ()

    @classmethod
    def json(cls, value: Any, status: int = 200) -> Response:
        return cls(orjson.dumps(value), status)

    @classmethod
    def text(cls, text: str, status: int = 200) -> Response:
        return cls(text.encode(), status, "text/plain; charset=utf-8")

    @classmethod
    def success(cls, **more: Any) -> Response:
        """Says that something was done, as a Status with these fields; a `code` is that of the answer, too."""
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", **more}
        return cls.json(status, more.get("code", 200))

    @classmethod
    def error(cls, error: ApiError) -> Response:
        headers = {"Retry-After": str(int(error.retry_after))} if error.retry_after else None
        return cls(orjson.dumps(error.status()), error.status_code, JSON, headers)


class Stream(message.Stream, Response):
    __slots__ = ()


def head(response: message.Response, warnings: list[str], close: bool, chunked: bool = False) -> bytes:
    """Returns the status line and headers, with those that every response of an API server has."""
    global _date
    now = int(time.time())
    if now != _date[0]:
        _date = (now, formatdate(now, usegmt=True))
    more = f"Cache-Control: no-cache, private\r\nDate: {_date[1]}\r\n"
    if warnings:
        more += "".join(f"Warning: 299 - {quote(warning)}\r\n" for warning in warnings)
    return response.head(close=close, chunked=chunked, more=more)


def quote(text: str) -> str:
    """Returns a quoted-string of RFC 7230, on one line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(max(c, " ") for c in escaped) + '"'
