"""Serves /healthz, /readyz and /metrics to the kubelet and to Prometheus."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from isvc.toolkit.access import Access
from isvc.toolkit.address import Address
from isvc.toolkit.failure import ClusterError
from isvc.wire.http1.connection import Connection, Handler
from isvc.wire.http1.message import Request, Response
from isvc.wire.http1.server import HttpServer

log = logging.getLogger(__name__)

Check = Callable[[], bool]
Text = Callable[[], bytes]

PLAIN = "text/plain; charset=utf-8"
EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
IDLE_SECONDS = 75.0


@dataclass(frozen=True, slots=True)
class Protection:
    """Served over TLS, to those whom the API server lets read the path."""

    tls: ssl.SSLContext
    access: Access


class Probes:
    """Small HTTP servers; paths with a check answer 200 `ok` or 500, others a text."""

    def __init__(self) -> None:
        self._servers: list[HttpServer[Request]] = []

    async def serve(
        self,
        address: Address,
        *,
        checks: Mapping[str, Check] | None = None,
        texts: Mapping[str, Text] | None = None,
        protection: Protection | None = None,
    ) -> None:
        handler = _Pages(checks or {}, texts or {}, protection.access if protection else None)
        server = HttpServer(handler, idle_seconds=IDLE_SECONDS, tls=protection.tls if protection else None)
        try:
            await server.listen(address.host, address.port)
        except OSError as error:
            place = f"port {address.port}" + (f" of {address.host}" if address.host else "")
            raise ClusterError(f"cannot listen on {place}: {error.strerror}") from None
        self._servers.append(server)

    async def stop(self) -> None:
        await asyncio.gather(*(server.stop() for server in self._servers))
        self._servers.clear()


class _Pages(Handler[Request]):
    max_body = 1 << 16
    request_type = Request

    def __init__(self, checks: Mapping[str, Check], texts: Mapping[str, Text], access: Access | None) -> None:
        self._checks, self._texts, self._access = checks, texts, access

    def handle(self, request: Request, connection: Connection[Request]) -> Response | Awaitable[Response]:
        return self._page(request) if self._access is None else self._page_if_allowed(request, self._access)

    def refusal(self, status: int, message: str) -> Response:
        return _plain(status, message)

    def failure(self, request: Request, error: Exception) -> Response:
        log.error("%s failed", request.path, exc_info=error)
        return _plain(500, "failed: see the log")

    async def _page_if_allowed(self, request: Request, access: Access) -> Response:
        refusal = await access.refusal(request.method, request.path, request.headers.get("authorization", ""))
        return self._page(request) if refusal is None else _plain(refusal.status, refusal.message)

    def _page(self, request: Request) -> Response:
        check, text = self._checks.get(request.path), self._texts.get(request.path)
        if check is None and text is None:
            return _plain(404, "not found")
        if request.method not in ("GET", "HEAD"):
            return _plain(405, "only GET is allowed")
        if text is not None:
            return Response(text(), content_type=EXPOSITION)
        return _plain(200, "ok") if check is not None and check() else _plain(500, "not ready")


def _plain(status: int, text: str) -> Response:
    return Response(text.encode(), status, PLAIN)
