"""The HTTP side of the router: requests in, calls to services out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import aiohttp
import re2
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from prometheus_client import CONTENT_TYPE_LATEST

from isvc.pods.router.execution import Answer, Call, RoutingError, Stream, run
from isvc.pods.router.gjson.documents import is_json
from isvc.pods.router.graph import Graph, Step
from isvc.pods.router.metrics import Metrics
from isvc.pods.router.services import MAX_BODY, Services
from isvc.wire.failures import message_of

log = logging.getLogger("isvc.pods.router")

# A client writes these itself, from the body and the URL that it is given.
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "trailer"})
_TRACE_HEADERS = frozenset({"traceparent", "tracestate"})  # W3C's, of whoever asks


class Router:
    """Serves one graph. `propagated` are patterns of header names that are passed on to every service."""

    def __init__(self, graph: Graph, propagated: Sequence[Any] = ()) -> None:
        self.graph = graph
        self.propagated = propagated
        self.draining = False
        self.metrics = Metrics()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY)
        app.cleanup_ctx.append(self._client_session)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _client_session(self, app: web.Application) -> AsyncIterator[None]:
        """Yields a session without limits of time of its own: those are the steps'.

        Nothing of one client's goes to the next: no cookies, and no logins out of ~/.netrc.
        """
        connector, cookies = aiohttp.TCPConnector(limit=0), aiohttp.DummyCookieJar()
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector, cookie_jar=cookies) as session:
            self._services = Services(session, self.graph.router_timeouts.service_client)
            yield

    async def _ready(self, request: web.Request) -> web.Response:
        return web.Response(text="shutting down\n", status=503) if self.draining else web.Response()

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self.metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        timeouts = self.graph.router_timeouts
        try:
            async with asyncio.timeout(timeouts.server_read):
                body = await request.read()
        except TimeoutError:
            return _failure(RoutingError(f"the request was not received within {timeouts.server_read:g} s", 408))
        try:
            async with asyncio.timeout(timeouts.server_write):
                answer = await run(self.graph, body, self._call_for(request), self.metrics)
        except TimeoutError:
            return _failure(RoutingError(f"the graph did not answer within {timeouts.server_write:g} s", 504))
        except RoutingError as error:
            log.error("%s %s: %s", request.method, request.raw_path, error)
            return _failure(error)
        if answer.stream is not None:
            return await self._pass_on(answer.stream, answer.status, request)
        return web.Response(body=answer.body, status=answer.status, content_type=_content_type(answer.body))

    def _call_for(self, request: web.Request) -> Call:
        headers = self._headers_for_services(request.headers)
        path = request.rel_url.raw_path_qs

        async def call(step: Step, body: bytes, *, last: bool, retried: Callable[[], None]) -> Answer:
            return await self._services.call(step, path, body, headers, last=last, retried=retried)

        return call

    async def _pass_on(self, stream: Stream, status: int, request: web.Request) -> web.StreamResponse:
        """Passes on what comes while it comes; one that stops half-way ends the client's connection as well."""
        limit = self.graph.router_timeouts.server_write
        response = web.StreamResponse(status=status, headers=stream.headers)
        try:
            await response.prepare(request)
            chunks = stream.chunks()
            while True:
                async with asyncio.timeout(limit):
                    if (chunk := await anext(chunks, None)) is None:
                        break
                    await response.write(chunk)
            await response.write_eof()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            log.error("%s %s: the answer broke off: %s", request.method, request.raw_path, message_of(error))
            if request.transport is not None:
                request.transport.abort()
        finally:
            stream.close()
        return response

    def _headers_for_services(self, headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
        passed = CIMultiDict((name, value) for name, value in headers.items() if self._is_passed(name))
        passed.setdefault("Content-Type", "application/json")
        return passed

    def _is_passed(self, header: str) -> bool:
        name = header.lower()
        if name in _OWN_HEADERS:
            return False
        return name in _TRACE_HEADERS or any(pattern.search(canonical(header)) for pattern in self.propagated)


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
