"""The Gateway API's statuses: GatewayClasses are accepted, Gateways programmed, HTTPRoutes accepted and resolved.

A route is reported when the gateway serves it: Envoy has acknowledged it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from isvc.kube.objects import Key, Object, dig, is_being_deleted, name_of, namespace_of
from isvc.kube.resource import NAMESPACES, SERVICES, Resource
from isvc.local.gateway.endpoints.pools import POOLS_BY_GROUP
from isvc.local.gateway.gateway_api.attachment import CONTROLLER, Gateways
from isvc.local.gateway.gateway_api.references import backend_references
from isvc.local.gateway.gateway_api.status import class_status, gateway_status, listeners_of, route_status
from isvc.local.gateway.watching import PARENT_OF_ROUTE, observed_gateways
from isvc.serving.http_routes import gateways_of
from isvc.serving.thirdparty import GATEWAY_CLASSES, GATEWAYS, HTTP_ROUTES, REFERENCE_GRANTS
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Watch, spec_changed
from isvc.toolkit.reads import Read
from isvc.wire.turns import room_in_turn

BACKEND_OF_ROUTE = "backend"
_COUNTING: Final = 10.0  # seconds: routes of a Gateway are counted once for all that come within
_WORKERS: Final = 32  # most of them wait for the gateway


def backends_of_route(route: Object) -> Iterable[str]:
    """Indexes routes by the Services and pools that they name."""
    own = namespace_of(route)
    return {f"{each.get('namespace') or own}/{each.get('name', '')}" for each in backend_references(route)}


Published = Callable[[], Awaitable[None]]
"""Returns when the gateway serves what is known now."""


def controllers(context: Context, port: int, published: Published) -> list[Controller]:
    return [_classes(context), _gateways(context, port), _routes(context, port, published)]


def _classes(context: Context) -> Controller:
    async def reconcile(key: Key) -> None:
        found = context.find(GATEWAY_CLASSES, key)
        if found is not None and dig(found, "spec", "controllerName") == CONTROLLER:
            await context.write_status(GATEWAY_CLASSES, found, class_status(found, context.timestamp()))

    return Controller("gatewayclass", reconcile, [Watch(GATEWAY_CLASSES, when=spec_changed)])


def _gateways(context: Context, port: int) -> Controller:
    cache = context.cache

    async def reconcile(key: Key) -> None:
        ours = observed_gateways(cache, port)
        gateway = ours.by_key.get(key)
        if gateway is not None and not is_being_deleted(gateway):
            attached = await attached_listeners(gateway, ours)
            await context.write_status(GATEWAYS, gateway, gateway_status(gateway, ours, attached, context.timestamp()))

    async def attached_listeners(gateway: Object, ours: Gateways) -> list[str]:
        """Returns a listener for each attached route, of which there may be thousands: others get turns in between."""
        attached: list[str] = []
        for key in cache.keys(HTTP_ROUTES, PARENT_OF_ROUTE, str(Key.of(gateway))):
            await room_in_turn()
            if route := cache.get(HTTP_ROUTES, key.name, key.namespace):
                attached += listeners_of(gateway, ours, route)
        return attached

    watches = [
        Watch(GATEWAYS, when=spec_changed),
        Watch(GATEWAY_CLASSES, to=lambda _: cache.all_keys(GATEWAYS), when=spec_changed),
        Watch(HTTP_ROUTES, to=gateways_of, when=spec_changed, delay=_COUNTING),
    ]
    return Controller("gateway", reconcile, watches)


def _routes(context: Context, port: int, published: Published) -> Controller:
    cache = context.cache

    def exists(resource: Resource, namespace: str, name: str) -> bool:
        return cache.get(resource, name, namespace) is not None

    async def reconcile(key: Key) -> None:
        await published()
        route = context.find(HTTP_ROUTES, key)
        if route is not None:
            status = route_status(route, observed_gateways(cache, port), exists, context.timestamp())
            await context.write_status(HTTP_ROUTES, route, status)

    def of_gateway(gateway: Object) -> Iterable[Key]:
        return cache.keys(HTTP_ROUTES, PARENT_OF_ROUTE, str(Key.of(gateway)))

    def of_backend(backend: Object) -> Iterable[Key]:
        return cache.keys(HTTP_ROUTES, BACKEND_OF_ROUTE, str(Key.of(backend)))

    decisive = (GATEWAY_CLASSES, REFERENCE_GRANTS)
    watches = [
        Watch(HTTP_ROUTES, when=spec_changed),
        Watch(GATEWAYS, to=of_gateway, when=spec_changed),
        *(Watch(each, to=lambda _: cache.all_keys(HTTP_ROUTES), when=spec_changed) for each in decisive),
        *(Watch(resource, to=of_backend, when=came_or_went) for resource in (SERVICES, *POOLS_BY_GROUP.values())),
        Watch(NAMESPACES, to=lambda namespace: cache.all_keys(HTTP_ROUTES, name_of(namespace))),
    ]
    reads = [Read(HTTP_ROUTES, indexers={BACKEND_OF_ROUTE: backends_of_route})]
    return Controller("httproute", reconcile, watches, workers=_WORKERS, reads=reads)


def came_or_went(before: Object | None, after: Object | None) -> bool:
    return before is None or after is None
