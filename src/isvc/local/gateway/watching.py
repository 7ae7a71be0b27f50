"""What the gateway reads of the cluster, and whom a change concerns."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final, Protocol

from isvc.api.resources import INFERENCE_GRAPHS
from isvc.kube.objects import Key, Object, labels_of, namespace_of
from isvc.kube.resource import ENDPOINT_SLICES, INGRESSES, NAMESPACES, PODS, SERVICE_NAME_LABEL, SERVICES, Resource
from isvc.local.gateway import unready
from isvc.local.gateway.endpoints.pools import PICKER_OF_POOL, POOLS_BY_GROUP, picker_service, pods_of
from isvc.local.gateway.endpoints.services import READY_IN_SLICE, SERVICE_OF_SLICE, ready_in_slice, service_of_slice
from isvc.local.gateway.gateway import Gateway
from isvc.local.gateway.gateway_api.attachment import Gateways
from isvc.local.gateway.routes.graphs import graph_routes
from isvc.local.gateway.routes.rules import Target
from isvc.serving.http_routes import gateways_of
from isvc.serving.thirdparty import (
    GATEWAY_CLASSES,
    GATEWAYS,
    HTTP_ROUTES,
    INTERCEPTOR_ROUTES,
    REFERENCE_GRANTS,
    VIRTUAL_SERVICES,
)
from isvc.toolkit.cache import Cache, Reader
from isvc.toolkit.reads import Read

PARENT_OF_ROUTE: Final = "parent"


def parents_of_route(route: Object) -> Iterable[str]:
    """Indexes routes by the Gateways that they name."""
    return map(str, gateways_of(route))


READS: Final = (
    Read(INGRESSES),
    Read(GATEWAY_CLASSES),
    Read(GATEWAYS),
    Read(HTTP_ROUTES, indexers={PARENT_OF_ROUTE: parents_of_route}),
    Read(VIRTUAL_SERVICES),
    Read(INTERCEPTOR_ROUTES),
    Read(NAMESPACES),
    Read(REFERENCE_GRANTS),
    Read(SERVICES),
    Read(PODS),
    *(Read(pool, indexers={PICKER_OF_POOL: picker_service}) for pool in POOLS_BY_GROUP.values()),
    Read(ENDPOINT_SLICES, indexers={SERVICE_OF_SLICE: service_of_slice, READY_IN_SLICE: ready_in_slice}),
)


def observed_gateways(reader: Reader, port: int) -> Gateways:
    return Gateways.of(port, *map(reader.list, (GATEWAY_CLASSES, GATEWAYS, NAMESPACES, REFERENCE_GRANTS)))


class Watcher:
    """Keeps a gateway current with a cache."""

    def __init__(self, cache: Cache, gateway: Gateway, port: int) -> None:
        self._cache, self._gateway, self._port = cache, gateway, port
        self._gateways: Gateways | None = None
        cache.declare("gateway", *READS, *unready.READS)
        table = gateway.table
        for resource, put in (
            (INGRESSES, table.put_ingress),
            (VIRTUAL_SERVICES, table.put_virtual_service),
            (INTERCEPTOR_ROUTES, table.put_interceptor_route),
            (HTTP_ROUTES, self._put_http_route),
            (INFERENCE_GRAPHS, self._put_graph),
        ):
            cache.subscribe(resource, partial(self._route_changed, put))
        for resource in (GATEWAYS, GATEWAY_CLASSES, NAMESPACES, REFERENCE_GRANTS):
            cache.subscribe(resource, self._attachment_changed)
        cache.subscribe(SERVICES, self._service_changed)
        cache.subscribe(ENDPOINT_SLICES, self._endpoints_changed)
        for pool in POOLS_BY_GROUP.values():
            cache.subscribe(pool, partial(self._pool_changed, pool))
        cache.subscribe(PODS, self._pod_changed)

    # -- routes -------------------------------------------------------------------------------------------------------

    def _route_changed(self, put: Put, old: Object | None, new: Object | None) -> None:
        if _differs(old, new):
            put(_key(old, new), new)
            self._gateway.publisher.mark_changed()

    def _put_http_route(self, key: Key, route: Object | None) -> None:
        gateways = self._attached()

        def refused(reference: Object) -> str:
            found = gateways.refuse(route, reference) if route is not None else None
            return found.message if found else ""

        hosts = gateways.hosts(route) if route is not None else []
        self._gateway.table.put_http_route(key, route, hosts, refused)
        self._look_at_graph(key)

    def _look_at_graph(self, key: Key) -> None:
        """Follows a change of an object that may be a graph's: it has the graph's name."""
        graph = self._cache.get(INFERENCE_GRAPHS, key.name, key.namespace)
        if graph is not None:
            self._put_graph(key, graph)

    def _put_graph(self, key: Key, graph: Object | None) -> None:
        route = self._cache.get(HTTP_ROUTES, key.name, key.namespace)
        router = self._cache.get(SERVICES, key.name, key.namespace)
        self._gateway.table.put_graph(key, graph, graph_routes(graph, route, router) if graph is not None else [])

    def _attachment_changed(self, old: Object | None, new: Object | None) -> None:
        """Looks at every HTTPRoute again: Gateways, whom they allow and what is granted decide about all of them."""
        if _differs(old, new):
            self._gateways = None
            for route in self._cache.list(HTTP_ROUTES):
                self._put_http_route(Key.of(route), route)
            self._gateway.publisher.mark_changed()

    def _attached(self) -> Gateways:
        if self._gateways is None:
            self._gateways = observed_gateways(self._cache, self._port)
        return self._gateways

    # -- backends -----------------------------------------------------------------------------------------------------

    def _service_changed(self, old: Object | None, new: Object | None) -> None:
        if _differs(old, new):
            key = _key(old, new)
            self._look_at_graph(key)
            self._gateway.target_changed(Target(key))

    def _endpoints_changed(self, old: Object | None, new: Object | None) -> None:
        found = new or old or {"metadata": {}}
        if service := labels_of(found).get(SERVICE_NAME_LABEL):
            self._gateway.target_changed(Target(Key(namespace_of(found), service)))

    def _pool_changed(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        if _differs(old, new):
            self._gateway.target_changed(Target(_key(old, new), resource))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        pods = [pod for pod in (old, new) if pod is not None]
        for resource in POOLS_BY_GROUP.values():
            for pool in self._cache.list(resource, namespace_of(pods[0])):
                if pods_of(pods, pool):
                    self._gateway.target_changed(Target(Key.of(pool), resource))


class Put(Protocol):
    def __call__(self, key: Key, obj: Object | None, /) -> None: ...


def _key(old: Object | None, new: Object | None) -> Key:
    return Key.of(new or old or {"metadata": {}})


def _differs(old: Object | None, new: Object | None) -> bool:
    """Returns whether more than a status is another."""
    return old is None or new is None or _content(old) != _content(new)


def _content(obj: Object) -> tuple[object, object]:
    return obj.get("spec"), obj["metadata"].get("labels")
