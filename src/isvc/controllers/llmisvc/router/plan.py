"""Plans the router of a service: its route, and the part it plays in a routing group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isvc.controllers.llmisvc.area import Area
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.router.gateways import check_classes
from isvc.controllers.llmisvc.router.group import Group, group_of
from isvc.controllers.llmisvc.router.models import model_name
from isvc.controllers.llmisvc.router.pools import ABSENT
from isvc.controllers.llmisvc.router.route import managed_route
from isvc.controllers.llmisvc.router.urls import Discovered, discover
from isvc.controllers.llmisvc.status.conditions import HTTP_ROUTES_READY, INFERENCE_POOL_READY
from isvc.engine.events import Event
from isvc.engine.plan import Part, Stop, Want
from isvc.kube.objects import Object, dig, is_being_deleted, name_of
from isvc.serving.llm import names
from isvc.serving.refused import Refused
from isvc.serving.thirdparty import INFERENCE_POOLS

AREA = "router"
ROUTE = "route"
FAILED = "HTTPRouteReconcileError"
DIVERGENCE = "MemberDivergence"


@dataclass(frozen=True, slots=True)
class Router(Area):
    """The route that is wanted, the group, and where the routes answer, if that can be said."""

    route: Object | None = None
    group: Group | None = None
    urls: tuple[Discovered, ...] | None = None


def plan(observed: Observed) -> Router:
    """A gateway that cannot serve the routes, or a pool that does not exist, is found only after the route is made."""
    if observed.stopped or observed.route is None:
        return Router(stop=_missing_pool(observed))
    group = group_of(observed)
    events = [_divergence(group)] if group and group.divergent else []
    managed = observed.route.http.spec if observed.route.http else None
    child = managed_route(observed, managed, group) if managed is not None else None
    if child and (namesakes := _namesakes(observed)):
        events.insert(0, _collision(observed, namesakes))
    routes = [*observed.network.routes.values(), *([child.manifest] if child else [])]
    urls, stop = _discover_urls(observed, routes)
    return Router(
        parts=(Part(ROUTE, Want((child,))),) if child else (),
        stop=stop or _missing_pool(observed),
        events=tuple(events),
        refusals={ROUTE: Stop(AREA, HTTP_ROUTES_READY, FAILED, _context(observed))},
        route=child.manifest if child else None,
        group=group,
        urls=urls,
    )


def _context(observed: Observed) -> str:
    name = f"{observed.namespace}/{names.route(observed.name)}"
    return f"Failed to reconcile HTTPRoute: failed to reconcile HTTPRoute {name}"


def _discover_urls(observed: Observed, routes: Sequence[Object]) -> tuple[tuple[Discovered, ...] | None, Stop | None]:
    """Returns where the routes answer, sorted, or why there is no saying."""
    settings, scheme = observed.settings, observed.config.ingress.url_scheme
    found: list[Discovered] = []
    try:
        for route in routes:
            if observed.environment.cluster_wide:
                check_classes(route, observed.network)
            found += discover(route, observed.network, scheme, settings.model_based_routing_header_name)
    except Refused as refused:
        return None, Stop(AREA, HTTP_ROUTES_READY, FAILED, f"Failed to reconcile HTTPRoute: {refused.message}")
    return tuple(sorted(found, key=lambda each: each.url)), None


def _missing_pool(observed: Observed) -> Stop | None:
    """A pool of the user's has to exist before it makes sense to say more."""
    name = observed.users_pool
    if observed.stopped or not name or (INFERENCE_POOLS, name) in observed.network.pools:
        return None
    message = (
        f"failed to fetch referenced Inference Pool {observed.namespace}/{name}:"
        f' InferencePool.{INFERENCE_POOLS.group} "{name}" not found'
    )
    return Stop(AREA, INFERENCE_POOL_READY, ABSENT, message)


def _namesakes(observed: Observed) -> list[str]:
    """Returns services that are routed for one of our models, and do not share its traffic on purpose."""
    group = observed.route.group if observed.route else None
    return [
        name_of(other)
        for other in observed.network.namesakes
        if not is_being_deleted(other)
        and _may_be_routed(other)
        and (group is None or dig(other, "spec", "router", "route", "group") != group)
    ]


def _may_be_routed(service: Object) -> bool:
    """Returns whether a service has a route, itself or through a configuration.

    Addresses of one that went may still show.
    """
    return dig(service, "spec", "router", "route") is not None or bool(dig(service, "spec", "baseRefs"))


def _collision(observed: Observed, namesakes: list[str]) -> Event:
    name, namespace, model = observed.name, observed.namespace, model_name(observed.merged.raw, observed.name)
    return Event(
        "Warning",
        "ModelNameCollision",
        f'model name "{model}" is also used by {", ".join(namesakes)} in namespace {namespace}:'
        " on paths and headers that name the model, the gateway prefers one of them and hides the others."
        f" {namespace}/{name} stays reachable at its own path; rename the model, or put the services into one routing"
        " group to share the traffic",
    )


def _divergence(group: Group) -> Event:
    message = f'Group "{group.name}" has members with divergent model.name or LoRA adapter sets'
    return Event("Warning", DIVERGENCE, message)
