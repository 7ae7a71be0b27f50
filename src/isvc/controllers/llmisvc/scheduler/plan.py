"""Plans the scheduler of a service: whom it runs as, the tokenizer it asks, the endpoint picker, and its pools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isvc.controllers.llmisvc.area import Area
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.router.validation import reference_problem
from isvc.controllers.llmisvc.scheduler import features
from isvc.controllers.llmisvc.scheduler.accounts import account, may_authenticate, permissions
from isvc.controllers.llmisvc.scheduler.picker import picker_deployment, picker_service
from isvc.controllers.llmisvc.scheduler.pools import pools
from isvc.controllers.llmisvc.scheduler.tokenizer import tokenizer
from isvc.controllers.llmisvc.status.conditions import SCHEDULER_WORKLOAD_READY
from isvc.engine.events import Event
from isvc.engine.plan import Child, Part, Retire, Stop, Want
from isvc.kube.objects import name_of
from isvc.kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    DEPLOYMENTS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from isvc.serving.llm import names
from isvc.serving.refused import Refused
from isvc.serving.thirdparty import INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2

AREA: Final = "scheduler"
FAILED: Final = "SchedulerReconcileError"
_CONTEXT: Final = "Failed to reconcile scheduler"
_NAMED_IN_CONTEXT: Final[dict[Resource, str]] = {
    SERVICE_ACCOUNTS: "service account",
    CLUSTER_ROLE_BINDINGS: "clusterrolebinding",
    ROLES: "role",
    ROLE_BINDINGS: "rolebinding",
    DEPLOYMENTS: "deployment",
}
_KINDS: Final = frozenset(
    {DEPLOYMENTS, SERVICES, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2}
)
_MADE: Final = (
    names.scheduler,
    names.scheduler_account,
    names.scheduler_role,
    names.scheduler_role_binding,
    names.tokenizer,
    names.inference_pool,
)


def plan(observed: Observed) -> Area:
    """References of the router are checked first: until they are right nothing of it changes, unless it has to go."""
    problem = reference_problem(observed)
    if problem and not observed.stopped:
        return Area((hold(observed, problem),), problem)
    bindings = tuple((CLUSTER_ROLE_BINDINGS, binding) for binding in observed.bindings)
    if not is_managed(observed):
        return Area((Part("scheduler's rights", Retire("there is no scheduler"), found=bindings),))
    children: list[Child] = []
    stop: Stop | None = None
    try:
        children.extend(_children(observed))  # what comes before a problem is made
    except Refused as error:
        stop = Stop(AREA, SCHEDULER_WORKLOAD_READY, FAILED, f"{_CONTEXT}: {error}")
    parts = tuple(Part(f"scheduler's {_title(child)}", Want((child,))) for child in children)
    refusals = {
        part.name: Stop(AREA, SCHEDULER_WORKLOAD_READY, FAILED, _context(child, observed))
        for part, child in zip(parts, children, strict=True)
    }
    held = (hold(observed, stop),) if stop else ()
    if not may_authenticate(observed):
        parts = (*parts, Part("scheduler's rights", Retire("its image is not trusted"), found=bindings))
    return Area((*parts, *held), stop, _events(observed), refusals)


def hold(observed: Observed, stop: Stop) -> Part:
    """Returns the part that leaves alone whatever the scheduler may have."""
    picker = names.picker_service(observed.scheduler, observed.name)
    return Part(AREA, stop.hold, _KINDS, frozenset({picker, *(made(observed.name) for made in _MADE)}))


def is_managed(observed: Observed) -> bool:
    """Returns whether there is to be an endpoint picker of ours: a pool of the user's has its own."""
    scheduler = observed.scheduler
    has_template = scheduler is not None and scheduler.template is not None
    return not observed.stopped and has_template and not observed.users_pool


def has_tokenizer(observed: Observed) -> bool:
    return is_managed(observed) and features.has_tokenizer(observed.scheduler)


def _children(observed: Observed) -> Iterator[Child]:
    """Yields them in the order in which they are made: the tokenizer answers before the picker asks it."""
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
    """Returns what was being done, for a child that the API server refuses."""
    if child.resource not in _NAMED_IN_CONTEXT:
        return _CONTEXT
    name = name_of(child.manifest)
    whose = "tokenizer" if name == names.tokenizer(observed.name) else "scheduler"
    where = f"{observed.namespace}/{name}" if child.resource.namespaced else name
    return f"{_CONTEXT}: failed to reconcile {whose} {_NAMED_IN_CONTEXT[child.resource]} {where}"


def _events(observed: Observed) -> tuple[Event, ...]:
    events = []
    if features.uses_precise_prefix_scorer(observed.scheduler):
        message = (
            f'LLMInferenceService "{observed.name}" configures precise-prefix-cache-scorer, which became three plugins:'
            " name token-producer, precise-prefix-cache-producer and prefix-cache-scorer instead, before the automatic"
            " conversion goes"
        )
        events.append(Event("Warning", "DeprecatedPlugin", message))
    source = observed.merged.scheduler_config_map
    if source is not None and features.wants_latency_predictor(observed.scheduler):
        message = (
            f"the configuration in ConfigMap {source} has the plugin predicted-latency-producer: the servers that it"
            " asks are added only for a configuration in spec.router.scheduler.config.inline"
        )
        events.append(Event("Warning", "LatencyPredictorConfigRef", message))
    return tuple(events)
