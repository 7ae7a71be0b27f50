"""The HTTPS server of the webhooks. A handler that hangs or crashes becomes an answer, and does not end the server.

A handler that decides at once is answered at once; only one that has to wait gets a task, and a deadline.

Who reaches the port may ask, unless clients have to show a certificate. Conversion never asks for one: it tells nothing
that was not in the question, and API servers show none to a webhook that converts.

Certificates are read again when their files change, so that a rotation needs no restart. Conversion answers from the
start, for filling the caches may need it; admission waits until the caches are filled.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from urllib.parse import parse_qs

import orjson

from isvc.kube.errors import (
    ApiError,
    BadRequest,
    InternalError,
    MethodNotAllowed,
    NotFound,
    TooLarge,
    Unauthorized,
    from_status,
)
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.webhook import admission
from isvc.toolkit.webhook.admission import AdmissionHandler, AdmissionRequest, AdmissionResponse
from isvc.toolkit.webhook.conversion import ConversionHandler, convert
from isvc.wire.http1.connection import Connection, Handler
from isvc.wire.http1.message import Request, Response
from isvc.wire.http1.server import HttpServer
from isvc.wire.x509.check import read_certificate
from isvc.wire.x509.files import CertificateFiles

log = logging.getLogger(__name__)

DEADLINE = 30.0  # the longest that an API server waits
BODY_LIMIT = 7 * 2**20  # controller-runtime's: two objects of 3 MB and some
MOST_HELD = 16 * BODY_LIMIT  # by all bodies that are not complete: strangers may send them, and a pod has 500 MiB
IDLE_SECONDS = 120.0  # longer than Go's 90, so that it is the client who hangs up


@dataclass(frozen=True, slots=True)
class Admission:
    handler: AdmissionHandler


@dataclass(frozen=True, slots=True)
class Conversion:
    handler: ConversionHandler


Route: TypeAlias = Admission | Conversion


@dataclass(frozen=True, slots=True)
class ClientNames:
    """The common names, of which a client's certificate has to have one; any certificate will do without names."""

    names: tuple[str, ...] = ()

    def admit(self, certificate: Mapping[str, Any] | None) -> None:
        """Raises Unauthorized for a client that is none of them. TLS has seen to who signed the certificate."""
        if not certificate:
            raise Unauthorized("the webhook answers API servers alone: show a client certificate that it trusts")
        subject = {key: value for part in certificate.get("subject", ()) for key, value in part}
        if self.names and subject.get("commonName") not in self.names:
            raise Unauthorized("the webhook answers API servers alone: this client certificate has another name")


class FailedReview(Response):
    """A review that could not be decided. HTTP calls it 200; metrics count it by the code that the user gets."""

    __slots__ = ("code",)

    def __init__(self, body: bytes, code: int) -> None:
        super().__init__(body)
        self.code = code


class WebhookMeter(Protocol):
    def count_answer(self, path: str, code: int, seconds: float) -> None: ...


