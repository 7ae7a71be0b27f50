"""One request, passed on: chosen backend, changed headers, bodies streamed both ways.

A request is sent again only while nothing of it can have been seen: an endpoint that refuses the connection is skipped
for the next one. Everything else that goes wrong is told to the client with its reason.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from isvc.local.gateway.backends import Backends, Endpoint, Unavailable
from isvc.local.gateway.routes import Backend, Filters, HeaderChange, Match, RouteTable, Rule

log = logging.getLogger("isvc.gateway")

_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
     "transfer-encoding", "upgrade")
)  # fmt: skip
# Shorter than any server's, so that no request meets a connection its server is about to close (uvicorn: 5 s).
_KEEP_ALIVE = 4.0
_BEGUN = web.RequestKey("begun", web.StreamResponse)
_BUFFERED = 64 * 1024  # bodies up to this size are passed on in one piece
_LONGEST_LINE = 64 * 1024  # of a request or an answer: tokens and cookies may be long


class Target(NamedTuple):
    """What a request line asks for. `proxied` when it named its host, as a client of an HTTP proxy does."""

    host: str
    port: int
    path: str
    query: str
    proxied: bool

    @property
    def path_and_query(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path


class Proxy:
    def __init__(self, table: Callable[[], RouteTable], backends: Backends) -> None:
        self._table = table
        self._backends = backends
        self._session: aiohttp.ClientSession | None = None
        self._outside: aiohttp.ClientSession | None = None

    def server(self) -> web.Server:
        return web.Server(
            self,
            access_log=None,
            handler_cancellation=True,  # when the client is gone, nobody waits for the answer
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_LINE,
        )

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        target = target_of(request)
        if refused := unsupported(request, target):
            return refused
        rule = self._route(request, target)
        if rule is None:
            return await self._unrouted(request, target)
        if not rule.backends:
            return refusal(500, f"{rule.origin} names no backend")
        weights = [backend.weight for backend in rule.backends]
        if not any(weights):
            return refusal(500, f"{rule.origin} gives every backend the weight 0")
        backend = random.choices(rule.backends, weights)[0]  # noqa: S311
        try:
            async with asyncio.timeout(rule.timeout):
                return await self._pass(request, target, rule, backend)
        except TimeoutError:
            return _begun(request) or refusal(504, f"no answer within {rule.timeout:g} s, the limit of {rule.origin}")
        except Unavailable as error:
            return refusal(503, error.reason)

    def _route(self, request: web.BaseRequest, target: Target) -> Rule | None:
        query = dict(parse_qsl(target.query, keep_blank_values=True)) if target.query else {}
        rule = self._table().find(target.host, request.method, target.path, request.headers, query)
        if rule is not None:
            return rule
        service = cluster_name(target.host)
        if service is None:
            return None
        name, namespace = service
        if not target.host.endswith((".svc", ".cluster.local")) and not self._backends.knows(namespace, name):
            return None  # example.com, not the Service `example` of a namespace `com`
        return Rule(Match(), (Backend(namespace, name, target.port),), origin=f"Service {namespace}/{name}")

    async def _unrouted(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        if target.proxied:
            return await self._forward_outside(request, target)
        table = self._table()
        if table.knows(target.host):
            return refusal(404, f"no route of host {target.host} matches {request.method} {target.path}")
        hosts = ", ".join(sorted(table.exact)[:20]) or "none yet"
        return refusal(404, f"no route for host {target.host}; known hosts: {hosts}")

    async def _pass(self, request: web.BaseRequest, target: Target, rule: Rule, backend: Backend) -> web.StreamResponse:
        headers = request_headers(request, target, (rule.filters, backend.filters))
        path = backend.filters.path(rule.filters.path(target.path, rule.match), rule.match)
        path_and_query = f"{path}?{target.query}" if target.query else path
        refused: Exception | None = None
        for endpoint in self._backends.candidates(backend.namespace, backend.service, backend.port):
            url = URL(f"http://{endpoint}{path_and_query}", encoded=True)
            self._backends.started(endpoint)
            try:
                return await self._exchange(self._inside(), request, url, headers, (rule.filters, backend.filters))
            except aiohttp.ClientConnectorError as error:
                refused = error
            except aiohttp.ClientError as error:
                return self._broken(request, endpoint, error)
            finally:
                self._backends.ended(endpoint)
        raise Unavailable(
            f"no endpoint of Service {backend.namespace}/{backend.service} accepts connections: {refused}"
        )

    async def _exchange(
        self,
        session: aiohttp.ClientSession,
        request: web.BaseRequest,
        url: URL,
        headers: CIMultiDict[str],
        filters: tuple[Filters, ...],
    ) -> web.StreamResponse:
        async with session.request(
            request.method, url, headers=headers, data=await _body(request), allow_redirects=False
        ) as answer:
            changed = CIMultiDict((k, v) for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP)
            for item in filters:
                _change(changed, item.response)
            length = answer.content_length
            if request.method != "HEAD" and length is not None and length <= _BUFFERED:
                changed.popall("Content-Length", None)
                body = await answer.read()
                return web.Response(status=answer.status, reason=answer.reason, headers=changed, body=body)
            return await _stream(request, answer, changed)

    def _broken(self, request: web.BaseRequest, endpoint: Endpoint, error: aiohttp.ClientError) -> web.StreamResponse:
        if request.transport is not None and not request.transport.is_closing():  # else it was the client that went
            log.warning("%s %s: %s: %s", request.method, request.path, endpoint, error)
        reason = f"the endpoint {endpoint} ended the connection: {error or type(error).__name__}"
        return _begun(request) or refusal(502, reason)

    async def _forward_outside(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        """Processes of the node send all their http:// requests here; those to other hosts go their way."""
        if self._outside is None:
            self._outside = _session(None, trust_env=True)
        headers = request_headers(request, target, ())
        url = URL(f"http://{target.host}:{target.port}{target.path_and_query}", encoded=True)
        try:
            return await self._exchange(self._outside, request, url, headers, ())
        except aiohttp.ClientError as error:
            return _begun(request) or refusal(502, f"{target.host}: {error or type(error).__name__}")

    def _inside(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = _session(aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE))
        return self._session

    async def close(self) -> None:
        for session in (self._session, self._outside):
            if session is not None:
                await session.close()


