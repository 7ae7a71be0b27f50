"""Every request to the gateway: who asks, for what, which rule it follows; and an answer that says why if none does."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

from aiohttp import web

from isvc.local.gateway.access_log import AccessLog, Outcome
from isvc.local.gateway.endpoints.backends import Backends, Unavailable
from isvc.local.gateway.forwarding.exchange import LONGEST_LINE
from isvc.local.gateway.forwarding.forwarder import Forwarder
from isvc.local.gateway.forwarding.outside import Outside
from isvc.local.gateway.guard import Guard
from isvc.local.gateway.metrics import PATH, Metrics
from isvc.local.gateway.requests.answers import SERVICE, bytes_sent, refusal
from isvc.local.gateway.requests.target import BadTarget, Target, cluster_name, target_of
from isvc.local.gateway.routes.local_gateway import both, sent_on_as, target_behind
from isvc.local.gateway.routes.rules import Backend, Match, Rule
from isvc.local.gateway.routes.table import RouteTable


async def _nobody_knows(target: Target) -> None:
    return None


class Proxy:
    idle_seconds = 75.0  # how long a client may take to send a request's headers

    def __init__(
        self,
        table: Callable[[], RouteTable],
        backends: Backends,
        guard: Guard,
        why_unready: Callable[[Target], Awaitable[str | None]] = _nobody_knows,
    ) -> None:
        """`why_unready` says what keeps the service at an address from answering, if there is one."""
        self._table = table
        self._why_unready = why_unready
        self._backends = backends
        self._guard = guard
        self._forwarder = Forwarder(backends)
        self._outside = Outside(guard)
        self.metrics = Metrics()
        self.access_log: AccessLog | None = None

    def server(self) -> web.Server:
        return web.Server(
            self,
            access_log=None,
            keepalive_timeout=self.idle_seconds,
            handler_cancellation=True,  # when the client is gone, nobody waits for the answer
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
        )

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        began = time.perf_counter()
        self.metrics.in_flight.inc()
        status = 499  # as others log it: the client left first
        response: web.StreamResponse | None = None
        try:
            response = await self._answer(request)
            status = response.status
            return response
        finally:
            self.metrics.in_flight.dec()
            seconds, sent = time.perf_counter() - began, bytes_sent(request, response)
            service = request.get(SERVICE, "-")
            self.metrics.count(service, status, seconds, sent)
            if self.access_log is not None:
                self.access_log.write(request, Outcome(service, status, sent, seconds))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            target = target_of(request)
        except BadTarget as error:
            return refusal(400, str(error))
        if not target.path.startswith("/"):
            reason = "needs a path; the gateway opens no tunnels, as https:// would need them"
            return refusal(400, f"{request.method} {reason}")
        from_pod = target.proxied and self._guard.is_pod(request.headers)
        if not from_pod and self._guard.is_foreign(request.headers, target, self._table().names):
            return refusal(403, "a web page of another site asks; `isvc up --allow-origin` lets its origin in")
        if target.path == PATH and target.is_this_machine:
            return self.metrics.response()
        rule = self._route(request, target, from_pod=from_pod)
        if rule is None:
            return await self._unrouted(request, target, from_pod=from_pod)
        asked = target
        if (host := sent_on_as(rule)) is not None:
            found = self._led_on(request, target, rule, host, from_pod=from_pod)
            if found is None:
                return refusal(503, f"{rule.origin} leads to {host or 'no host'}, which no Knative Service has")
            asked, rule = found
        try:
            return await self._forwarder.forward(request, asked, rule)
        except Unavailable as error:
            cause = await self._why_unready(target)
            return refusal(503, f"{error.reason}; {cause}" if cause else error.reason)

    def _led_on(
        self, request: web.BaseRequest, target: Target, rule: Rule, host: str, *, from_pod: bool
    ) -> tuple[Target, Rule] | None:
        """A request for Knative's local gateway, by the name that its rule gives it; None where that leads nowhere."""
        behind = target_behind(rule, target, host)
        second = self._route(request, behind, from_pod=from_pod)
        return None if second is None or sent_on_as(second) is not None else (behind, both(rule, second))

    def _route(self, request: web.BaseRequest, target: Target, *, from_pod: bool) -> Rule | None:
        query = (
            dict(reversed(parse_qsl(target.query, keep_blank_values=True))) if target.query else {}
        )  # the first counts
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
            return await self._outside.forward(request, target)
        if target.proxied:
            answer = refusal(407, "the gateway is the proxy of pods alone")
            answer.headers["Proxy-Authenticate"] = 'Basic realm="pods"'
            return answer
        table = self._table()
        if cause := await self._why_unready(target):
            return refusal(503, cause)
        if table.names(target.route_host):
            return refusal(404, f"no route of host {target.host} matches {request.method} {target.path}")
        if not target.is_this_machine:  # a page that reaches us by a name of its own must not learn ours
            return refusal(404, f"no route for host {target.host}")
        hosts = ", ".join(sorted(table.exact)[:20]) or "none yet"
        return refusal(404, f"no route for host {target.host}; known hosts: {hosts}")

    async def close(self) -> None:
        await self._forwarder.close()
        await self._outside.close()
        if self.access_log is not None:
            self.access_log.close()
