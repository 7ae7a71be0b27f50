"""One request, passed on: chosen backend, changed headers, bodies streamed both ways.

A request is sent again only while nothing of it can have been seen: an endpoint that refuses the connection is skipped
for the next one. Everything else that goes wrong is answered with its reason.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import random
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from isvc.local.gateway import pools
from isvc.local.gateway.backends import Backends, Endpoint, Unavailable
from isvc.local.gateway.guard import Guard
from isvc.local.gateway.headers import request_headers, response_headers
from isvc.local.gateway.picker import Picker
from isvc.local.gateway.routes import Backend, Filters, Match, RouteTable, Rule
from isvc.local.gateway.target import BadTarget, Target, cluster_name, target_of

log = logging.getLogger("isvc.gateway")

# Shorter than any server's, so that no request meets a connection its server is about to close (uvicorn: 5 s).
_KEEP_ALIVE = 4.0
Body = bytes | aiohttp.StreamReader | None
_BEGUN = web.RequestKey("begun", web.StreamResponse)
_BUFFERED = 64 * 1024  # bodies up to this size are passed on in one piece
_PROMPT = 1 << 20  # the same for bodies with a prompt, by whose beginning a server is picked
_LONGEST_LINE = 64 * 1024  # of a request or an answer: tokens and cookies may be long
_IDLE = 75.0  # how long a client may take to send a request's headers


class Proxy:
    def __init__(
        self,
        table: Callable[[], RouteTable],
        backends: Backends,
        guard: Guard,
        why_unready: Callable[[Target], str | None] = lambda target: None,
    ) -> None:
        """`why_unready` says what keeps the service at an address from answering, if there is one."""
        self._table = table
        self._why_unready = why_unready
        self._backends = backends
        self._guard = guard
        self._session: aiohttp.ClientSession | None = None
        self._outside: aiohttp.ClientSession | None = None
        self._picker = Picker(self._metrics, backends.running)

    def server(self) -> web.Server:
        return web.Server(
            self,
            access_log=None,
            keepalive_timeout=_IDLE,
            handler_cancellation=True,  # when the client is gone, nobody waits for the answer
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_LINE,
        )

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            target = target_of(request)
        except BadTarget as error:
            return refusal(400, str(error))
        if refused := unsupported(request, target):
            return refused
        from_pod = target.proxied and self._guard.is_pod(request.headers)
        if not from_pod and self._guard.is_foreign(request.headers, target, self._table().names):
            return refusal(403, "a web page of another site asks; `isvc up --allow-origin` lets its origin in")
        rule = self._route(request, target, from_pod=from_pod)
        if rule is None:
            return await self._unrouted(request, target, from_pod=from_pod)
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
            cause = self._why_unready(target)
            return refusal(503, f"{error.reason}; {cause}" if cause else error.reason)

    def _route(self, request: web.BaseRequest, target: Target, *, from_pod: bool) -> Rule | None:
        query = dict(parse_qsl(target.query, keep_blank_values=True)) if target.query else {}
        by_any_name = from_pod or self._guard.trusts_name(target)
        rule = self._table().find(
            target.route_host, request.method, target.path, request.headers, query, by_any_name=by_any_name
        )
        if rule is not None:
            return rule
        service = cluster_name(target.host)
        if service is None:
            return None
        name, namespace = service
        is_short = not target.host.endswith((".svc", ".cluster.local"))
        if is_short and not (from_pod and self._backends.knows(namespace, name)):
            return None  # example.com, not the Service `example` of a namespace `com`
        return Rule(Match(), (Backend(namespace, name, target.port),), origin=f"Service {namespace}/{name}")

    async def _unrouted(self, request: web.BaseRequest, target: Target, *, from_pod: bool) -> web.StreamResponse:
        if from_pod:
            return await self._forward_outside(request, target)
        if target.proxied:
            answer = refusal(407, "the gateway is the proxy of pods alone")
            answer.headers["Proxy-Authenticate"] = 'Basic realm="pods"'
            return answer
        table = self._table()
        if cause := self._why_unready(target):
            return refusal(503, cause)
        if table.names(target.route_host):
            return refusal(404, f"no route of host {target.host} matches {request.method} {target.path}")
        if not target.is_this_machine:  # a page that reaches us by a name of its own must not learn ours
            return refusal(404, f"no route for host {target.host}")
        hosts = ", ".join(sorted(table.exact)[:20]) or "none yet"
        return refusal(404, f"no route for host {target.host}; known hosts: {hosts}")

    async def _pass(self, request: web.BaseRequest, target: Target, rule: Rule, backend: Backend) -> web.StreamResponse:
        filters = (rule.filters, backend.filters)
        headers = request_headers(request, target, filters)
        path = backend.filters.path(rule.filters.path(target.path, rule.match), rule.match)
        path_and_query = f"{path}?{target.query}" if target.query else path
        refused: Exception | None = None
        body = await _body(request, _BUFFERED if backend.pool is None else _PROMPT)
        for endpoint in await self._candidates(backend, body):
            url = URL(f"http://{endpoint}{path_and_query}", encoded=True)
            self._backends.started(endpoint)
            try:
                return await self._exchange(self._inside(), request, url, headers, body, filters)
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

    async def _exchange(
        self,
        session: aiohttp.ClientSession,
        request: web.BaseRequest,
        url: URL,
        headers: CIMultiDict[str],
        body: Body,
        filters: tuple[Filters, ...],
        proxy: str | None = None,
    ) -> web.StreamResponse:
        async with session.request(
            request.method, url, headers=headers, data=body, allow_redirects=False, proxy=proxy
        ) as answer:
            changed = response_headers(answer.headers, filters)
            length = answer.content_length
            if request.method != "HEAD" and length is not None and length <= _BUFFERED:
                changed.popall("Content-Length", None)
                body = await answer.read()
                return web.Response(status=answer.status, reason=answer.reason, headers=changed, body=body)
            return await _stream(request, answer, changed)

    def _broken(self, request: web.BaseRequest, endpoint: Endpoint, error: Exception) -> web.StreamResponse:
        if request.transport is not None and not request.transport.is_closing():  # else it was the client that went
            log.warning("%s %s: %s: %s", request.method, request.path, endpoint, error)
        reason = f"the endpoint {endpoint} ended the connection: {error or type(error).__name__}"
        return _begun(request) or refusal(502, reason)

    async def _forward_outside(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        """Pods send all their http:// requests here; those to other hosts go their way."""
        if not self._guard.reaches_this_machine and await _is_off_limits(target.host):
            return refusal(403, f"{target.host} is this machine, or its metadata, which pods in a sandbox do not reach")
        if self._outside is None:
            self._outside = _session(None)
        headers = request_headers(request, target, ())
        url = URL(f"http://{target.host}:{target.port}{target.path_and_query}", encoded=True)
        body = await _body(request, _BUFFERED)
        try:
            return await self._exchange(self._outside, request, url, headers, body, (), _upstream_proxy(target.host))
        except (aiohttp.ClientError, ValueError) as error:
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


