"""Answers Envoy's questions about requests: one stream each, which lasts as long as the request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack
from typing import Any, Final

import grpc

from isvc.kube.objects import Key
from isvc.local.gateway.backends import Backends, cluster_target
from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.envoy.hosts import METRICS, UNROUTED
from isvc.local.gateway.envoy.types import ABOUT
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
from isvc.local.gateway.routes.rules import Refusal
from isvc.local.gateway.routes.table import RouteTable

METHOD: Final = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
_HOSTS_TOLD: Final = 20

WhyUnready = Callable[[str, str], Awaitable[str | None]]
"""Says what keeps the service at a host and path from answering, if there is one."""


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
        self.line_of: Callable[[Key], Line | None] = lambda key: None

    async def process(
        self, requests: AsyncIterator[ProcessingRequest], context: Any
    ) -> AsyncIterator[ProcessingResponse]:
        asked = await anext(requests, None)
        if asked is None or asked.WhichOneof("request") != "request_headers":
            return
        question = Question.of(asked, dict(context.invocation_metadata()).get(ABOUT, ""))
        if question.about == METRICS:
            yield show(*await self._metrics())
            return
        if question.about == UNROUTED:
            if self._publisher.is_behind and not question.is_second:  # its route may be just on the way
                await self._publisher.published()
                yield route_again()
            else:
                yield refuse(await self._unrouted(question))
            return
        async with AsyncExitStack() as lasting:
            try:
                parts = self._admit(question, requests, lasting)
                async for part in parts:
                    yield part
            except Unavailable as error:
                cause = await self._why_unready(question.host, question.path)
                yield refuse(Refusal(503, f"{error.reason}; {cause}" if cause else error.reason))
                return
            async for further in requests:
                yield echo(further)

    async def _admit(
        self, question: Question, requests: AsyncIterator[ProcessingRequest], lasting: AsyncExitStack
    ) -> AsyncIterator[ProcessingResponse]:
        """Yields the answers by which a request goes on; what it takes is given back when `lasting` ends."""
        target, port = cluster_target(question.about)
        if target.pool is not None:
            async for answer in self._pools.pick(target, question, requests, lasting):
                yield answer
            return
        endpoints: Collection[Endpoint] = ()
        line = self.line_of(target.key)
        if line is not None:
            endpoint = await lasting.enter_async_context(line.admitted())
            endpoints = [endpoint] if line.is_limited else ()
        elif reason := self._backends.why_unavailable(target.key, port):
            raise Unavailable(reason)
        await self._publisher.published()
        yield go_on([*endpoints])

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

    def handler(self) -> Any:
        return grpc.stream_stream_rpc_method_handler(
            self.process,
            request_deserializer=ProcessingRequest.FromString,
            response_serializer=ProcessingResponse.SerializeToString,
        )
