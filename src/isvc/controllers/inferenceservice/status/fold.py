"""The status that follows from what was observed, planned and done. Total: every path ends in a status.

Each step writes what it knows and leaves the rest as it was. A step that looks at what others wrote comes after them,
so that one write says what several reconciles would say in turn: the model, which is loaded when the service is ready,
comes last.
"""

from __future__ import annotations

from typing import Final

from isvc.api.modes import DeploymentMode
from isvc.controllers.inferenceservice.builders import Builders, builders_of
from isvc.controllers.inferenceservice.observed import Live, Observed
from isvc.controllers.inferenceservice.planned import (
    CANARY,
    INGRESS,
    SHARED,
    Planned,
    ServiceStop,
    silent_stop,
    stop_at,
)
from isvc.controllers.inferenceservice.status import model
from isvc.controllers.inferenceservice.status.edit import (
    CANARY_READY,
    INGRESS_READY,
    PREDICTOR_READY,
    READY,
    READY_OF,
    STOPPED,
    StatusEdit,
)
from isvc.controllers.inferenceservice.status.explanations import Situation, with_explanations, without_explanations
from isvc.engine.outcome import Outcome, Taken
from isvc.kube.conditions import FALSE, TRUE
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.serving import names, shared_host
from isvc.serving.storage.image_volumes import CONDITION, image_volume_problem
from isvc.serving.workload.sleep import ASLEEP, WAKING

_COMPONENTS: Final = (names.PREDICTOR, names.TRANSFORMER, names.EXPLAINER)


def find_stop(planned: Planned, outcome: Outcome) -> ServiceStop | None:
    """Returns where the reconcile came to a halt: at a child that was refused, or already in planning."""
    if outcome.refusal is None:
        return planned.stop
    part, refusal = outcome.refusal.part, outcome.refusal.result.message
    message = f"fails to reconcile {part}: {refusal}"
    if part.startswith(f"{CANARY} "):  # its name follows
        return silent_stop(CANARY, f"fails to reconcile canary deployments: {message}")
    return stop_at(part, message) if part in READY_OF else silent_stop(part, message)


def fold_status(observed: Observed, planned: Planned, outcome: Outcome) -> Object:
    builders = builders_of(observed)
    if builders is None or observed.is_foreign:
        return _report_mode(observed, planned.stop)
    stop, live = find_stop(planned, outcome), {**observed.live, **_live(outcome)}
    edit = StatusEdit(without_explanations(observed.status), observed.now)
    edit.initialize()
    _report_image_volumes(edit, observed)
    _report_shared_host(edit, observed)
    reached = _components_before(stop)
    stopped = [kind for kind in reached if _is_stopped(kind, observed)]
    for kind in stopped:  # first, because it may reset the status
        _stop_component(edit, kind)
    if stop is None or stop.part != SHARED:
        _runtime(edit, planned)
        if stop is None or (stop.part != CANARY and names.PREDICTOR in planned.deployed):
            _canaries(edit, observed, planned)
    for kind in reached:
        if kind not in stopped:
            _component(edit, kind, observed, planned, builders, live)
    if reached == _COMPONENTS:
        _mark_stopped(edit, stopped=observed.stopped)
        _ingress(edit, observed, planned, outcome, builders, stop)
    predictor = planned.deployed.get(names.PREDICTOR)
    if predictor is not None and reached and not observed.stopped:
        builders.workload.report_model(edit, predictor, observed.pods, live)
    if stop is not None and stop.part != SHARED and reached != _COMPONENTS:
        _halt(edit, stop)
    _tell_sleep(edit)
    edit.fields |= {"deploymentMode": observed.mode.value, "observedGeneration": observed.generation}
    return with_explanations(edit.result(), Situation(observed, planned, stop))


def _tell_sleep(edit: StatusEdit) -> None:
    """A service that is ready says so itself when a component of it sleeps, or rather when one wakes."""
    for state in (ASLEEP, WAKING):
        found = [kind for kind in _COMPONENTS if edit.reason(READY_OF[kind]) == state.reason]
        if found and edit.is_true(READY):
            edit.conditions.set(READY, TRUE, state.reason, f"{state.message}: {', '.join(found)}")


def _report_mode(observed: Observed, stop: ServiceStop | None) -> Object:
    """Returns the status of a service that is not ours to deploy, or cannot be: its mode, and why."""
    edit = StatusEdit(without_explanations(observed.status), observed.now)
    edit.initialize()
    edit.fields |= {"deploymentMode": observed.mode.value, "observedGeneration": observed.generation}
    return with_explanations(edit.result(), Situation(observed, stop=stop))


