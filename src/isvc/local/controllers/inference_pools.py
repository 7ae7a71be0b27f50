"""The statuses of InferencePools, in both API groups: which Gateways of this machine lead to them."""

from __future__ import annotations

from collections.abc import Iterable

from isvc.kube.objects import Key, Object, labels_of, namespace_of
from isvc.kube.resource import PODS, SERVICES, Resource
from isvc.local.controllers.gateways import BACKEND_OF_ROUTE, backends_of_route, came_or_went
from isvc.local.gateway.endpoints.pools import PICKER_OF_POOL, POOLS_BY_GROUP, picker_of, pods_of
from isvc.local.gateway.gateway_api.pool_status import pool_status
from isvc.local.gateway.watching import observed_gateways
from isvc.serving.llm.labels import ROLE
from isvc.serving.thirdparty import GATEWAYS, HTTP_ROUTES
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Watch, spec_changed


def controllers(context: Context, port: int) -> list[Controller]:
    return [_controller(context, resource, port) for resource in POOLS_BY_GROUP.values()]


def _controller(context: Context, resource: Resource, port: int) -> Controller:
    cache = context.cache

    async def reconcile(key: Key) -> None:
        pool = context.find(resource, key)
        if pool is None:
            return
        routes = cache.by_index(HTTP_ROUTES, BACKEND_OF_ROUTE, str(key))
        roles = {labels_of(pod).get(ROLE) for pod in pods_of(cache.list(PODS, key.namespace), pool)}
        now = context.timestamp()
        ours = observed_gateways(cache, port)
        picker = picker_of(pool, cache)
        status = pool_status(resource, pool, routes, ours, picker=picker, has_prefill="prefill" in roles, now=now)
        await context.write_status(resource, pool, status)

    def named_by(route: Object) -> Iterable[Key]:
        backends = (Key(*each.split("/")) for each in backends_of_route(route))
        return (key for key in backends if cache.get(resource, key.name, key.namespace) is not None)

    def of_pod(pod: Object) -> Iterable[Key]:
        if labels_of(pod).get(ROLE) != "prefill":
            return ()
        return (Key.of(pool) for pool in cache.list(resource, namespace_of(pod)) if pods_of([pod], pool))

    def picked_by(service: Object) -> Iterable[Key]:
        return cache.keys(resource, PICKER_OF_POOL, str(Key.of(service)))

    def every(_: Object) -> Iterable[Key]:
        return cache.all_keys(resource)

    watches = [
        Watch(resource, when=spec_changed),
        Watch(HTTP_ROUTES, to=named_by, when=spec_changed),
        Watch(PODS, to=of_pod, when=came_or_went),
        Watch(SERVICES, to=picked_by, when=came_or_went),
        Watch(GATEWAYS, to=every, when=spec_changed),
    ]
    return Controller(f"{resource.plural}.{resource.group}", reconcile, watches)