_NO_LIMIT = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=10)
_NOT_ADDED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")  # a client that says none of these means it


def _session(connector: aiohttp.TCPConnector | None, *, trust_env: bool = False) -> aiohttp.ClientSession:
    """A client that passes on what it is given, and nothing of its own."""
    return aiohttp.ClientSession(
        connector=connector,
        auto_decompress=False,
        timeout=_NO_LIMIT,
        skip_auto_headers=_NOT_ADDED,
        trust_env=trust_env,
        max_line_size=_LONGEST_LINE,
        max_field_size=_LONGEST_LINE,
    )


def refusal(status: int, reason: str) -> web.Response:
    return web.json_response({"error": reason}, status=status, headers={"X-Isvc-Gateway": "refused"})


def target_of(request: web.BaseRequest) -> Target:
    raw = request.raw_path if isinstance(request, web.Request) else request._message.path
    authority, proxied = request.headers.get("Host", ""), False
    if raw[:7].lower() == "http://":
        authority, slash, rest = raw[len("http://") :].partition("/")
        raw, proxied = slash + rest or "/", True
    host, _, port = authority.rpartition(":") if authority.rpartition(":")[2].isdigit() else (authority, "", "")
    path, _, query = raw.partition("?")
    return Target(host.lower().rstrip("."), int(port or 80), path, query, proxied)


def unsupported(request: web.BaseRequest, target: Target) -> web.Response | None:
    """The answer to what no proxy of HTTP requests can do. Other upgrades than WebSocket may be ignored (h2c)."""
    if not target.path.startswith("/"):
        return refusal(400, f"{request.method} needs a path; the gateway opens no tunnels, as https:// would need them")
    if request.headers.get("Upgrade", "").lower() == "websocket":
        return refusal(501, "the gateway does not pass WebSockets on")
    return None


def cluster_name(host: str) -> tuple[str, str] | None:
    """Service and namespace in `name.namespace`, `.svc` and `.svc.cluster.local` names; None for all other hosts."""
    parts = host.removesuffix(".cluster.local").removesuffix(".svc").split(".")
    if len(parts) != 2 or parts[1] in ("localhost", "local") or parts[1].isdigit():
        return None
    return parts[0], parts[1]


def request_headers(request: web.BaseRequest, target: Target, filters: tuple[Filters, ...]) -> CIMultiDict[str]:
    dropped = _HOP_BY_HOP | {name.strip().lower() for name in request.headers.get("Connection", "").split(",")}
    headers = CIMultiDict((k, v) for k, v in request.headers.items() if k.lower() not in dropped)
    headers.popall("Expect", None)
    peer = request.remote or ""
    before = headers.get("X-Forwarded-For")
    headers["X-Forwarded-For"] = f"{before}, {peer}" if before else peer
    headers.setdefault("X-Forwarded-Host", request.headers.get("Host", ""))
    headers.setdefault("X-Forwarded-Proto", "http")
    for item in filters:
        _change(headers, item.request)
        if item.rewrite_host:
            headers["Host"] = item.rewrite_host
    return headers


def _change(headers: CIMultiDict[str], change: HeaderChange) -> None:
    for name, value in change.set:
        headers[name] = value
    for name, value in change.add:
        headers.add(name, value)
    for name in change.remove:
        headers.popall(name, None)


def _begun(request: web.BaseRequest) -> web.StreamResponse | None:
    """A response that broke off half-way cannot be taken back: the connection ends, so that the client knows."""
    response: web.StreamResponse | None = request.get(_BEGUN)
    if response is not None and request.transport is not None:
        request.transport.close()
    return response


async def _body(request: web.BaseRequest) -> bytes | aiohttp.StreamReader | None:
    if not request.body_exists:
        return None
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    if request.content_length is not None and request.content_length <= _BUFFERED:
        return await request.read()
    return request.content


async def _stream(
    request: web.BaseRequest, answer: aiohttp.ClientResponse, headers: Mapping[str, str]
) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
    request[_BEGUN] = response
    await response.prepare(request)
    async for chunk in answer.content.iter_any():
        await response.write(chunk)
    await response.write_eof()
    return response