def _report_image_volumes(edit: StatusEdit, observed: Observed) -> None:
    """Warns where models come as image volumes and this Kubernetes may not mount them; it affects no readiness."""
    problem = image_volume_problem(observed.config.storage_initializer, observed.server_version)
    if problem is None:
        edit.conditions.clear(CONDITION)
    else:
        edit.conditions.mark_false(CONDITION, *problem)


def _report_shared_host(edit: StatusEdit, observed: Observed) -> None:
    """Warns where an older service or graph has the same host; it affects no readiness."""
    if observed.host_conflict is None or observed.stopped:
        edit.conditions.clear(shared_host.CONDITION)
    else:
        edit.conditions.mark_false(shared_host.CONDITION, shared_host.REASON, observed.host_conflict)


def _components_before(stop: ServiceStop | None) -> tuple[str, ...]:
    """Returns the components before the one at which things stopped."""
    match stop.part if stop else None:
        case "shared" | "predictor" | "canary":
            return ()
        case "transformer":
            return _COMPONENTS[:1]
        case "explainer":
            return _COMPONENTS[:2]
    return _COMPONENTS


def _is_stopped(kind: str, observed: Observed) -> bool:
    return observed.stopped and getattr(observed.service.spec, kind) is not None and not _is_foreign(kind, observed)


def _is_foreign(kind: str, observed: Observed) -> bool:
    """Returns whether ModelMesh's own controller reports on the component."""
    return kind == names.PREDICTOR and observed.mode is DeploymentMode.MODEL_MESH


def _component(
    edit: StatusEdit, kind: str, observed: Observed, planned: Planned, builders: Builders, live: Live
) -> None:
    if (deployed := planned.deployed.get(kind)) is not None:
        builders.workload.report(edit, observed, deployed, live)
    elif not _is_foreign(kind, observed):
        edit.forget_component(kind)


def _ingress(
    edit: StatusEdit,
    observed: Observed,
    planned: Planned,
    outcome: Outcome,
    builders: Builders,
    stop: ServiceStop | None,
) -> None:
    in_the_way = stop is not None and stop.part == INGRESS and _is_taken(outcome)
    if (stop is None or in_the_way) and not observed.stopped:
        builders.workload.summarize(edit, observed, planned)
    if stop is None:
        builders.ingress.fold(edit, observed, planned, outcome)
    elif in_the_way:
        edit.mark(INGRESS_READY, FALSE, "ReconcileFailed", stop.message)


def _is_taken(outcome: Outcome) -> bool:
    """Returns whether somebody else's object has the name of a child; nobody but the user can resolve that."""
    return outcome.refusal is not None and isinstance(outcome.refusal.result, Taken)


def _live(outcome: Outcome) -> dict[tuple[Resource, str], Object]:
    """Returns the children as they are after applying; of a deleted one nothing is left."""
    return {(key.resource, key.name): outcome.live(key.resource, key.name) or {} for key in outcome.results}


def _runtime(edit: StatusEdit, planned: Planned) -> None:
    if planned.runtime is not None:
        cluster = planned.runtime.cluster
        edit.fields["clusterServingRuntimeName"] = planned.runtime.name if cluster else ""
        edit.fields["servingRuntimeName"] = "" if cluster else planned.runtime.name


def _halt(edit: StatusEdit, stop: ServiceStop) -> None:
    if stop.failure:
        model.refuse(edit, *stop.failure)
    if not stop.is_silent:
        edit.fail_component(stop.part, stop.reason, stop.message)


def _canaries(edit: StatusEdit, observed: Observed, planned: Planned) -> None:
    if not planned.canaries:
        edit.fields.pop("canaryStatuses", None)
        edit.conditions.clear(CANARY_READY)
        return
    edit.fields["canaryStatuses"] = [
        {
            "name": canary.name,
            "ready": canary.ready,
            "trafficPercent": canary.percent,
            "modelStatus": {"transitionStatus": ""},
        }
        for canary in planned.canaries
    ]
    if observed.stopped:
        edit.conditions.mark_false(CANARY_READY, STOPPED)
    elif all(canary.ready for canary in planned.canaries):
        edit.conditions.mark_true(CANARY_READY, "AllCanariesReady")
    else:
        edit.conditions.mark_false(CANARY_READY, "CanariesNotReady")


def _stop_component(edit: StatusEdit, kind: str) -> None:
    """A stopped predictor takes the whole status with it, once."""
    condition = edit.conditions.get(READY_OF[kind])
    if condition is not None and (condition.get("status"), condition.get("reason")) == ("False", STOPPED):
        return
    if READY_OF[kind] == PREDICTOR_READY:
        edit.reset("deploymentMode")
    edit.mark_component(kind, "False", STOPPED)


def _mark_stopped(edit: StatusEdit, *, stopped: bool) -> None:
    if stopped:
        edit.conditions.mark_true(STOPPED)
    else:
        edit.conditions.mark_false(STOPPED)
