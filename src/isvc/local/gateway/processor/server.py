"""Answers Envoy's questions about requests: one stream each, which lasts as long as the request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, aclosing, suppress
from typing import Final, Protocol, TypeVar
from urllib.parse import unquote

from grpclib.const import Cardinality, Handler
from grpclib.server import Stream

from isvc.kube.objects import Key
from isvc.local.gateway.backends import Backends, cluster_target
from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.envoy.hosts import METRICS, UNROUTED
from isvc.local.gateway.envoy.types import ABOUT, REFUSED
from isvc.local.gateway.names import cluster_name, is_this_machine
from isvc.local.gateway.processor.lines import Line, Unavailable
from isvc.local.gateway.processor.messages import (
    ProcessingRequest,
    ProcessingResponse,
    Question,
    echo,
    go_on,
    refuse,
    route_again,
    show,
)
from isvc.local.gateway.processor.picking import Pools
from isvc.local.gateway.publisher import Publisher
from isvc.local.gateway.routes.rules import Refusal, Target
from isvc.local.gateway.routes.table import RouteTable

T = TypeVar("T")

_PATH: Final = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
_HOSTS_TOLD: Final = 20
_INVALID_BACKEND: Final = 500  # by the Gateway API, of a backend that does not exist or may not be named
_PATIENCE: Final = 5.0  # seconds until route and endpoints of a ready service have to be known here


class WhyUnready(Protocol):
    async def __call__(self, host: str, path: str, *, has_waited: bool = False) -> str | None:
        """Says what keeps the service at a host and path from answering; None where there is none.

        That is nothing if it is ready, unless a request `has_waited` for a pod of it in vain.
        """
        ...


class Processor:
    def __init__(
        self,
        table: RouteTable,
        backends: Backends,
        pools: Pools,
        publisher: Publisher,
        why_unready: WhyUnready,
        metrics: Callable[[], Awaitable[tuple[bytes, str]]],
    ) -> None:
        """`metrics` is what is shown, and its type."""
        self._table, self._backends, self._pools = table, backends, pools
        self._publisher = publisher
        self._why_unready = why_unready
        self._metrics = metrics
        self.line_of: Callable[[Target], Line | None] = lambda target: None

    def __mapping__(self) -> dict[str, Handler]:
        """Returns what is asked for by which path of gRPC."""
        return {_PATH: Handler(self._process, Cardinality.STREAM_STREAM, ProcessingRequest, ProcessingResponse)}

    async def _process(self, stream: Stream[ProcessingRequest, ProcessingResponse]) -> None:
        metadata = dict(stream.metadata or ())
        about = unquote(str(metadata.get(ABOUT, "")))
        async with aclosing(self._answers(stream, about)) as answers:
            async for answer in answers:
                await stream.send_message(answer)

    async def _answers(
        self, requests: AsyncIterator[ProcessingRequest], about: str
    ) -> AsyncGenerator[ProcessingResponse, None]:
        asked = await anext(requests, None)
        if asked is None or asked.WhichOneof("request") != "request_headers":
            return
        question = Question.of(asked, about)
        if question.about == METRICS:
            yield show(*await self._metrics())
            return
        if question.about == UNROUTED:
            is_routed = not question.is_second and await self._is_routed_now(question)
            yield route_again() if is_routed else refuse(await self._unrouted(question))
            return
        async with AsyncExitStack() as lasting:
            try:
                async for part in self._admit(question, requests, lasting):
                    yield part
            except Unavailable as error:
                if not await self._leads_elsewhere(question):
                    yield refuse(await self._unavailable(question, error))
                    return
                yield route_again()
            async for further in requests:
                yield echo(further)

    async def _admit(
        self, question: Question, requests: AsyncIterator[ProcessingRequest], lasting: AsyncExitStack
    ) -> AsyncIterator[ProcessingResponse]:
        """Yields the answers by which a request goes on; what it takes is given back when `lasting` ends."""
        if question.about.startswith(REFUSED):
            raise Unavailable(question.about.removeprefix(REFUSED), _INVALID_BACKEND)
        target, port = cluster_target(question.about)
        line = self.line_of(target)
        if target.pool is not None:
            if line is not None:
                await lasting.enter_async_context(line.admit())
                await self._publisher.wait_until_published()
            members = await self._hold(question, lambda: self._pools.members(target))
            if not {member.endpoint for member in members} & {*self._publisher.endpoints(question.about)}:
                await self._publisher.wait_until_published()
            async for answer in self._pools.pick(members, question, requests, lasting):
                yield answer
            return
        endpoints: Collection[Endpoint] = ()
        if line is not None:
            endpoint = await lasting.enter_async_context(line.admit())
            endpoints = [endpoint] if line.is_limited else ()
        else:
            await self._hold(question, lambda: self._require(target.key, port))
        await self._publisher.wait_until_published()
        yield go_on([*endpoints])

    async def _unavailable(self, question: Question, error: Unavailable) -> Refusal:
        cause = await self._why_unready(question.host, question.path, has_waited=error.has_waited)
        return Refusal(503, f"{error.reason}; {cause}") if cause else Refusal(error.status, error.reason)

    def _require(self, service: Key, port: int | str) -> None:
        if reason := self._backends.why_unavailable(service, port):
            exists = self._backends.ports(service) is not None
            raise Unavailable(reason) if exists else Unavailable(reason, _INVALID_BACKEND)

    async def _hold(self, question: Question, look: Callable[[], T]) -> T:
        """Returns what is found, now or soon. Raises Unavailable."""

        def is_found() -> bool:
            with suppress(Unavailable):
                look()
                return True
            return self._has_moved(question)

        await self._comes_soon(question, is_found)
        return look()

    async def _is_routed_now(self, question: Question) -> bool:
        """Waits for a route that may be just on the way; it may also have come since Envoy asked."""
        was_behind = self._publisher.is_behind
        await self._publisher.wait_until_published()
        if not await self._comes_soon(question, lambda: self._has_route(question)):
            return was_behind
        await self._publisher.wait_until_published()
        return True

    async def _comes_soon(self, question: Question, is_there: Callable[[], bool]) -> bool:
        """Waits for what a service that is ready has to have: who reads that it is ready may be faster than we are."""
        if is_there():
            return True
        if await self._why_unready(question.host, question.path) != "":
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                while not is_there():
                    await self._publisher.next_change()
                return True
        return False

    def _has_route(self, question: Question) -> bool:
        return bool(self._table.rules_for(question.host, question.path))

    async def _leads_elsewhere(self, question: Question) -> bool:
        """Returns whether Envoy knows another route for a request: of what is deleted the route goes last."""
        if question.is_second or not self._has_moved(question):
            return False
        await self._publisher.wait_until_published()
        return self._has_moved(question)

    def _has_moved(self, question: Question) -> bool:
        """Returns whether the routes for a request lead elsewhere since Envoy took one of them."""
        rules = self._table.rules_for(question.host, question.path)
        destinations = {self._backends.destination(backend).cluster for rule in rules for backend in rule.backends}
        return bool(destinations) and question.about not in destinations

    async def _unrouted(self, question: Question) -> Refusal:
        host = question.host
        if cause := await self._why_unready(host, question.path):
            return Refusal(503, cause)
        if self._table.names(host):
            return Refusal(404, f"no route of host {host} matches {question.method} {question.path}")
        service = cluster_name(host)
        if service is not None and host.endswith((".svc", ".cluster.local")):
            name, namespace = service
            return Refusal(503, self._backends.why_unavailable(Key(namespace, name), question.port))
        if not is_this_machine(host):  # a page that reaches us by a name of its own must not learn ours
            return Refusal(404, f"no route for host {host}")
        known = sorted(each for each in self._table.hosts if each and not each.startswith("*"))
        hosts = ", ".join(known[:_HOSTS_TOLD]) or "none yet"
        return Refusal(404, f"no route for host {host}; known hosts: {hosts}")
