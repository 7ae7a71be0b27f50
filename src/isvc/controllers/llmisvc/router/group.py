"""Routing groups: services of a namespace that share the traffic for a model by their weights.

Each member's route carries the backends of all, so it does not matter which of the routes a gateway prefers. A service
joins when it can answer. It leaves when it is deleted or stopped, when nothing of it runs any more, or when its own
parts fail; not because its route waits to be accepted again. Every change of weights changes the routes of all
members, and if that made them leave, the routes would change again, for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from isvc.api.annotations import is_stopped
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.router.backends import POOL, PORT, SERVICE, is_own_pool, pool_reference
from isvc.controllers.llmisvc.router.models import model_name, served_models
from isvc.controllers.llmisvc.status.conditions import HTTP_ROUTES_READY, ROUTER_CONDITIONS, ROUTER_READY
from isvc.kube.conditions import find, is_true
from isvc.kube.objects import Object, dig, is_being_deleted, name_of, namespace_of
from isvc.serving.llm import names
from isvc.serving.thirdparty import INFERENCE_POOLS


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    weight: int
    stopped: bool
    backend: Object
    models: tuple[str, ...]

    def report(self) -> Object:
        """Returns the member as the status of the group has it."""
        entry: Object = {"name": self.name, "weight": self.weight, "backendRef": self.backend}
        return {**entry, "stopped": True} if self.stopped else entry


@dataclass(frozen=True, slots=True)
class Group:
    """`members` share the traffic. `divergent` are services of the group that serve other models and get none."""

    name: str
    members: tuple[Member, ...]
    divergent: tuple[Member, ...]

    def report(self) -> Object:
        return {"name": self.name, "members": [member.report() for member in self.members]}

    def divergence(self) -> str:
        models = sorted({"+".join(member.models) for member in self.divergent})
        return f"group has members with different model sets: {', '.join(models)}"


def group_of(observed: Observed) -> Group | None:
    name = observed.route.group if observed.route else None
    if name is None:
        return None
    admitted = {each.get("name") for each in dig(observed.status, "router", "group", "members") or ()}
    itself = {**observed.raw, "spec": observed.merged.raw, "status": {}}  # the merged spec knows better
    others = [each for each in observed.network.members if name_of(each) != observed.name]
    eligible = [_member(each) for each in others if _may_answer(each, name_of(each) in admitted)]
    members = sorted([_member(itself), *eligible], key=lambda member: member.name)
    serves = [member for member in members if _serves_the_same(member, itself)]
    return Group(name, tuple(serves), tuple(member for member in members if member not in serves))


def traffic_changed(before: Object, after: Object) -> bool:
    """Returns whether a change of a service may change the routes of the other members of its group."""
    return _concerns_members(before) != _concerns_members(after)


def share_traffic(route: Object, group: Group, observed: Observed) -> Object:
    """Returns the route's spec with all members behind each rule that led to this service, but for its own path's.

    A stopped member is left out altogether: some gateways send requests even to a backend of weight 0.
    """
    backends = [{**member.backend, "weight": member.weight} for member in group.members if not member.stopped]
    own = f"/{observed.namespace}/{observed.name}"
    rules = [
        {**rule, "backendRefs": backends} if _is_shared(rule, own) and _leads_here(rule, observed) else rule
        for rule in route.get("rules") or ()
    ]
    return {**route, "rules": rules}


def _may_answer(member: Object, admitted: bool) -> bool:
    if is_being_deleted(member):
        return False
    if is_stopped(member):
        return True  # it shows in the status, and gets no traffic
    conditions = dig(member, "status", "conditions") or ()
    return _has_replicas(member) and (is_true(conditions, ROUTER_READY) or (admitted and _only_waits(conditions)))


def _concerns_members(raw: Object) -> tuple[Any, ...]:
    """Returns what other members' routes depend on."""
    spec = raw.get("spec") or {}
    parts = (spec.get("router"), spec.get("model"), spec.get("baseRefs"))
    return is_being_deleted(raw), is_stopped(raw), _may_answer(raw, True), _may_answer(raw, False), _member(raw), parts


def _only_waits(conditions: Iterable[Object]) -> bool:
    """Returns whether nothing of the router fails but its route, which may only have changed."""
    failing = (kind for kind in ROUTER_CONDITIONS if (find(conditions, kind) or {}).get("status") == "False")
    return set(failing) == {HTTP_ROUTES_READY}


def _has_replicas(member: Object) -> bool:
    """Returns whether every workload of a service has at least one pod that answers."""
    workloads = dig(member, "status", "workloads") or {}
    present = [workloads[kind] for kind in ("primary", "prefill", "scheduler") if workloads.get(kind)]
    return bool(workloads.get("primary")) and all(workload.get("readyReplicas") for workload in present)


def _member(raw: Object) -> Member:
    return Member(
        name=name_of(raw),
        weight=dig(raw, "spec", "router", "route", "weight") or 0,
        stopped=is_stopped(raw),
        backend=_backend(raw),
        models=tuple(served_models(raw)),
    )


def _backend(raw: Object) -> Object:
    """Returns what its spec alone tells, and its status where a preset may have given it a scheduler.

    A stopped service has no scheduler; a pool of the user's stays.
    """
    scheduler, reported = dig(raw, "spec", "router", "scheduler"), dig(raw, "status", "router", "scheduler")
    users = pool_reference(scheduler)
    if users or (not is_stopped(raw) and (scheduler is not None or reported is not None)):
        pool = users or dig(reported, "inferencePool", "name")
        return {
            "group": INFERENCE_POOLS.group,
            "kind": POOL,
            "name": pool or names.inference_pool(name_of(raw)),
            "port": PORT,
        }
    return {"kind": SERVICE, "name": names.workload_service(name_of(raw)), "port": PORT}


def _serves_the_same(member: Member, itself: Object) -> bool:
    """A stopped member has no addresses, so its spec alone tells."""
    if member.stopped:
        return model_name(itself["spec"], name_of(itself)) in member.models
    namespace = namespace_of(itself)
    return _plain(member.models, namespace) == _plain(served_models(itself), namespace)


def _plain(models: Iterable[str], namespace: str) -> set[str]:
    """Addresses name each model twice, also by its qualified name; a spec names it once."""
    return {model.removeprefix(f"publishers/{namespace}/models/") for model in models}


def _is_shared(rule: Object, own: str) -> bool:
    paths = [str(dig(match, "path", "value") or "") for match in rule.get("matches") or ()]
    return not any(path == own or path.startswith(f"{own}/") for path in paths)


def _leads_here(rule: Object, observed: Observed) -> bool:
    return any(_is_ours(backend, observed) for backend in rule.get("backendRefs") or ())


def _is_ours(backend: Object, observed: Observed) -> bool:
    kind, name = backend.get("kind", SERVICE), backend.get("name")
    pool = observed.users_pool
    return (
        is_own_pool(backend, observed.name)
        or (kind == SERVICE and name == names.workload_service(observed.name))
        or (kind == POOL and bool(pool) and name == pool)
    )
