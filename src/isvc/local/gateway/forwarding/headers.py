"""Headers on their way through the gateway: those between two neighbours stay behind, routes add and remove others."""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web
from multidict import CIMultiDict, MultiMapping

from isvc.local.gateway.requests.target import Target
from isvc.local.gateway.routes.rules import Filters, HeaderChange
from isvc.wire.http1.end_to_end import end_to_end


def request_headers(request: web.BaseRequest, target: Target, filters: Iterable[Filters]) -> CIMultiDict[str]:
    headers = end_to_end(request.headers)
    headers.popall("Expect", None)
    if target.proxied:
        headers["Host"] = target.host if target.port == 80 else f"{target.host}:{target.port}"
    peer = request.remote or ""
    before = headers.get("X-Forwarded-For")
    headers["X-Forwarded-For"] = f"{before}, {peer}" if before else peer
    headers.setdefault("X-Forwarded-Host", request.headers.get("Host", ""))
    headers.setdefault("X-Forwarded-Proto", target.scheme)
    for item in filters:
        _change(headers, item.request)
        if item.rewrite_host:
            headers["Host"] = item.rewrite_host
    return headers


def response_headers(answered: MultiMapping[str], filters: Iterable[Filters]) -> CIMultiDict[str]:
    headers = end_to_end(answered)
    for item in filters:
        _change(headers, item.response)
    return headers


def _change(headers: CIMultiDict[str], change: HeaderChange) -> None:
    for name, value in change.set:
        headers[name] = value
    for name, value in change.add:
        headers.add(name, value)
    for name in change.remove:
        headers.popall(name, None)
