"""Plans the workload of a service, step by step in the order in which its parts depend on each other.

A step that cannot be planned stops the plan there: what comes before it is applied, and what comes after is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from isvc.controllers.llmisvc.area import Area
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.status import conditions
from isvc.controllers.llmisvc.workload import scaling
from isvc.controllers.llmisvc.workload.certificate import certificate_secret, renew_in
from isvc.controllers.llmisvc.workload.disruption import disruption_budgets
from isvc.controllers.llmisvc.workload.multi_node import multi_node
from isvc.controllers.llmisvc.workload.phases import phases
from isvc.controllers.llmisvc.workload.service import workload_service
from isvc.controllers.llmisvc.workload.single_node import single_node
from isvc.controllers.llmisvc.workload.steps import Wanted
from isvc.controllers.llmisvc.workload.storage import ignores_arguments
from isvc.engine.events import Event
from isvc.engine.plan import Answer, Part, Stop, Want
from isvc.kube.objects import name_of
from isvc.kube.resource import (
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    POD_DISRUPTION_BUDGETS,
    RESOURCE_CLAIM_TEMPLATES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from isvc.serving.llm import names
from isvc.serving.refused import Refused
from isvc.serving.storage.ca_bundle import ca_bundle_copy
from isvc.serving.thirdparty import LEADER_WORKER_SETS, SCALED_OBJECTS

AREA: Final = "workload"
_MADE: Final = (
    names.deployment,
    names.prefill_deployment,
    names.worker_set,
    names.prefill_worker_set,
    names.role,
    names.role_binding,
    names.worker_role,
    names.worker_role_binding,
)
"""Names of workloads, their accounts and roles, in kinds of which other areas have objects, too."""


class Step(NamedTuple):
    """One step: what it wants, and which condition turns False for what reason when that cannot be had."""

    build: Callable[[Observed], Iterator[Wanted]]
    condition: str
    reason: str


@dataclass(frozen=True, slots=True)
class Workload(Area):
    """`done` are the steps that are planned in full, `step_of` names the step of every part."""

    done: tuple[str, ...] = ()
    step_of: Mapping[str, str] = field(default_factory=dict)


def plan(observed: Observed) -> Workload:
    if observed.stopped:
        return Workload()
    parts, refusals, done = list[Part](), dict[str, Stop](), list[str]()
    step_of: dict[str, str] = {}
    stop: Stop | None = None
    for name, step in STEPS.items():
        if stop is None:
            try:
                for child, context in step.build(observed):
                    part = f"{child.resource.kind} {name_of(child.manifest)}"
                    parts.append(Part(part, Want((child,))))
                    refusals[part] = Stop(AREA, step.condition, step.reason, context)
                    step_of[part] = name
                done.append(name)
            except Refused as error:
                stop = Stop(AREA, step.condition, error.reason or step.reason, error.message)
        parts += _surplus(name, observed.name, stop.hold if stop else Want(()))
    events, again = _events(observed, stop), _again(observed, parts)
    return Workload(tuple(parts), stop, events, refusals, again, tuple(done), step_of)


def _surplus(step: str, service: str, answer: Answer) -> Iterator[Part]:
    """Prunes what a service's workloads may once have been made of, as soon as all that replaces it is there."""
    if step == "single node":
        yield Part("other workloads", answer, frozenset({LEADER_WORKER_SETS, RESOURCE_CLAIM_TEMPLATES}))
        shared = frozenset({DEPLOYMENTS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS})
        yield Part("other workloads' parts", answer, shared, frozenset(made(service) for made in _MADE))
    elif step == "scaling":
        yield Part("other autoscalers", answer, frozenset({HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS}))
    elif step == "disruption":
        yield Part("other budgets", answer, frozenset({POD_DISRUPTION_BUDGETS}))


def _ca_bundle(observed: Observed) -> Iterator[Wanted]:
    if name := observed.config.storage_initializer.ca_bundle_config_map_name:
        yield Wanted(ca_bundle_copy(name, observed.ca_bundle, observed.namespace, observed.system_namespace))


def _certificate(observed: Observed) -> Iterator[Wanted]:
    yield Wanted(certificate_secret(observed), "failed to reconcile self-signed TLS certificate")


def _service(observed: Observed) -> Iterator[Wanted]:
    yield Wanted(workload_service(observed))


def _events(observed: Observed, stop: Stop | None) -> tuple[Event, ...]:
    events = []
    if stop is not None and stop.reason == scaling.NO_KEDA:
        events.append(Event("Warning", stop.reason, f"Required scaling CRD not installed: {stop.message}"))
    templates = (template for phase in phases(observed) for template in (phase.template, phase.worker) if template)
    if any(ignores_arguments(observed, template) for template in templates):
        ignored = "User-specified Args/Command on storage-initializer were overridden by controller"
        events.append(Event("Warning", "StorageInitializerOverride", ignored))
    return tuple(events)


def _again(observed: Observed, parts: list[Part]) -> float | None:
    """Returns when the certificate is to be renewed."""
    wanted = (child for part in parts if isinstance(part.answer, Want) for child in part.answer.children)
    return next((renew_in(observed, child) for child in wanted if child.resource == SECRETS), None)


STEPS: Final[dict[str, Step]] = {
    "ca bundle": Step(_ca_bundle, conditions.MAIN_WORKLOAD_READY, "ReconcileCABundleError"),
    "certificate": Step(_certificate, conditions.MAIN_WORKLOAD_READY, "ReconcileCertsError"),
    "multi node": Step(multi_node, conditions.WORKER_WORKLOAD_READY, "ReconcileMultiNodeWorkloadError"),
    "single node": Step(single_node, conditions.MAIN_WORKLOAD_READY, "ReconcileSingleNodeWorkloadError"),
    "service": Step(_service, conditions.MAIN_WORKLOAD_READY, "ReconcileWorkloadServiceError"),
    "scaling": Step(scaling.autoscalers, conditions.MAIN_WORKLOAD_READY, "ReconcileScalingError"),
    "disruption": Step(disruption_budgets, conditions.MAIN_WORKLOAD_READY, "ReconcileDisruptionBudgetError"),
}
