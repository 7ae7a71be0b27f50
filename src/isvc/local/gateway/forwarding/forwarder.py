"""One request, passed on by a rule: backend and endpoint chosen, headers changed, time limited.

Unless its rule asks for retries, a request is sent again only while nothing of it can have been seen: an endpoint that
refuses the connection is skipped for the next one. Everything else that goes wrong is answered with its reason.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import aiohttp
from aiohttp import web

from isvc.local.gateway.endpoints import pools
from isvc.local.gateway.endpoints.backends import Backends, Endpoint, Line, Unavailable
from isvc.local.gateway.endpoints.picker import Picker
from isvc.local.gateway.forwarding.exchange import BUFFERED, Body, Outgoing, Unwanted, exchange, new_session, read_body
from isvc.local.gateway.forwarding.headers import request_headers
from isvc.local.gateway.forwarding.http2_exchange import exchange_http2
from isvc.local.gateway.forwarding.mirrors import Mirrors
from isvc.local.gateway.forwarding.redirects import redirection
from isvc.local.gateway.forwarding.websockets import HANDSHAKE, asks_for_websocket
from isvc.local.gateway.requests.answers import BEGUN, SERVICE, broken_off, refusal
from isvc.local.gateway.requests.http2 import Http2Request
from isvc.local.gateway.requests.target import Target
from isvc.local.gateway.routes.rules import Backend, Rule
from isvc.wire.http2.client import Pool
from isvc.wire.http2.stream import Refused

log = logging.getLogger("isvc.gateway")

# Shorter than any server's, so that no request meets a connection its server is about to close (uvicorn: 5 s).
_KEEP_ALIVE: Final = 4.0
_KEPT: Final = 1 << 20  # bodies of up to this size are read whole where a prompt is looked for, a copy or a retry asked
_NOT_SEEN: Final = (aiohttp.ClientConnectorError, ConnectionRefusedError, Refused)
_TURNS: Final = 50  # of a request in line whose pods go before it reaches them
_PAUSE: Final = 0.1


@dataclass(eq=False)
class _Failed(Exception):
    """An attempt without an answer that could be passed on whole; the words go to the client."""

    status: int
    reason: str


class Forwarder:
    def __init__(self, backends: Backends) -> None:
        self._backends = backends
        self._session: aiohttp.ClientSession | None = None
        self._http2 = Pool()
        self._mirrors = Mirrors(backends)
        self._picker = Picker(self._metrics, backends.running)

    async def forward(self, request: web.BaseRequest, target: Target, rule: Rule) -> web.StreamResponse:
        """Raises Unavailable where no endpoint takes the request."""
        if rule.unsupported:
            return refusal(500, f"{rule.origin} asks for {rule.unsupported}, which this gateway does not have")
        if rule.redirect:
            return redirection(rule.redirect, target, rule.match)
        if not rule.backends:
            return refusal(500, f"{rule.origin} names no backend")
        backend = _choose(rule.backends)
        if backend is None:
            return refusal(500, f"{rule.origin} gives every backend the weight 0")
        request[SERVICE] = f"{backend.namespace}/{backend.service}"
        try:
            async with asyncio.timeout(rule.timeout) as deadline:
                out = await self._outgoing(request, target, rule, backend, deadline)
                if rule.mirrors and isinstance(out.body, bytes | None):
                    for mirror in rule.mirrors:
                        self._mirrors.send(self._inside(), request.method, out, mirror)
                return await self._attempts(request, out, rule, backend)
        except TimeoutError:
            reason = f"no answer within {rule.timeout:g} s, the limit of {rule.origin}"
            return broken_off(request) or refusal(504, reason)
        except _Failed as failed:
            return broken_off(request) or refusal(failed.status, failed.reason)

    async def _outgoing(
        self, request: web.BaseRequest, target: Target, rule: Rule, backend: Backend, deadline: asyncio.Timeout
    ) -> Outgoing:
        """The request as every endpoint and every attempt gets it."""
        filters = (rule.filters, backend.filters)
        headers = request_headers(request, target, filters)
        if asks_for_websocket(request):
            headers.update(HANDSHAKE)
        path = backend.filters.path(rule.filters.path(target.path, rule.match), rule.match)
        is_kept = backend.pool is not None or rule.mirrors or rule.retry.attempts
        body = await read_body(request, _KEPT if is_kept else BUFFERED)
        path_and_query = f"{path}?{target.query}" if target.query else path
        is_http2 = (isinstance(request, Http2Request) and request.is_grpc) or (
            backend.pool is None and self._backends.speaks_http2(backend.namespace, backend.service, backend.port)
        )
        return Outgoing(path_and_query, headers, body, filters, deadlines=(deadline,), http2=is_http2)

    async def _attempts(
        self, request: web.BaseRequest, out: Outgoing, rule: Rule, backend: Backend
    ) -> web.StreamResponse:
        """Allows as many as the rule does; a body that is not there as a whole can be sent but once."""
        further = rule.retry.attempts if isinstance(out.body, bytes | None) else 0
        for number in range(further):
            try:
                return await self._attempt(request, replace(out, unwanted=rule.retry.codes), rule, backend)
            except (Unavailable, Unwanted, _Failed):
                if BEGUN in request:
                    raise
            await asyncio.sleep(rule.retry.backoff * 2**number * random.uniform(0.5, 1))  # noqa: S311
        return await self._attempt(request, out, rule, backend)

    async def _attempt(
        self, request: web.BaseRequest, out: Outgoing, rule: Rule, backend: Backend
    ) -> web.StreamResponse:
        if rule.attempt_timeout is None:
            return await self._pass(request, out, backend)
        try:
            async with asyncio.timeout(rule.attempt_timeout) as deadline:
                return await self._pass(request, replace(out, deadlines=(*out.deadlines, deadline)), backend)
        except TimeoutError:
            reason = f"no answer within {rule.attempt_timeout:g} s, the limit of {rule.origin} for an attempt"
            raise _Failed(504, reason) from None

    async def _pass(self, request: web.BaseRequest, out: Outgoing, backend: Backend) -> web.StreamResponse:
        line = self._backends.line_of(backend.namespace, backend.service) if backend.pool is None else None
        if line is not None:
            return await self._line_up(request, out, line)
        refused: Exception | None = None
        for endpoint in await self._candidates(backend, out.body):
            self._backends.started(endpoint)
            try:
                return await self._send(request, out, endpoint)
            except _NOT_SEEN as error:
                refused = error
            finally:
                self._backends.ended(endpoint)
        raise Unavailable(f"no endpoint of {backend} accepts connections: {refused}")

    async def _line_up(self, request: web.BaseRequest, out: Outgoing, line: Line) -> web.StreamResponse:
        """To the pod whose turn it is; one that is gone meanwhile costs the request another turn, not its life."""
        for turn in range(_TURNS):
            if turn:
                await asyncio.sleep(_PAUSE)
            async with line.admitted() as endpoint:
                try:
                    return await self._send(request, out, endpoint)
                except _NOT_SEEN as error:
                    log.debug("%s %s: %s", request.method, request.path, error)
                    reason = f"the endpoint {endpoint} accepts no connections: {error}"
        raise Unavailable(reason)

    async def _send(self, request: web.BaseRequest, out: Outgoing, endpoint: Endpoint) -> web.StreamResponse:
        """Raises one of _NOT_SEEN where the endpoint has seen nothing of the request."""
        try:
            if out.http2:
                return await exchange_http2(self._http2, request, endpoint, out)
            return await exchange(self._inside(), request, f"http://{endpoint}", out)
        except _NOT_SEEN:
            raise
        except (aiohttp.ClientError, ValueError, OSError) as error:  # ValueError: headers that are none
            if request.transport is not None and not request.transport.is_closing():  # else it was the client
                log.warning("%s %s: %s: %s", request.method, request.path, endpoint, error)
            reason = f"the endpoint {endpoint} ended the connection: {error or type(error).__name__}"
            raise _Failed(502, reason) from error

    async def _candidates(self, backend: Backend, body: Body) -> list[Endpoint]:
        """Endpoints to try, the best first."""
        if backend.pool is None:
            return self._backends.candidates(backend.namespace, backend.service, backend.port)
        members = pools.members(self._backends.reader, backend.pool, backend.namespace, backend.service)
        ordered = await self._picker.order(members, body if isinstance(body, bytes) else b"")
        return [member.endpoint for member in ordered]

    async def _metrics(self, endpoint: Endpoint) -> bytes:
        try:
            async with self._inside().get(f"http://{endpoint}/metrics") as answer:
                return await answer.read()
        except aiohttp.ClientError as error:
            raise OSError(str(error)) from error

    def _inside(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = new_session(aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE))
        return self._session

    async def close(self) -> None:
        await self._mirrors.close()
        await self._http2.close()
        if self._session is not None:
            await self._session.close()


def _choose(backends: Sequence[Backend]) -> Backend | None:
    """One of them by weight; None where none has any."""
    if len(backends) == 1:
        return backends[0] if backends[0].weight else None
    weights = [backend.weight for backend in backends]
    return random.choices(backends, weights)[0] if any(weights) else None  # noqa: S311
