"""One request, passed on by a rule: backend and endpoint chosen, headers changed, time limited.

A request is sent again only while nothing of it can have been seen: an endpoint that refuses the connection is skipped
for the next one. Everything else that goes wrong is answered with its reason.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Final

import aiohttp
from aiohttp import web
from yarl import URL

from isvc.local.gateway import pools
from isvc.local.gateway.answers import broken_off, refusal
from isvc.local.gateway.backends import Backends, Endpoint, Unavailable
from isvc.local.gateway.exchange import BUFFERED, Body, Outgoing, exchange, new_session, read_body
from isvc.local.gateway.headers import request_headers
from isvc.local.gateway.picker import Picker
from isvc.local.gateway.routes import Backend, Rule
from isvc.local.gateway.target import Target
from isvc.local.gateway.websockets import HANDSHAKE, asks_for_websocket

log = logging.getLogger("isvc.gateway")

# Shorter than any server's, so that no request meets a connection its server is about to close (uvicorn: 5 s).
_KEEP_ALIVE: Final = 4.0
_PROMPT: Final = 1 << 20  # bodies with a prompt, by whose beginning a server is picked, are read whole up to this size


class Forwarder:
    def __init__(self, backends: Backends) -> None:
        self._backends = backends
        self._session: aiohttp.ClientSession | None = None
        self._picker = Picker(self._metrics, backends.running)

    async def forward(self, request: web.BaseRequest, target: Target, rule: Rule) -> web.StreamResponse:
        """Raises Unavailable where no endpoint takes the request."""
        if not rule.backends:
            return refusal(500, f"{rule.origin} names no backend")
        weights = [backend.weight for backend in rule.backends]
        if not any(weights):
            return refusal(500, f"{rule.origin} gives every backend the weight 0")
        backend = random.choices(rule.backends, weights)[0]  # noqa: S311
        try:
            async with asyncio.timeout(rule.timeout) as deadline:
                return await self._pass(request, target, rule, backend, deadline)
        except TimeoutError:
            reason = f"no answer within {rule.timeout:g} s, the limit of {rule.origin}"
            return broken_off(request) or refusal(504, reason)

    async def _pass(
        self, request: web.BaseRequest, target: Target, rule: Rule, backend: Backend, deadline: asyncio.Timeout
    ) -> web.StreamResponse:
        filters = (rule.filters, backend.filters)
        headers = request_headers(request, target, filters)
        if asks_for_websocket(request):
            headers.update(HANDSHAKE)
        path = backend.filters.path(rule.filters.path(target.path, rule.match), rule.match)
        path_and_query = f"{path}?{target.query}" if target.query else path
        refused: Exception | None = None
        body = await read_body(request, BUFFERED if backend.pool is None else _PROMPT)
        for endpoint in await self._candidates(backend, body):
            url = URL(f"http://{endpoint}{path_and_query}", encoded=True)
            self._backends.started(endpoint)
            try:
                out = Outgoing(url, headers, body, filters, deadline=deadline)
                return await exchange(self._inside(), request, out)
            except aiohttp.ClientConnectorError as error:
                refused = error
            except (aiohttp.ClientError, ValueError) as error:  # ValueError: headers that are none
                return self._broken(request, endpoint, error)
            finally:
                self._backends.ended(endpoint)
        raise Unavailable(f"no endpoint of {backend} accepts connections: {refused}")

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

    def _broken(self, request: web.BaseRequest, endpoint: Endpoint, error: Exception) -> web.StreamResponse:
        if request.transport is not None and not request.transport.is_closing():  # else it was the client that went
            log.warning("%s %s: %s: %s", request.method, request.path, endpoint, error)
        reason = f"the endpoint {endpoint} ended the connection: {error or type(error).__name__}"
        return broken_off(request) or refusal(502, reason)

    def _inside(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = new_session(aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE))
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
