"""A Route: HTTPRoutes of the gateway that share requests between Revisions, and the addresses that it has by them."""

from __future__ import annotations

from collections.abc import Iterable

from isvc.kube.conditions import ConditionSet, conditions_of
from isvc.kube.objects import Key, Object, dig, generation_of, name_of, namespace_of, uid_of
from isvc.local.controllers.children import NotOwned, ensure
from isvc.local.knative.kinds import CONFIGURATIONS, REVISIONS, ROUTES
from isvc.local.knative.traffic import Addresses, Target, Unassigned, assign, http_routes
from isvc.serving.http_routes import gateway_parent
from isvc.serving.thirdparty import HTTP_ROUTES
from isvc.toolkit.cache import OWNER
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Mapper, OwnerOf, Watch, spec_changed

CONDITIONS = ConditionSet(("AllTrafficAssigned", "CertificateProvisioned", "IngressReady"))


def controller(context: Context, gateway: str, port: int) -> Controller:
    """`gateway` is the Gateway, as namespace/name, that HTTPRoutes are attached to, and `port` its port."""
    cache = context.cache

    def routes_naming(field: str) -> Mapper:
        def routes(named: Object) -> Iterable[Key]:
            for route in cache.list(ROUTES, namespace_of(named)):
                if any(each.get(field) == name_of(named) for each in dig(route, "spec", "traffic") or ()):
                    yield Key.of(route)

        return routes

    watches = [
        Watch(ROUTES),
        Watch(CONFIGURATIONS, to=routes_naming("configurationName")),
        Watch(REVISIONS, to=routes_naming("revisionName"), when=spec_changed),
        Watch(HTTP_ROUTES, to=OwnerOf(ROUTES), when=spec_changed),
    ]
    return Controller("knative-route", Routes(context, gateway, port).reconcile, watches)


class Routes:
    def __init__(self, context: Context, gateway: str, port: int) -> None:
        self._context = context
        self._parent = gateway_parent(gateway)
        self._port = port

    async def reconcile(self, key: Key) -> None:
        cache = self._context.cache
        route = self._context.find(ROUTES, key)
        if route is None:
            return
        before = route.get("status") or {}
        status = CONDITIONS.edit(conditions_of(route), self._context.timestamp())
        status.initialize()
        status.mark_true("CertificateProvisioned", "TLSNotEnabled", "autoTLS is not enabled")
        addresses = Addresses.of(route, self._port)
        fields: Object = {
            "observedGeneration": generation_of(route),
            "url": addresses.url,
            "address": {"url": addresses.address},
        }
        assigned = assign(
            route,
            {name_of(each): each for each in cache.list(CONFIGURATIONS, key.namespace)},
            {name_of(each): each for each in cache.list(REVISIONS, key.namespace)},
        )
        if isinstance(assigned, Unassigned):
            mark = status.mark_false if assigned.status == "False" else status.mark_unknown
            mark("AllTrafficAssigned", assigned.reason, assigned.message)
            if traffic := before.get("traffic"):
                fields["traffic"] = traffic  # requests still go where they went before
        else:
            status.mark_true("AllTrafficAssigned")
            fields["traffic"] = [target.entry(Addresses.of(route, self._port, target.tag).url) for target in assigned]
            try:
                await self._serve(route, assigned)
                status.mark_true("IngressReady")
            except NotOwned as error:
                status.mark_false("IngressReady", "NotOwned", str(error))
        await self._context.write_status(ROUTES, route, {**fields, "conditions": status.result()})

    async def _serve(self, route: Object, targets: list[Target]) -> None:
        cache, namespace = self._context.cache, namespace_of(route)
        found = ((target.revision, cache.get(REVISIONS, target.revision, namespace)) for target in targets)
        timeouts = {name: int(dig(revision, "spec", "timeoutSeconds") or 0) for name, revision in found}
        wanted = list(http_routes(route, targets, timeouts, self._parent, self._port))
        for each in wanted:
            await ensure(self._context, HTTP_ROUTES, each, ROUTES.typed(route))
        names = {name_of(each) for each in wanted}
        for each in cache.by_index(HTTP_ROUTES, OWNER, uid_of(route)):
            if name_of(each) not in names:
                await self._context.delete(HTTP_ROUTES, each)
