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
from isvc.wire.http1.connection import Connection
from isvc.wire.http1.message import Request, Response

log = logging.getLogger(__name__)

Check = Callable[[], bool]
Text = Callable[[], bytes]
Answer = Callable[[Request], Response | Awaitable[Response]]

PLAIN = "text/plain; charset=utf-8"
EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
HANDSHAKE_SECONDS = 10.0
IDLE_SECONDS = 75.0
UPKEEP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Protection:
    """Served over TLS, to those whom the API server lets read the path."""

    tls: ssl.SSLContext
    access: Access


class Probes:
    """Small HTTP servers; paths with a check answer 200 `ok` or 500, others a text."""

    def __init__(self) -> None:
        self._listeners: list[asyncio.Server] = []
        self._connections: set[Connection[Request]] = set()
        self._upkeep: asyncio.Task[None] | None = None

    async def serve(
        self,
        address: Address,
        *,
        checks: Mapping[str, Check] | None = None,
        texts: Mapping[str, Text] | None = None,
        protection: Protection | None = None,
    ) -> None:
        answer = _answers(checks or {}, texts or {})
        if protection is not None:
            answer = _guarded(answer, protection.access)
        try:
            listener = await asyncio.get_running_loop().create_server(
                lambda: _Connection(answer, self._connections),
                address.host or None,
                address.port,
                ssl=protection.tls if protection else None,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if protection else None,
            )
        except OSError as error:
            place = f"port {address.port}" + (f" of {address.host}" if address.host else "")
            raise ClusterError(f"cannot listen on {place}: {error.strerror}") from None
        self._listeners.append(listener)
        if self._upkeep is None:
            self._upkeep = asyncio.create_task(self._close_idle(), name="probes")

    async def stop(self) -> None:
        if self._upkeep is not None:
            self._upkeep.cancel()
            await asyncio.gather(self._upkeep, return_exceptions=True)
            self._upkeep = None
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        for connection in list(self._connections):
            connection.leave()

    async def _close_idle(self) -> None:
        while True:
            await asyncio.sleep(UPKEEP_SECONDS)
            for connection in list(self._connections):
                connection.close_if_idle(IDLE_SECONDS)


class _Connection(Connection[Request]):
    max_body = 1 << 16
    request_type = Request

    def __init__(self, answer: Answer, connections: set[Connection[Request]]) -> None:
        super().__init__(connections)
        self._answer_to = answer

    def handle(self, request: Request) -> Response | Awaitable[Response]:
        return self._answer_to(request)

    def refusal(self, status: int, message: str) -> Response:
        return _said(status, message)

    def failure(self, request: Request, error: Exception) -> Response:
        log.error("%s failed", request.path, exc_info=error)
        return _said(500, "failed: see the log")


def _answers(checks: Mapping[str, Check], texts: Mapping[str, Text]) -> Answer:
    def answer(request: Request) -> Response:
        if request.path not in checks and request.path not in texts:
            return _said(404, "not found")
        if request.method not in ("GET", "HEAD"):
            return _said(405, "only GET is allowed")
        if request.path in texts:
            return Response(texts[request.path](), content_type=EXPOSITION)
        return _said(200, "ok") if checks[request.path]() else _said(500, "not ready")

    return answer


def _guarded(answer: Answer, access: Access) -> Answer:
    async def guarded(request: Request) -> Response:
        refusal = await access.refusal(request.method, request.path, request.headers.get("authorization", ""))
        if refusal is not None:
            return _said(refusal.status, refusal.message)
        reply = answer(request)
        return reply if isinstance(reply, Response) else await reply

    return guarded


def _said(status: int, text: str) -> Response:
    return Response(text.encode(), status, PLAIN)
