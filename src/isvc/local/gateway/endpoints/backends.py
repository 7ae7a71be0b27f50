"""Which endpoints of a Service can take a request, and what is running on each of them.

Only ready endpoints of EndpointSlices count. The node asks `drain` before it stops a process, which returns once no new
request can go there and the last one has been answered.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from isvc.kube.objects import Object, dig, labels_of
from isvc.kube.resource import ENDPOINT_SLICES, SERVICE_NAME_LABEL, SERVICES, Resource
from isvc.serving.workload.service import is_grpc

SERVICE_OF_SLICE = "service"
READY_IN_SLICE = "ready-endpoint"


class Endpoint(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Reader(Protocol):
    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None: ...
    def by_index(self, resource: Resource, index_name: str, value: str) -> list[Object]: ...
    def list(self, resource: Resource, namespace: str = "") -> list[Object]: ...


def service_of_slice(endpoint_slice: Object) -> Iterable[str]:
    """The index under which slices are found: `namespace/service`."""
    service = labels_of(endpoint_slice).get(SERVICE_NAME_LABEL)
    return [f"{endpoint_slice['metadata'].get('namespace', '')}/{service}"] if service else []


def ready_in_slice(endpoint_slice: Object) -> Iterable[str]:
    """The index under which a slice is found by each endpoint it offers: `host:port`."""
    names = {port.get("name") or "" for port in endpoint_slice.get("ports") or []}
    return {str(endpoint) for name in names for endpoint, ready in _endpoints(endpoint_slice, name) if ready}


@dataclass(eq=False)
class Unavailable(Exception):
    """No endpoint can take the request; the words go to the client."""

    reason: str


class Line(Protocol):
    """Where requests for a Service wait that may have no pods, or pods that take only so many requests at a time."""

    def admitted(self) -> AbstractAsyncContextManager[Endpoint]:
        """An endpoint that counts the request as running there meanwhile. Raises Unavailable."""
        ...


class Backends:
    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.line_of: Callable[[str, str], Line | None] = lambda namespace, service: None
        self._running: Counter[Endpoint] = Counter()
        self._news = asyncio.Event()

    def knows(self, namespace: str, service: str) -> bool:
        return self.reader.get(SERVICES, service, namespace) is not None

    def candidates(self, namespace: str, service: str, port: int | str) -> list[Endpoint]:
        """Endpoints to try, the least busy first."""
        found = self.reader.get(SERVICES, service, namespace)
        if found is None:
            raise Unavailable(f"Service {namespace}/{service} does not exist")
        name = _port_name(found, port)
        slices = self.reader.by_index(ENDPOINT_SLICES, SERVICE_OF_SLICE, f"{namespace}/{service}")
        every = [(endpoint, ready) for item in slices for endpoint, ready in _endpoints(item, name)]
        usable = [endpoint for endpoint, ready in every if ready]
        if not usable:
            count = f"{len(every)} endpoint{'s' if len(every) != 1 else ''}, none ready" if every else "no endpoints"
            raise Unavailable(f"Service {namespace}/{service} has {count}")
        random.shuffle(usable)
        return sorted(usable, key=self._running.__getitem__)

    def speaks_http2(self, namespace: str, service: str, port: int | str) -> bool:
        """Whether a Service's port is one of gRPC, or says that it speaks HTTP/2 without TLS."""
        found = self.reader.get(SERVICES, service, namespace)
        ports = dig(found, "spec", "ports") or [] if found else []
        return any(is_grpc(item) for item in ports if port in (item.get("port"), item.get("name")))

    def running(self, endpoint: Endpoint) -> int:
        return self._running[endpoint]

    def started(self, endpoint: Endpoint) -> None:
        self._running[endpoint] += 1

    def ended(self, endpoint: Endpoint) -> None:
        self._running[endpoint] -= 1
        if self._running[endpoint] <= 0:
            del self._running[endpoint]
            self.changed()

    def changed(self) -> None:
        """An endpoint came or went, or has no more to do: whoever drains looks again."""
        self._news.set()
        self._news = asyncio.Event()

    async def drain(self, endpoint: Endpoint, seconds: float) -> bool:
        """Waits until no slice offers the endpoint and nothing runs there; False when the time was not enough.

        It stays in use until then: what replaces it may not have been seen yet.
        """
        try:
            async with asyncio.timeout(seconds):
                while self._running[endpoint] or self.reader.by_index(ENDPOINT_SLICES, READY_IN_SLICE, str(endpoint)):
                    await self._news.wait()
        except TimeoutError:
            return False
        return True


def _port_name(service: Object, port: int | str) -> str:
    """The name under which slices carry a Service's port. A headless Service is also known by its target ports."""
    ports = dig(service, "spec", "ports") or []
    for item in ports:
        if port in (item.get("port"), item.get("name")):
            return str(item.get("name") or "")
    for item in ports:
        if dig(service, "spec", "clusterIP") == "None" and item.get("targetPort") == port:
            return str(item.get("name") or "")
    known = ", ".join(str(item.get("port")) for item in ports)
    raise Unavailable(f"Service {service['metadata']['name']} has no port {port}, only {known or 'none'}")


def _endpoints(endpoint_slice: Object, port_name: str) -> Iterable[tuple[Endpoint, bool]]:
    for port in endpoint_slice.get("ports") or []:
        if (port.get("name") or "") == port_name and port.get("port"):
            for endpoint in endpoint_slice.get("endpoints") or []:
                ready = dig(endpoint, "conditions", "ready") is not False
                for address in endpoint.get("addresses") or []:
                    yield Endpoint(address, port["port"]), ready
