"""The HTTPS server of the webhooks. A handler that hangs or crashes becomes an answer, and does not end the server.

A handler that decides at once is answered at once; only one that has to wait gets a task, and a deadline.

Certificates are read again when their files change, so that a rotation needs no restart. Conversion answers from the
start, for filling the caches may need it; admission waits until the caches are filled.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from urllib.parse import parse_qs

import orjson

from isvc.kube.errors import ApiError, BadRequest, MethodNotAllowed, NotFound
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.webhook import admission
from isvc.toolkit.webhook import connection as connections
from isvc.toolkit.webhook.admission import AdmissionHandler, AdmissionRequest, AdmissionResponse
from isvc.toolkit.webhook.connection import Connection, error_response
from isvc.toolkit.webhook.conversion import ConversionHandler, convert
from isvc.wire.http1.connection import Connection as BaseConnection
from isvc.wire.http1.message import Request, Response

log = logging.getLogger(__name__)

DEADLINE = 30.0  # the longest that an API server waits
HANDSHAKE_SECONDS = 10.0
STOP_SECONDS = 5.0
GOODBYE_SECONDS = 0.5  # for answers to leave and TLS to end
UPKEEP_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Admission:
    handler: AdmissionHandler


@dataclass(frozen=True, slots=True)
class Conversion:
    handler: ConversionHandler


Route: TypeAlias = Admission | Conversion


def mutating(handler: AdmissionHandler) -> Route:
    return Admission(handler)


def validating(handler: AdmissionHandler) -> Route:
    return Admission(handler)


def conversion(handler: ConversionHandler) -> Route:
    return Conversion(handler)


class WebhookMeter(Protocol):
    def answered(self, path: str, code: int, seconds: float) -> None: ...


class WebhookServer:
    def __init__(
        self,
        port: int,
        cert_dir: str | Path,
        routes: Mapping[str, Route],
        *,
        host: str = "",
        meter: WebhookMeter | None = None,
    ) -> None:
        self.port = port  # 0: any; the real one once started
        self.meter = meter
        self._host = host
        self._routes = dict(routes)
        self._certificate = Path(cert_dir) / "tls.crt"
        self._key = Path(cert_dir) / "tls.key"
        self._loaded: object = None
        self._opened = asyncio.Event()
        self._connections: set[BaseConnection[Request]] = set()
        self._listener: asyncio.Server | None = None
        self._upkeep: asyncio.Task[None] | None = None
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.set_alpn_protocols(["http/1.1"])

    def open(self) -> None:
        """Admit from now on; until then admission requests wait."""
        self._opened.set()

    async def start(self) -> None:
        if not self.reload():
            raise ClusterError(f"no valid certificate for the webhooks in {self._certificate.parent}")
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                lambda: Connection(self._serve, self._connections),
                self._host or None,
                self.port,
                ssl=self.tls,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
            )
        except OSError as error:
            raise ClusterError(f"cannot listen on port {self.port}: {error.strerror}") from None
        self.port = self._listener.sockets[0].getsockname()[1]
        self._upkeep = asyncio.create_task(self._keep_up(), name="webhook server")

    async def stop(self) -> None:
        """Accept no more; answer what was asked, within a few seconds."""
        if self._upkeep is not None:
            self._upkeep.cancel()
            await asyncio.gather(self._upkeep, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.leave()
        await _until(lambda: not any(connection.busy for connection in self._connections), STOP_SECONDS)
        await _until(lambda: not self._connections, GOODBYE_SECONDS)
        for connection in list(self._connections):
            connection.abort()

    def reload(self) -> bool:
        """Read the certificate if its files have changed; a half-written pair is left for the next time."""
        with suppress(OSError):
            now = [
                (each.st_mtime_ns, each.st_ino, each.st_size) for each in (self._certificate.stat(), self._key.stat())
            ]
            if now != self._loaded:
                try:
                    self.tls.load_cert_chain(self._certificate, self._key)
                except ssl.SSLError as error:
                    log.warning("the certificate in %s is not usable: %s", self._certificate.parent, error.reason)
                    return False
                if self._loaded is not None:
                    log.info("serving webhooks with a new certificate")
                self._loaded = now
        return self._loaded is not None

    async def _keep_up(self) -> None:
        while True:
            await asyncio.sleep(UPKEEP_SECONDS)
            self.reload()
            for connection in list(self._connections):
                connection.close_if_idle(connections.IDLE_SECONDS)

    def _serve(self, request: Request) -> Response | Awaitable[Response]:
        started = time.perf_counter()
        route = self._routes.get(request.path)
        if route is None:
            return error_response(NotFound(f"no webhook at {request.path}"))
        reply = self._answer(request, route)
        if isinstance(reply, Response):
            return self._measured(reply, request.path, started)
        return self._measured_later(reply, request.path, started)

    def _measured(self, reply: Response, path: str, started: float) -> Response:
        if self.meter is not None:
            self.meter.answered(path, reply.status, time.perf_counter() - started)
        return reply

    async def _measured_later(self, reply: Awaitable[Response], path: str, started: float) -> Response:
        return self._measured(await reply, path, started)

    def _answer(self, request: Request, route: Route) -> Response | Awaitable[Response]:
        """200 with a review, or 4xx/5xx with a Status when there was no review to answer."""
        review: Any = None
        try:
            review = _read(request)
            if isinstance(route, Conversion):
                return Response(orjson.dumps(convert(review, route.handler)))
            asked = admission.parse(review)
            if not self._opened.is_set():
                return self._decided(request, review, self._once_open(route.handler, asked))
            decided = route.handler(asked)
            if isinstance(decided, AdmissionResponse):
                return Response(orjson.dumps(admission.answer(review["apiVersion"], asked.uid, decided)))
            return self._decided(request, review, decided)
        except Exception as error:
            return _refused(error, request.path, review, route)

    async def _decided(self, request: Request, review: Any, decision: Awaitable[AdmissionResponse]) -> Response:
        try:
            async with asyncio.timeout(_patience(request.query_string)):
                decided = await decision
            return Response(orjson.dumps(admission.answer(review["apiVersion"], _uid(review), decided)))
        except Exception as error:
            return _refused(error, request.path, review, self._routes[request.path])

    async def _once_open(self, handler: AdmissionHandler, asked: AdmissionRequest) -> AdmissionResponse:
        await self._opened.wait()
        decided = handler(asked)
        return decided if isinstance(decided, AdmissionResponse) else await decided


async def _until(condition: Callable[[], bool], seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.01)


def _read(request: Request) -> Any:
    if request.method != "POST":
        raise MethodNotAllowed(f"{request.method} is not how a webhook is asked")
    if request.media_type != "application/json":
        raise BadRequest(f"contentType={request.media_type}, expected application/json")
    if not request.body:
        raise BadRequest("the request has no body")
    try:
        return orjson.loads(request.body)
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None


def _refused(error: Exception, path: str, review: Any, route: Route) -> Response:
    """What went wrong, inside a review if there was one to answer."""
    if not isinstance(error, ApiError | TimeoutError):
        log.error("webhook %s crashed", path, exc_info=error)
    refusal = admission.refusal(error)
    uid = _uid(review)
    if not uid or not isinstance(route, Admission):
        return error_response(ApiError(refusal.message, status=refusal.code))
    version = review.get("apiVersion")
    answer = admission.answer(version if version in admission.VERSIONS else admission.VERSIONS[0], uid, refusal)
    return Response(orjson.dumps(answer))


def _patience(query: str) -> float:
    """Seconds to decide: a little less than the API server waits, which it says as `timeout=10s`."""
    try:
        seconds = float(parse_qs(query).get("timeout", [""])[-1].removesuffix("s"))
    except ValueError:
        return DEADLINE
    return max(0.5, min(seconds, DEADLINE) - 0.5)


def _uid(review: Any) -> str:
    request = review.get("request") if isinstance(review, dict) else None
    return str(request.get("uid") or "") if isinstance(request, dict) else ""
