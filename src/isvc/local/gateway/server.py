"""The gateway as a part that starts and stops: its port, its route table kept current, its backends."""

from __future__ import annotations

import contextlib
import logging
import ssl
from collections.abc import Iterable
from functools import partial
from typing import Final, Protocol

from isvc.api.resources import INFERENCE_GRAPHS
from isvc.kube.objects import Object, dig, labels_of, name_of, namespace_of
from isvc.kube.resource import ENDPOINT_SLICES, INGRESSES, NAMESPACES, PODS, SERVICES, Resource
from isvc.local.gateway import unready
from isvc.local.gateway.access_log import AccessLog
from isvc.local.gateway.endpoints.backends import (
    READY_IN_SLICE,
    SERVICE_OF_SLICE,
    Backends,
    ready_in_slice,
    service_of_slice,
)
from isvc.local.gateway.gateway_api.attachment import Gateways, parent_key
from isvc.local.gateway.guard import Guard
from isvc.local.gateway.listener import Listener
from isvc.local.gateway.proxy import Proxy
from isvc.local.gateway.routes.graphs import graph_routes
from isvc.local.gateway.routes.table import RouteTable
from isvc.local.knative.kinds import ROUTE
from isvc.local.status_printer import Describe
from isvc.serving.thirdparty import (
    GATEWAY_CLASSES,
    GATEWAYS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INFERENCE_POOLS_V1ALPHA2,
    VIRTUAL_SERVICES,
)
from isvc.toolkit.cache import Cache
from isvc.toolkit.reads import Read

log = logging.getLogger("isvc.gateway")

PARENT_OF_ROUTE: Final = "parent"


def parents_of_route(route: Object) -> Iterable[str]:
    """The index under which routes are found by the Gateways that they name."""
    return {str(parent_key(route, parent)) for parent in dig(route, "spec", "parentRefs") or ()}


READS: Final = (
    Read(INGRESSES),
    Read(GATEWAY_CLASSES),
    Read(GATEWAYS),
    Read(HTTP_ROUTES, indexers={PARENT_OF_ROUTE: parents_of_route}),
    Read(VIRTUAL_SERVICES),
    Read(NAMESPACES),
    Read(SERVICES),
    Read(PODS),
    Read(INFERENCE_POOLS),
    Read(INFERENCE_POOLS_V1ALPHA2),
    Read(ENDPOINT_SLICES, indexers={SERVICE_OF_SLICE: service_of_slice, READY_IN_SLICE: ready_in_slice}),
)


_ROUTING: Final = (INGRESSES, HTTP_ROUTES, VIRTUAL_SERVICES, GATEWAYS, GATEWAY_CLASSES, NAMESPACES, INFERENCE_GRAPHS)


class Reader(Protocol):
    def list(self, resource: Resource, namespace: str = "") -> list[Object]: ...


def observed_gateways(reader: Reader, port: int) -> Gateways:
    return Gateways.of(port, reader.list(GATEWAY_CLASSES), reader.list(GATEWAYS), reader.list(NAMESPACES))


class Gateway:
    """Routes of a cache, served on a port. Compiling the table waits until the next request after a change."""

    def __init__(
        self, cache: Cache, guard: Guard, port: int, describe: Describe, access_log: AccessLog | None = None
    ) -> None:
        self._cache = cache
        self._port = port
        self._table: RouteTable | None = None
        self.backends = Backends(cache)
        self._proxy = Proxy(self.table, self.backends, guard, partial(unready.why_unready, cache, describe))
        self._proxy.access_log = access_log
        self._listener: Listener | None = None
        cache.declare("gateway", *READS, *unready.READS)
        cache.subscribe(ENDPOINT_SLICES, lambda old, new: self.backends.changed(), before=False)
        for resource in _ROUTING:
            cache.subscribe(resource, self._changed)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or _content(old) != _content(new):  # and not only a status
            self._table = None

    def table(self) -> RouteTable:
        if self._table is None:
            gateways = observed_gateways(self._cache, self._port)
            routes = [(route, gateways.hosts(route)) for route in self._cache.list(HTTP_ROUTES)]
            for graph in self._cache.list(INFERENCE_GRAPHS):
                routes += graph_routes(graph, is_knative=self._is_knative(graph))
            self._table = RouteTable.build(self._cache.list(INGRESSES), routes, self._cache.list(VIRTUAL_SERVICES))
        return self._table

    def _is_knative(self, graph: Object) -> bool:
        """Whether a Knative Service leads to the graph."""
        route = self._cache.get(HTTP_ROUTES, name_of(graph), namespace_of(graph))
        return route is not None and ROUTE in labels_of(route)

    async def start(self, host: str) -> None:
        self._listener = Listener(self._proxy)
        await self.listen(host, self._port)

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """On a further port, once it has started."""
        assert self._listener is not None
        await self._listener.listen(host, port, tls)
        if host == "127.0.0.1":
            with contextlib.suppress(OSError):  # `localhost` may mean either; not every machine has both
                await self._listener.listen("::1", port, tls)

    async def close(self) -> None:
        if self._listener is not None:
            await self._listener.close()
        await self._proxy.close()


def _content(obj: Object) -> tuple[object, object]:
    """What of an object routing depends on."""
    return obj.get("spec"), obj["metadata"].get("labels")
