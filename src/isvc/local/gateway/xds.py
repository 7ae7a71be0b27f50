"""The xDS server: one delta stream of all resources, of which Envoy gets those that changed and says if it uses them.

Resources are kept here. An Envoy that comes back after it died is sent all of them, and goes on as before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from itertools import count
from typing import Any, Final

from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest, DeltaDiscoveryResponse, Resource
from grpclib.const import Cardinality, Handler
from grpclib.server import Stream

from isvc.local.gateway.envoy.messages import (
    Cluster,
    ScopedRouteConfiguration,
    Secret,
    encode,
    pack,
    pack_bytes,
    type_of,
)
from isvc.local.gateway.tls import Certificates

log = logging.getLogger("isvc.gateway")

_PATH: Final = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
_CERTIFICATES: Final = type_of(Secret)
_RENEWAL: Final = 60.0  # seconds between two looks at certificates
_CLUSTERS: Final = type_of(Cluster)
_SUBSCRIBED_AS_A_WHOLE: Final = {_CLUSTERS, type_of(ScopedRouteConfiguration)}  # of which Envoy wants all


Name = tuple[str, str]
"""The type of a resource, and its name."""


class Rejected(Exception):
    """Envoy does not take a resource (NACK); says why."""


class _Stream:
    """One Envoy: what it subscribes to, what it was sent, and what of that it has acknowledged."""

    def __init__(self, answers: Stream[DeltaDiscoveryRequest, DeltaDiscoveryResponse]) -> None:
        self._answers = answers
        self._writing = asyncio.Lock()  # gRPC sends one message at a time
        self._nonce = 0
        self._sent: dict[str, dict[Name, str]] = {}  # versions, by the nonce of a response
        self.subscribed: dict[str, set[str]] = {}
        self.acknowledged: dict[Name, str] = {}

    def subscribes_to(self, kind: str, name: str) -> bool:
        return kind in _SUBSCRIBED_AS_A_WHOLE or name in self.subscribed.get(kind, ())

    async def send(self, kind: str, resources: Collection[Resource]) -> None:
        """Sends resources, of which those without content are gone."""
        self._nonce += 1
        self._sent[str(self._nonce)] = {(kind, each.name): each.version for each in resources}
        response = DeltaDiscoveryResponse(
            type_url=kind,
            nonce=str(self._nonce),
            resources=[each for each in resources if each.HasField("resource")],
            removed_resources=[each.name for each in resources if not each.HasField("resource")],
        )
        async with self._writing:
            await self._answers.send_message(response)

    def versions_sent(self, nonce: str) -> dict[Name, str]:
        """Returns the versions that an ACK or NACK is about."""
        return self._sent.pop(nonce, {})


class XdsServer:
    def __init__(self, certificates: Certificates | None = None) -> None:
        """`certificates` are made for names that Envoy asks for."""
        self._certificates = certificates
        self._resources: dict[Name, Resource] = {}  # without content where they are gone, until Envoy knows
        self._versions = count(1)
        self._rejected: dict[Name, tuple[str, str]] = {}  # version and reason
        self._stream: _Stream | None = None
        self._news = asyncio.Event()

    def names(self, kind: type[Any]) -> list[str]:
        """Returns the resources that there are."""
        known = self._resources.items()
        return [name for (found, name), each in known if found == type_of(kind) and each.HasField("resource")]

    def put(self, kind: type[Any], name: str, message: Any | bytes | None) -> None:
        """Replaces a resource, also by one that is in bytes already, or removes it; `publish` sends it."""
        content = pack_bytes(kind, message) if isinstance(message, bytes) else message and pack(message)
        self._resources[type_of(kind), name] = Resource(name=name, version=str(next(self._versions)), resource=content)

    def forget_gone(self, kind: type[Any], names: Iterable[str]) -> None:
        """Keeps nothing of those that are gone: there will be others, for as long as it runs."""
        for resource in [(type_of(kind), name) for name in names]:
            if resource in self._resources and not self._resources[resource].HasField("resource"):
                del self._resources[resource]
                self._rejected.pop(resource, None)
                if self._stream is not None:
                    self._stream.acknowledged.pop(resource, None)

    def _resource(self, kind: str, name: str) -> Resource:
        return self._resources.get((kind, name)) or Resource(name=name)

    async def publish(self, kind: type[Any], names: Collection[str]) -> None:
        """Returns when Envoy uses these resources as they are now, whichever Envoy that is by then. Raises Rejected."""
        sent_to: _Stream | None = None
        kind_of = type_of(kind)
        while True:
            news = self._news  # that of now: an answer may come while something is sent
            pending = [name for name in names if not self.is_acknowledged(kind, name)]
            if not pending:
                return self.forget_gone(kind, names)
            if reasons := [reason for name in pending if (reason := self._reason(kind_of, name))]:
                raise Rejected(reasons[0])
            if self._stream is not None and self._stream is not sent_to:
                sent_to = self._stream
                await self._send(sent_to, kind_of, [name for name in pending if sent_to.subscribes_to(kind_of, name)])
            await news.wait()

    def is_acknowledged(self, kind: type[Any], name: str) -> bool:
        """Returns whether Envoy uses a resource as it is now, or is a certificate that it has ceased to ask for."""
        resource, stream = (type_of(kind), name), self._stream
        if stream is None:
            return False
        is_unused = kind is Secret and not stream.subscribes_to(*resource)
        return is_unused or stream.acknowledged.get(resource, "") == self._resource(*resource).version

    def _reason(self, kind: str, name: str) -> str:
        version, reason = self._rejected.get((kind, name), ("", ""))
        return reason if version == self._resource(kind, name).version else ""

    async def _send(self, stream: _Stream, kind: str, names: Collection[str]) -> None:
        if names:
            await stream.send(kind, [self._resource(kind, name) for name in names])

    def __mapping__(self) -> dict[str, Handler]:
        """Returns what is asked for by which path of gRPC."""
        kinds = DeltaDiscoveryRequest, DeltaDiscoveryResponse
        return {_PATH: Handler(self._delta_aggregated_resources, Cardinality.STREAM_STREAM, *kinds)}

    async def _delta_aggregated_resources(
        self, requests: Stream[DeltaDiscoveryRequest, DeltaDiscoveryResponse]
    ) -> None:
        """Answers one Envoy for as long as it lives."""
        self._stream = stream = _Stream(requests)
        self._changed()
        try:
            async for request in requests:
                await self._receive(stream, request)
        finally:
            if self._stream is stream:
                self._stream = None
                self._changed()

    async def _receive(self, stream: _Stream, request: DeltaDiscoveryRequest) -> None:
        kind = request.type_url
        if request.response_nonce:
            about = stream.versions_sent(request.response_nonce)
            if reason := request.error_detail.message:
                log.warning("Envoy refuses its configuration: %s", reason)
                self._rejected |= {name: (version, reason) for name, version in about.items()}
            else:
                stream.acknowledged |= about
            self._changed()
        is_first = kind not in stream.subscribed
        subscribed = stream.subscribed.setdefault(kind, set())
        subscribed |= set(request.resource_names_subscribe)
        subscribed -= set(request.resource_names_unsubscribe)
        for name in request.resource_names_unsubscribe:
            stream.acknowledged.pop((kind, name), None)
        if kind == _CERTIFICATES:
            self._issue(request.resource_names_subscribe)
        if kind not in _SUBSCRIBED_AS_A_WHOLE:
            await self._send(stream, kind, request.resource_names_subscribe)
        elif is_first:
            known = [
                each for (found, _), each in self._resources.items() if found == kind and each.HasField("resource")
            ]
            if known or kind == _CLUSTERS:  # of which there may be none, but never no routes: Envoy waits for these
                await stream.send(kind, known)

    def _issue(self, names: Iterable[str]) -> None:
        if self._certificates is not None:
            for name in names:
                self.put(Secret, name, encode(Secret, self._certificates.secret(name)))

    async def keep_renewing(self) -> None:
        """Looks after certificates for ever."""
        while True:
            await self.renew()
            await asyncio.sleep(_RENEWAL)

    async def renew(self) -> None:
        """Replaces certificates that have come of age, and forgets those that are too many."""
        if self._certificates is not None:
            due = self._certificates.due()
            self._issue(due)
            forgotten = self._certificates.forget_oldest()
            for name in forgotten:
                self.put(Secret, name, None)
            await self.publish(Secret, [*due, *forgotten])

    def _changed(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
