"""Headers on their way through the gateway: those between two neighbours stay behind, routes add and remove others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from aiohttp import web
from multidict import CIMultiDict

from isvc.local.gateway.routes import Filters, HeaderChange
from isvc.local.gateway.target import Target

_HOP_BY_HOP: Final = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
     "transfer-encoding", "upgrade")
)  # fmt: skip
# What the next server needs, even if a client lists it in Connection to have it removed.
_END_TO_END: Final = frozenset(("host", "content-length", "content-type", "authorization", "cookie"))


def request_headers(request: web.BaseRequest, target: Target, filters: Iterable[Filters]) -> CIMultiDict[str]:
    headers = _passed_on(request.headers)
    headers.popall("Expect", None)
    if target.proxied:
        headers["Host"] = target.host if target.port == 80 else f"{target.host}:{target.port}"
    peer = request.remote or ""
    before = headers.get("X-Forwarded-For")
    headers["X-Forwarded-For"] = f"{before}, {peer}" if before else peer
    headers.setdefault("X-Forwarded-Host", request.headers.get("Host", ""))
    headers.setdefault("X-Forwarded-Proto", "http")
    for item in filters:
        _change(headers, item.request)
        if item.rewrite_host:
            headers["Host"] = item.rewrite_host
    return headers


def response_headers(answered: Mapping[str, str], filters: Iterable[Filters]) -> CIMultiDict[str]:
    headers = _passed_on(answered)
    for item in filters:
        _change(headers, item.response)
    return headers


def _passed_on(headers: Mapping[str, str]) -> CIMultiDict[str]:
    listed = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    dropped = _HOP_BY_HOP | (listed - _END_TO_END)
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in dropped)


def _change(headers: CIMultiDict[str], change: HeaderChange) -> None:
    for name, value in change.set:
        headers[name] = value
    for name, value in change.add:
        headers.add(name, value)
    for name in change.remove:
        headers.popall(name, None)
