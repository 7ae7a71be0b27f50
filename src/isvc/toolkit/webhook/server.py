"""The HTTPS server of the webhooks: reads reviews, asks the handler, answers; never hangs and never dies of a handler.

Certificates are read again when their files change, so that a rotation needs no restart. Conversion answers from the
start, for filling the caches may need it; admission waits until the caches are filled.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import orjson

from isvc.kube.errors import ApiError, BadRequest, NotFound, TooLarge
from isvc.kube.objects import Object
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.webhook import admission
from isvc.toolkit.webhook.admission import AdmissionHandler, AdmissionResponse
from isvc.toolkit.webhook.conversion import ConversionHandler, convert

if TYPE_CHECKING:
    from aiohttp import web

log = logging.getLogger(__name__)

BODY_LIMIT = 7 * 2**20  # controller-runtime's: two objects of 3 MB and some
DEADLINE = 30.0  # the longest that an API server waits
RELOAD_SECONDS = 2.0


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
        self._runner: web.AppRunner | None = None
        self._reloader: asyncio.Task[None] | None = None
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.set_alpn_protocols(["http/1.1"])

    def open(self) -> None:
        """Admit from now on; until then admission requests wait."""
        self._opened.set()

    async def start(self) -> None:
        from aiohttp import web

        if not self.reload():
            raise ClusterError(f"no valid certificate for the webhooks in {self._certificate.parent}")
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_post("/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host or None, self.port, ssl_context=self.tls)
        try:
            await site.start()
        except OSError as error:
            raise ClusterError(f"cannot listen on port {self.port}: {error.strerror}") from None
        self.port = self._runner.addresses[0][1]
        self._reloader = asyncio.create_task(self._reload_when_changed(), name="certificate reload")

    async def stop(self) -> None:
        if self._reloader is not None:
            self._reloader.cancel()
            await asyncio.gather(self._reloader, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()

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

    async def _reload_when_changed(self) -> None:
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            self.reload()

    async def _serve(self, request: web.Request) -> web.Response:
        from aiohttp import web

        loop = asyncio.get_running_loop()
        started = loop.time()
        route = self._routes.get(request.path)
        if route is None:
            status, body = 404, NotFound(f"no webhook at {request.path}").status()
        else:
            status, body = await self._answer(request, route)
        if self.meter is not None:
            self.meter.answered(request.path, status, loop.time() - started)
        return web.Response(status=status, body=orjson.dumps(body), content_type="application/json")

    async def _answer(self, request: web.Request, route: Route) -> tuple[int, Object]:
        """HTTP status and body: 200 with a review, or 4xx/5xx with a Status when there was no review to answer."""
        review: Any = None
        try:
            async with asyncio.timeout(_patience(request.query.get("timeout", ""))):
                review = await _read(request)
                if isinstance(route, Conversion):
                    return 200, convert(review, route.handler)
                asked = admission.parse(review)
                await self._opened.wait()
                decided = await _decide(route.handler, asked)
                return 200, admission.answer(review["apiVersion"], asked.uid, decided)
        except Exception as error:
            if not isinstance(error, ApiError | TimeoutError):
                log.exception("webhook %s crashed", request.path)
            refused = admission.refusal(error)
            uid = _uid(review)
            if uid and isinstance(route, Admission):
                version = review.get("apiVersion")
                return 200, admission.answer(
                    version if version in admission.VERSIONS else admission.VERSIONS[0], uid, refused
                )
            return refused.code, ApiError(refused.message, status=refused.code).status()


async def _decide(handler: AdmissionHandler, asked: admission.AdmissionRequest) -> AdmissionResponse:
    decided = handler(asked)
    return await decided if inspect.isawaitable(decided) else decided


async def _read(request: web.Request) -> Any:
    from aiohttp import web

    if request.content_type != "application/json":
        raise BadRequest(f"contentType={request.content_type}, expected application/json")
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise TooLarge(f"the review is larger than {BODY_LIMIT} bytes") from None
    if not body:
        raise BadRequest("the request has no body")
    try:
        return orjson.loads(body)
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None


def _patience(timeout: str) -> float:
    """The API server says how long it waits, as `10s`; answer a little before it turns away."""
    try:
        seconds = float(timeout.removesuffix("s"))
    except ValueError:
        return DEADLINE
    return max(0.5, min(seconds, DEADLINE) - 0.5)


def _uid(review: Any) -> str:
    request = review.get("request") if isinstance(review, dict) else None
    return str(request.get("uid") or "") if isinstance(request, dict) else ""
