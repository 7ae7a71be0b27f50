"""One line for each request, if the user asks for it: in the combined format of other servers, or as JSON.

Queries are left out, in paths and in referrers: they may hold tokens.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson
from aiohttp import web

from isvc.wire.private_files import open_private


class Outcome(NamedTuple):
    service: str
    status: int
    sent: int  # bytes of the body
    seconds: float


class AccessLog:
    def __init__(self, destination: str, *, as_json: bool) -> None:
        """`destination` is a file, to which lines are added, or `-` for the terminal."""
        self._as_json = as_json
        self._file: IO[Any] | None = None if destination == "-" else open_private(Path(destination), "a")

    def write(self, request: web.BaseRequest, outcome: Outcome) -> None:
        line = _as_json(request, outcome) if self._as_json else _combined(request, outcome)
        file = self._file or sys.stdout
        file.write(line + "\n")
        file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _as_json(request: web.BaseRequest, outcome: Outcome) -> str:
    fields = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "client": request.remote or "",
        "method": request.method,
        "host": request.headers.get("Host", ""),
        "path": _without_query(request._message.path),
        "protocol": _protocol(request),
        "status": outcome.status,
        "bytes": outcome.sent,
        "seconds": round(outcome.seconds, 6),
        "service": outcome.service,
        "user_agent": request.headers.get("User-Agent", ""),
    }
    return orjson.dumps({key: _clean(value) for key, value in fields.items()}).decode()


def _combined(request: web.BaseRequest, outcome: Outcome) -> str:
    when = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
    line = f"{request.method} {_without_query(request._message.path)} {_protocol(request)}"
    referrer = _without_query(request.headers.get("Referer", "-"))
    agent = request.headers.get("User-Agent", "-")
    quoted = " ".join(f'"{_escaped(text)}"' for text in (referrer, agent))
    return (
        f'{request.remote or "-"} - - [{when}] "{_escaped(line)}" {outcome.status} {outcome.sent} {quoted} '
        f"{outcome.seconds:.6f} {outcome.service}"
    )


def _protocol(request: web.BaseRequest) -> str:
    major, minor = request.version
    return f"HTTP/{major}.{minor}" if major < 2 else f"HTTP/{major}"


def _without_query(path: str) -> str:
    return path.partition("?")[0]


def _clean(value: Any) -> Any:
    """Bytes that are no UTF-8 come as lone surrogates, which JSON cannot hold."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _escaped(text: str) -> str:
    """No quotation mark and no line break of a client's ends up as one of ours."""
    return text.encode("unicode_escape").decode().replace('"', '\\"')
