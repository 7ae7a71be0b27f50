"""The gateways of a service's routes: as the status lists them, and whether they are ready."""

from __future__ import annotations

from collections.abc import Iterable

from isvc.controllers.llmisvc.observed import Network
from isvc.controllers.llmisvc.router.readiness import is_gateway_programmed
from isvc.controllers.llmisvc.router.validation import gateway_key
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of
from isvc.serving.refused import Refused
from isvc.serving.thirdparty import GATEWAYS, HTTP_ROUTES


def gateways_of(routes: Iterable[Object]) -> list[Key]:
    """Returns each gateway once, in the order in which routes refer to them."""
    return list(dict.fromkeys(gateway_key(parent, namespace_of(route)) for route, parent in _attachments(routes)))


def observed_gateways(routes: Iterable[Object]) -> list[Object]:
    """Returns each gateway by name, with the routes attached to it and the listeners that these pick."""
    routes = list(routes)
    return [_gateway_status(key, routes) for key in sorted(gateways_of(routes), key=str)]


def check_classes(route: Object, network: Network) -> None:
    """Raises `Refused` for a gateway whose class does not exist: it has no controller that could take the route."""
    for key in gateways_of([route]):
        name = str(dig(network.gateways[key], "spec", "gatewayClassName") or "")
        if name not in network.gateway_classes:
            raise Refused(
                f"failed to discover gateways for route {Key.of(route)}: failed to get GatewayClass"
                f' "{name}" for gateway {key}: GatewayClass.gateway.networking.k8s.io "{name}" not found'
            )


def unready(keys: Iterable[Key], network: Network) -> list[Key]:
    return [key for key in keys if not is_gateway_programmed(network.gateways[key])]


def _gateway_status(key: Key, routes: list[Object]) -> Object:
    attached = {name_of(route): route for route, parent in _attachments(routes) if _is(key, route, parent)}
    parents = [parent for route, parent in _attachments(routes) if _is(key, route, parent)]
    listeners = sorted({parent["sectionName"] for parent in parents if parent.get("sectionName")})
    gateway = {"group": GATEWAYS.group, "kind": GATEWAYS.kind, "name": key.name, "namespace": key.namespace}
    references = [
        {"group": HTTP_ROUTES.group, "kind": HTTP_ROUTES.kind, "name": name, "namespace": namespace_of(route)}
        for name, route in sorted(attached.items())
    ]
    return {**gateway, **({"listeners": listeners} if listeners else {}), "httpRoutes": references}


def _attachments(routes: Iterable[Object]) -> list[tuple[Object, Object]]:
    return [(route, parent) for route in routes for parent in dig(route, "spec", "parentRefs") or ()]


def _is(key: Key, route: Object, parent: Object) -> bool:
    return gateway_key(parent, namespace_of(route)) == key
