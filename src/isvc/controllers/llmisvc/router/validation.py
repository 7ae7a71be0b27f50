"""Checks that what a service refers to is there: gateways, routes, and the gateways of these."""

from __future__ import annotations

from collections.abc import Iterable

from isvc.api.llm.router import HTTPRouteSpec
from isvc.controllers.llmisvc.observed import Network, Observed
from isvc.controllers.llmisvc.status.conditions import GATEWAYS_READY, HTTP_ROUTES_READY
from isvc.engine.plan import Stop
from isvc.kube.objects import Key, Object, dig

AREA = "router"
INVALID = "RefsInvalid"


def reference_problem(observed: Observed) -> Stop | None:
    """Returns what has to be mended before a router is made: the first kind of problem, all of its kind."""
    network, namespace = observed.network, observed.namespace
    referred = (Key(each.namespace or namespace, each.name) for each in observed.gateways)
    if missing := [str(key) for key in referred if key not in network.gateways]:
        return Stop(AREA, GATEWAYS_READY, INVALID, "; ".join(f"Gateway {key} does not exist" for key in missing))
    http = (observed.route and observed.route.http) or HTTPRouteSpec()
    names = [reference["name"] for reference in http.refs]
    if absent := [name for name in names if name not in network.routes]:
        message = "; ".join(f"HTTPRoute {namespace}/{name} does not exist" for name in absent)
        return Stop(AREA, HTTP_ROUTES_READY, INVALID, message)
    parents = (http.spec or {}).get("parentRefs")
    if missing := [str(key) for key in _missing_gateways(network, parents, namespace)]:
        message = "; ".join(f"Managed HTTPRoute references non-existent Gateway {key}" for key in missing)
        return Stop(AREA, HTTP_ROUTES_READY, INVALID, message)
    if problems := [problem for name in names for problem in _target_problems(network, namespace, name)]:
        return Stop(AREA, HTTP_ROUTES_READY, INVALID, f"HTTPRoute target validation failed: {'; '.join(problems)}")
    return None


def gateway_key(parent: Object, namespace: str) -> Key:
    """Returns which gateway a route's parent reference means; by default one of the route's own namespace."""
    return Key(parent.get("namespace") or namespace, parent.get("name", ""))


def _missing_gateways(network: Network, parents: Iterable[Object] | None, namespace: str) -> list[Key]:
    keys = (gateway_key(parent, namespace) for parent in parents or ())
    return [key for key in keys if key not in network.gateways]


def _target_problems(network: Network, namespace: str, name: str) -> list[str]:
    route = f"HTTPRoute {namespace}/{name}"
    parents = dig(network.routes[name], "spec", "parentRefs")
    if not parents:
        return [f"{route} has no parent gateway references"]
    return [f"{route} references non-existent Gateway {key}" for key in _missing_gateways(network, parents, namespace)]