def _session(connector: aiohttp.TCPConnector | None) -> aiohttp.ClientSession:
    """A client that passes on what it is given, and nothing of its own: no cookies, no logins out of ~/.netrc."""
    return aiohttp.ClientSession(
        connector=connector,
        auto_decompress=False,
        timeout=_NO_LIMIT,
        skip_auto_headers=_NOT_ADDED,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        max_line_size=_LONGEST_LINE,
        max_field_size=_LONGEST_LINE,
    )


async def _is_off_limits(host: str) -> bool:
    """Whether a name leads to this machine or to link-local addresses, where clouds keep a machine's credentials."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), None)
    except OSError:
        return False
    addresses = (ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found)
    return any(address.is_loopback or address.is_unspecified or address.is_link_local for address in addresses)


def _upstream_proxy(host: str) -> str | None:
    """The proxy that this machine's environment asks for, if any."""
    return None if proxy_bypass(host) else getproxies().get("http")


def refusal(status: int, reason: str) -> web.Response:
    return web.json_response({"error": reason}, status=status, headers={"X-Isvc-Gateway": "refused"})


def unsupported(request: web.BaseRequest, target: Target) -> web.Response | None:
    """The answer to what no proxy of HTTP requests can do. Other upgrades than WebSocket may be ignored (h2c)."""
    if not target.path.startswith("/"):
        return refusal(400, f"{request.method} needs a path; the gateway opens no tunnels, as https:// would need them")
    if request.headers.get("Upgrade", "").lower() == "websocket":
        return refusal(501, "the gateway does not pass WebSockets on")
    return None


def _begun(request: web.BaseRequest) -> web.StreamResponse | None:
    """A response that broke off half-way cannot be taken back: the connection ends, so that the client knows."""
    response: web.StreamResponse | None = request.get(_BEGUN)
    if response is not None and request.transport is not None:
        request.transport.close()
    return response


async def _body(request: web.BaseRequest, limit: int) -> Body:
    """In one piece up to a size, else as a stream."""
    if not request.body_exists:
        return None
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    if request.content_length is not None and request.content_length <= limit:
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
