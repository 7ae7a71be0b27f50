"""Plans the router of a service: its route, and the part it plays in a routing group."""

from __future__ import annotations

from dataclasses import dataclass

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.planned import Area, OnRefusal, Stop
from isvc.controllers.llmisvc.router.backends import pool_reference
from isvc.controllers.llmisvc.router.group import Group, group_of
from isvc.controllers.llmisvc.router.models import model_name
from isvc.controllers.llmisvc.router.pools import ABSENT
from isvc.controllers.llmisvc.router.route import managed_route
from isvc.controllers.llmisvc.status.conditions import HTTP_ROUTES_READY, INFERENCE_POOL_READY
from isvc.engine.plan import Part, Want
from isvc.kube.objects import Object, dig, is_being_deleted, name_of
from isvc.serving.events import Event
from isvc.serving.thirdparty import INFERENCE_POOLS

ROUTE = "route"
DIVERGENCE = "MemberDivergence"


@dataclass(frozen=True, slots=True)
class RouterFacts:
    """What the report wants to know again: the route that is wanted, if any, and the group."""

    route: Object | None = None
    group: Group | None = None


def plan(observed: Observed) -> Area:
    if observed.stopped or dig(observed.spec, "router", "route") is None:
        return Area(stop=_missing_pool(observed), complete=True, facts=RouterFacts())
    group = group_of(observed)
    events = [_divergence(group)] if group and group.divergent else []
    if dig(observed.spec, "router", "route", "http", "spec") is None:
        return Area(stop=_missing_pool(observed), complete=True, events=tuple(events), facts=RouterFacts(group=group))
    child = managed_route(observed, group)
    if namesakes := _namesakes(observed):
        events.insert(0, _collision(observed, namesakes))
    return Area(
        parts=(Part(ROUTE, Want((child,)), frozenset()),),
        stop=_missing_pool(observed),
        complete=True,
        events=tuple(events),
        refusals={ROUTE: OnRefusal(HTTP_ROUTES_READY, "HTTPRouteReconcileError", "Failed to reconcile HTTPRoute")},
        facts=RouterFacts(child.manifest, group),
    )


def _missing_pool(observed: Observed) -> Stop | None:
    """A pool of the user's has to exist before it makes sense to say more."""
    name = pool_reference(dig(observed.spec, "router", "scheduler"))
    if observed.stopped or not name or (INFERENCE_POOLS, name) in observed.network.pools:
        return None
    message = (
        f"failed to fetch referenced Inference Pool {observed.namespace}/{name}:"
        f' InferencePool.{INFERENCE_POOLS.group} "{name}" not found'
    )
    return Stop(INFERENCE_POOL_READY, ABSENT, message)


def _namesakes(observed: Observed) -> list[str]:
    """Services that are routed for one of our models, and do not share its traffic on purpose."""
    group = dig(observed.spec, "router", "route", "group")
    return [
        name_of(other)
        for other in observed.network.namesakes
        if not is_being_deleted(other) and (group is None or dig(other, "spec", "router", "route", "group") != group)
    ]


def _collision(observed: Observed, namesakes: list[str]) -> Event:
    name, namespace, model = observed.name, observed.namespace, model_name(observed.spec, observed.name)
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
