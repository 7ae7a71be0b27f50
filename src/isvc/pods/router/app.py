"""The HTTP side of the router: requests in, calls to services out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import re2
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from isvc.pods.router.execution import Answer, RoutingError, run
from isvc.pods.router.gjson.documents import is_json
from isvc.pods.router.graph import Graph

log = logging.getLogger("isvc.pods.router")

_MAX_BODY = 1 << 30
_MAX_REDIRECTS = 10
# A client writes these itself, from the body and the URL that it is given.
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "trailer"})
_SIDECAR = URL("http://localhost:15000")
_PATIENCE = aiohttp.ClientTimeout(total=3)


class Router:
    """Serves one graph. `propagated` are patterns of header names that are passed on to every service."""

    def __init__(self, graph: Graph, propagated: Sequence[Any] = ()) -> None:
        self.graph = graph
        self.propagated = propagated
        self.draining = False
        self._mesh = Mesh()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=_MAX_BODY)
        app.cleanup_ctx.append(self._client_session)
        app.router.add_get("/readyz", self._ready)
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _client_session(self, app: web.Application) -> AsyncIterator[None]:
        """Yields a session in which a service may take as long as the graph says, or as it likes."""
        timeout = aiohttp.ClientTimeout(total=self.graph.router_timeouts.service_client)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector, trust_env=True) as self._session:
            yield

    async def _ready(self, request: web.Request) -> web.Response:
        return web.Response(text="shutting down\n", status=503) if self.draining else web.Response()

    async def _answer(self, request: web.Request) -> web.Response:
        timeouts = self.graph.router_timeouts
        headers = self._headers_for_services(request.headers)
        try:
            async with asyncio.timeout(timeouts.server_read):
                body = await request.read()
        except TimeoutError:
            return _failure(RoutingError(f"the request was not received within {timeouts.server_read:g} s", 408))
        try:
            async with asyncio.timeout(timeouts.server_write):
                answer = await run(self.graph, body, lambda url, given: self._call(url, given, headers))
        except TimeoutError:
            return _failure(RoutingError(f"the graph did not answer within {timeouts.server_write:g} s", 504))
        except RoutingError as error:
            log.error("%s %s: %s", request.method, request.path, error)
            return _failure(error)
        return web.Response(body=answer.body, status=answer.status, content_type=_content_type(answer.body))

    async def _call(self, url: str, body: bytes, headers: CIMultiDict[str]) -> Answer:
        try:
            target = await self._mesh.target(URL(url, encoded=True), self._session)
            async with self._session.post(target, data=body, headers=headers, max_redirects=_MAX_REDIRECTS) as response:
                return Answer(await response.read(), response.status)
        except TimeoutError:
            limit = self.graph.router_timeouts.service_client
            raise RoutingError(f'Post "{url}": no answer within {limit:g} s' if limit else f'Post "{url}"') from None
        except (aiohttp.ClientError, ValueError, OSError) as error:
            raise RoutingError(f'Post "{url}": {error or type(error).__name__}') from None

    def _headers_for_services(self, headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
        passed = CIMultiDict(
            (name, value)
            for name, value in headers.items()
            if name.lower() not in _OWN_HEADERS and any(pattern.search(canonical(name)) for pattern in self.propagated)
        )
        passed.setdefault("Content-Type", "application/json")
        return passed


def canonical(header: str) -> str:
    """Returns a header's name in the form that patterns are written for, `X-Request-Id`."""
    return "-".join(word.capitalize() for word in header.split("-"))


def compile_patterns(text: str) -> list[Any]:
    """Returns the comma-separated patterns of PROPAGATE_HEADERS; one that is no pattern is reported and left out.

    They are RE2's, as in Go, and so is the time they take: it grows with a header's name alone.
    """
    options = re2.Options()
    options.log_errors = False
    patterns: list[Any] = []
    for pattern in text.split(","):
        try:
            patterns.append(re2.compile(pattern, options))
        except re2.error as error:
            log.error("PROPAGATE_HEADERS: %r is no regular expression: %s", pattern, error.args[0].decode())
    return patterns


def _failure(error: RoutingError) -> web.Response:
    return web.Response(body=error.body(), status=error.status, content_type="application/json")


def _content_type(body: bytes) -> str:
    if is_json(body):
        return "application/json"
    try:
        body.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain"


class Mesh:
    """Whether the router's pod is part of an Istio mesh, where the sidecar and not the router speaks TLS.

    Asks once, at the first request over TLS: at the start the sidecar may not be there yet.
    """

    def __init__(self) -> None:
        self._joined: bool | None = None

    async def target(self, url: URL, session: aiohttp.ClientSession) -> URL:
        if url.scheme != "https":
            return url
        if self._joined is None:
            self._joined = await _sidecar_answers(session)
        return url.with_scheme("http") if self._joined else url


async def _sidecar_answers(session: aiohttp.ClientSession) -> bool:
    try:
        async with session.get(_SIDECAR, timeout=_PATIENCE) as response:
            return response.status == 200
    except (aiohttp.ClientError, OSError):
        return False
