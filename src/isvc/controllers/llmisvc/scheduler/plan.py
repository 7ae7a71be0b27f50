"""Plans the scheduler of a service: whom it runs as, the tokenizer it asks, the endpoint picker, and its pools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.planned import Area, OnRefusal, Shared, Stop
from isvc.controllers.llmisvc.router.backends import pool_reference
from isvc.controllers.llmisvc.router.validation import reference_problem
from isvc.controllers.llmisvc.scheduler import features
from isvc.controllers.llmisvc.scheduler.accounts import account, permissions
from isvc.controllers.llmisvc.scheduler.deployment import picker_deployment
from isvc.controllers.llmisvc.scheduler.pools import pools
from isvc.controllers.llmisvc.scheduler.service import picker_service
from isvc.controllers.llmisvc.scheduler.tokenizer import tokenizer
from isvc.controllers.llmisvc.status.conditions import SCHEDULER_WORKLOAD_READY
from isvc.engine.events import Event
from isvc.engine.plan import Child, Part, Want
from isvc.kube.objects import dig, name_of
from isvc.kube.resource import CLUSTER_ROLE_BINDINGS, DEPLOYMENTS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, Resource
from isvc.serving.llm import names
from isvc.serving.refused import Refused

FAILED = "SchedulerReconcileError"
_CONTEXT: Final = "Failed to reconcile scheduler"
_NAMED_IN_CONTEXT: Final[dict[Resource, str]] = {
    SERVICE_ACCOUNTS: "service account",
    CLUSTER_ROLE_BINDINGS: "clusterrolebinding",
    ROLES: "role",
    ROLE_BINDINGS: "rolebinding",
    DEPLOYMENTS: "deployment",
}


def plan(observed: Observed) -> Area:
    """References of the router are checked first: until they are right nothing of it changes, unless it has to go."""
    problem = reference_problem(observed)
    if problem and not observed.stopped:
        return Area(stop=problem)
    if not is_managed(observed):
        binding = names.scheduler_cluster_role_binding(observed.namespace, observed.name)
        return Area(removals=(Shared(CLUSTER_ROLE_BINDINGS, binding),))
    children: list[Child] = []
    stop: Stop | None = None
    try:
        children.extend(_children(observed))  # what comes before a problem is made
    except Refused as error:
        stop = Stop(SCHEDULER_WORKLOAD_READY, FAILED, f"{_CONTEXT}: {error}")
    parts = tuple(Part(f"scheduler's {_title(child)}", Want((child,)), frozenset()) for child in children)
    refusals = {
        part.name: OnRefusal(SCHEDULER_WORKLOAD_READY, FAILED, _context(child, observed))
        for part, child in zip(parts, children, strict=True)
    }
    return Area(parts, stop, events=_events(observed), refusals=refusals)


def is_managed(observed: Observed) -> bool:
    """Whether there is to be an endpoint picker of ours: a pool of the user's has its own."""
    scheduler = dig(observed.spec, "router", "scheduler")
    return not observed.stopped and dig(scheduler, "template") is not None and not pool_reference(scheduler)


def has_tokenizer(observed: Observed) -> bool:
    return is_managed(observed) and features.wants_tokenizer(observed.spec)


def _children(observed: Observed) -> Iterator[Child]:
    """In the order in which they are made: the tokenizer answers before the picker asks it."""
    used = account(observed)
    yield from permissions(observed, used)
    if has_tokenizer(observed):
        yield from tokenizer(observed, used)
    yield picker_deployment(observed, used)
    yield picker_service(observed)
    yield from pools(observed)


def _title(child: Child) -> str:
    return f"{child.resource} {name_of(child.manifest)}"


def _context(child: Child, observed: Observed) -> str:
    """What was being done, for a child that the API server refuses."""
    if child.resource not in _NAMED_IN_CONTEXT:
        return _CONTEXT
    name = name_of(child.manifest)
    whose = "tokenizer" if name == names.tokenizer(observed.name) else "scheduler"
    where = f"{observed.namespace}/{name}" if child.resource.namespaced else name
    return f"{_CONTEXT}: failed to reconcile {whose} {_NAMED_IN_CONTEXT[child.resource]} {where}"


def _events(observed: Observed) -> tuple[Event, ...]:
    events = []
    if features.uses_precise_prefix_scorer(observed.spec):
        message = (
            f'LLMInferenceService "{observed.name}" configures precise-prefix-cache-scorer, which became three plugins:'
            " name token-producer, precise-prefix-cache-producer and prefix-cache-scorer instead, before the automatic"
            " conversion goes"
        )
        events.append(Event("Warning", "DeprecatedPlugin", message))
    source = observed.merged.scheduler_config_map
    if source is not None and features.wants_latency_predictor(observed.spec):
        message = (
            f"the configuration in ConfigMap {source} has the plugin predicted-latency-producer: the servers that it"
            " asks are added only for a configuration in spec.router.scheduler.config.inline"
        )
        events.append(Event("Warning", "LatencyPredictorConfigRef", message))
    return tuple(events)
