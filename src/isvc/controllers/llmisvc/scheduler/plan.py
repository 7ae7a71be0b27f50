"""Plans the scheduler of a service: whom it runs as, the tokenizer it asks, the endpoint picker, and its pools."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.planned import Area, OnRefusal, Shared, Stop
from isvc.controllers.llmisvc.router.backends import pool_reference
from isvc.controllers.llmisvc.router.validation import reference_problem
from isvc.controllers.llmisvc.scheduler import features
from isvc.controllers.llmisvc.scheduler.accounts import account, permissions
from isvc.controllers.llmisvc.scheduler.config.rewrite import NotMigrated
from isvc.controllers.llmisvc.scheduler.deployment import picker_deployment
from isvc.controllers.llmisvc.scheduler.pools import pools
from isvc.controllers.llmisvc.scheduler.service import picker_service
from isvc.controllers.llmisvc.scheduler.tokenizer import tokenizer
from isvc.controllers.llmisvc.status.conditions import SCHEDULER_WORKLOAD_READY
from isvc.engine.plan import Child, Part, Want
from isvc.kube.objects import dig
from isvc.kube.resource import CLUSTER_ROLE_BINDINGS
from isvc.serving.events import Event
from isvc.serving.llm import names
from isvc.serving.refused import Refused

FAILED = "SchedulerReconcileError"


def plan(observed: Observed) -> Area:
    """References of the router are checked first: until they are right nothing of it changes, unless it has to go."""
    problem = reference_problem(observed)
    if problem and not observed.stopped:
        return Area(stop=problem)
    if not is_managed(observed):
        binding = names.scheduler_cluster_role_binding(observed.namespace, observed.name)
        return Area(removals=(Shared(CLUSTER_ROLE_BINDINGS, binding),))
    try:
        parts = _parts(observed)
    except (Refused, NotMigrated) as error:
        return Area(stop=Stop(SCHEDULER_WORKLOAD_READY, FAILED, f"Failed to reconcile scheduler: {error}"))
    refused = OnRefusal(SCHEDULER_WORKLOAD_READY, FAILED, "Failed to reconcile scheduler")
    return Area(parts=parts, events=_events(observed), refusals={part.name: refused for part in parts})


def is_managed(observed: Observed) -> bool:
    """Whether there is to be an endpoint picker of ours: a pool of the user's has its own."""
    scheduler = dig(observed.spec, "router", "scheduler")
    return not observed.stopped and dig(scheduler, "template") is not None and not pool_reference(scheduler)


def has_tokenizer(observed: Observed) -> bool:
    return is_managed(observed) and features.wants_tokenizer(observed.spec)


def _parts(observed: Observed) -> tuple[Part, ...]:
    used = account(observed)
    children: list[tuple[str, Callable[[], Iterable[Child]]]] = [
        ("permissions", lambda: permissions(observed, used)),
        ("tokenizer", lambda: tokenizer(observed, used) if has_tokenizer(observed) else ()),
        ("scheduler", lambda: (picker_deployment(observed, used), picker_service(observed))),
        ("pools", lambda: pools(observed)),
    ]
    return tuple(Part(name, Want(tuple(build())), frozenset()) for name, build in children)


def _events(observed: Observed) -> tuple[Event, ...]:
    if not features.uses_precise_prefix_scorer(observed.spec):
        return ()
    message = (
        f'LLMInferenceService "{observed.name}" configures precise-prefix-cache-scorer, which became three plugins:'
        " name token-producer, precise-prefix-cache-producer and prefix-cache-scorer instead, before the automatic"
        " conversion goes"
    )
    return (Event("Warning", "DeprecatedPlugin", message),)