class WebhookServer(Handler[Request]):
    max_body = BODY_LIMIT
    request_type = Request

    def __init__(
        self,
        port: int,
        cert_dir: str | Path,
        routes: Mapping[str, Route],
        *,
        host: str = "",
        clients: ClientNames | None = None,
    ) -> None:
        """Everybody may ask where no `clients` are given."""
        self.port = port  # 0: any; the real one once started
        self.meter: WebhookMeter | None = None
        self._host = host
        self._clients = clients
        self._routes = dict(routes)
        self._opened = asyncio.Event()
        self._cert_dir = Path(cert_dir)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.set_alpn_protocols(["http/1.1"])
        self._certificate = CertificateFiles(self.tls, self._cert_dir / "tls.crt", self._cert_dir / "tls.key")
        self._http = HttpServer(self, idle_seconds=IDLE_SECONDS, tls=self._certificate, most_held=MOST_HELD)

    def open(self) -> None:
        """Admits from now on; until then admission requests wait."""
        self._opened.set()

    async def start(self) -> None:
        try:
            self._certificate.load()
        except OSError:
            raise ClusterError(f"no valid certificate for the webhooks in {self._cert_dir}") from None
        try:
            _, self.port = await self._http.listen(self._host, self.port)
        except OSError as error:
            raise ClusterError(f"cannot listen on port {self.port}: {error.strerror}") from None

    def certificate_expires(self) -> float:
        """Returns when the certificate ends, in seconds since 1970; 0 while there is none that can be read."""
        try:
            return read_certificate((self._cert_dir / "tls.crt").read_bytes()).expires.timestamp()
        except (OSError, ValueError):
            return 0.0

    def give_up_connections(self) -> None:
        """Lets API servers connect anew for each request, so that they find other replicas before this one is gone."""
        self._http.give_up_connections()

    async def stop(self) -> None:
        """Accepts no more; answers what was asked, within a few seconds."""
        await self._http.stop()

    def refusal(self, status: int, message: str) -> Response:
        return _error_response(TooLarge(message) if status == 413 else BadRequest(message, status=status))

    def failure(self, request: Request, error: Exception) -> Response:
        log.error("webhook %s crashed", request.path, exc_info=error)
        return _error_response(InternalError("the webhook crashed: see its log"))

    def handle(self, request: Request, connection: Connection[Request]) -> Response | Awaitable[Response]:
        started = time.perf_counter()
        route = self._routes.get(request.path)
        if route is None:
            return _error_response(NotFound(f"no webhook at {request.path}"))
        if self._clients is not None and isinstance(route, Admission):
            try:
                self._clients.admit(connection.peer_certificate())
            except Unauthorized as error:
                return self._measure(_error_response(error), request.path, started)
        reply = self._answer(request, route)
        if isinstance(reply, Response):
            return self._measure(reply, request.path, started)
        return self._measure_later(reply, request.path, started)

    def _measure(self, reply: Response, path: str, started: float) -> Response:
        if self.meter is not None:
            code = reply.code if isinstance(reply, FailedReview) else reply.status
            self.meter.count_answer(path, code, time.perf_counter() - started)
        return reply

    async def _measure_later(self, reply: Awaitable[Response], path: str, started: float) -> Response:
        return self._measure(await reply, path, started)

    def _answer(self, request: Request, route: Route) -> Response | Awaitable[Response]:
        """200 with a review, or 4xx/5xx with a Status when there was no review to answer."""
        review: Any = None
        try:
            review = _read(request)
            if isinstance(route, Conversion):
                return Response(orjson.dumps(convert(review, route.handler)))
            asked = admission.parse(review)
            if not self._opened.is_set():
                return self._decide(request, review, self._once_open(route.handler, asked))
            decided = route.handler(asked)
            if isinstance(decided, AdmissionResponse):
                return Response(orjson.dumps(admission.answer(review["apiVersion"], asked.uid, decided)))
            return self._decide(request, review, decided)
        except Exception as error:
            return _refusal_of(error, request.path, review, route)

    async def _decide(self, request: Request, review: Any, decision: Awaitable[AdmissionResponse]) -> Response:
        try:
            async with asyncio.timeout(_patience(request.query_string)):
                decided = await decision
            return Response(orjson.dumps(admission.answer(review["apiVersion"], _uid(review), decided)))
        except Exception as error:
            return _refusal_of(error, request.path, review, self._routes[request.path])

    async def _once_open(self, handler: AdmissionHandler, asked: AdmissionRequest) -> AdmissionResponse:
        await self._opened.wait()
        decided = handler(asked)
        return decided if isinstance(decided, AdmissionResponse) else await decided


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


def _refusal_of(error: Exception, path: str, review: Any, route: Route) -> Response:
    """Returns what went wrong, inside a review if there was one to answer."""
    if isinstance(error, ClusterError):
        log.warning("webhook %s: %s", path, error)
    elif not isinstance(error, ApiError | TimeoutError):
        log.error("webhook %s crashed", path, exc_info=error)
    refusal = admission.refusal(error)
    uid = _uid(review)
    if not uid or not isinstance(route, Admission):
        return _error_response(from_status(refusal.code, {"message": refusal.message}))
    version = review.get("apiVersion")
    answer = admission.answer(version if version in admission.VERSIONS else admission.VERSIONS[0], uid, refusal)
    return FailedReview(orjson.dumps(answer), refusal.code)


def _error_response(error: ApiError) -> Response:
    return Response(orjson.dumps(error.status()), error.status_code)


def _patience(query: str) -> float:
    """Returns the seconds to decide: a little less than the API server waits, which it says as `timeout=10s`."""
    try:
        seconds = float(parse_qs(query).get("timeout", [""])[-1].removesuffix("s"))
    except ValueError:
        return DEADLINE
    return max(0.5, min(seconds, DEADLINE) - 0.5)


def _uid(review: Any) -> str:
    request = review.get("request") if isinstance(review, dict) else None
    uid = request.get("uid") if isinstance(request, dict) else None
    return uid if isinstance(uid, str) else ""
