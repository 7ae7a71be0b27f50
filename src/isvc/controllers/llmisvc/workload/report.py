"""Reports the workloads in a service's status: a condition for each Deployment, LeaderWorkerSet and autoscaler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from isvc.api.llm.scaling import ScalingSpec, WVASpec
from isvc.controllers.llmisvc.area import Applied
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.status import conditions
from isvc.controllers.llmisvc.status.edit import StatusEdit
from isvc.controllers.llmisvc.workload.phases import Phase, phases
from isvc.controllers.llmisvc.workload.plan import STEPS, Workload
from isvc.controllers.llmisvc.workload.waking import wakes_on_request
from isvc.kube.conditions import FALSE, find
from isvc.kube.objects import Object, dig
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS
from isvc.serving.storage.image_volumes import image_volume_problem
from isvc.serving.thirdparty import LEADER_WORKER_SETS, SCALED_OBJECTS
from isvc.serving.workload.readiness import Readiness
from isvc.serving.workload.scalers import OPERATOR, scaling_readiness
from isvc.serving.workload.sleep import sleep

_READY: Final = Readiness("True")
_SCALING: Final = (conditions.SCALING_READY, conditions.PREFILL_SCALING_READY)
_OF_STEP: Final[Mapping[str, tuple[str, ...]]] = {
    "multi node": (conditions.WORKER_WORKLOAD_READY, conditions.PREFILL_WORKER_WORKLOAD_READY),
    "single node": (conditions.MAIN_WORKLOAD_READY, conditions.PREFILL_WORKLOAD_READY),
    "scaling": _SCALING,
}
"""The conditions that are known once a step is done."""


def report(edit: StatusEdit, area: Workload, applied: Applied) -> None:
    """Marks the condition of everything that is there and clears those of what is not; what was not reached stays."""
    _report_image_volumes(edit, applied.observed)
    if applied.observed.stopped:
        for condition in conditions.WORKLOAD_CONDITIONS:
            if condition in _SCALING:
                edit.clear(condition)
            else:
                edit.mark(condition, "False", "Stopped", "Service is stopped")
        return
    done, failed = _progress(area, applied)
    verdicts = {
        condition: verdict for phase in phases(applied.observed) for condition, verdict in _of(phase, applied, edit)
    }
    for step in done:
        for condition in _OF_STEP.get(step, ()):
            if condition == failed:
                continue
            if condition in verdicts:
                edit.mark(condition, *verdicts[condition])
            else:
                edit.clear(condition)


def _report_image_volumes(edit: StatusEdit, observed: Observed) -> None:
    problem = image_volume_problem(observed.config.storage_initializer, observed.server_version)
    if problem is None:
        edit.clear(conditions.IMAGE_VOLUMES_COMPATIBLE)
    else:
        edit.mark(conditions.IMAGE_VOLUMES_COMPATIBLE, "False", *problem)


def _progress(area: Workload, applied: Applied) -> tuple[Sequence[str], str]:
    """Returns the steps that were planned and applied in full, and the condition that says why there are no more."""
    refusal = applied.outcome.refusal
    if refusal is not None and refusal.part in area.refusals:
        steps = list(STEPS)
        return steps[: steps.index(area.step_of[refusal.part])], area.refusals[refusal.part].condition
    return area.done, area.stop.condition if area.stop else ""


def _of(phase: Phase, applied: Applied, edit: StatusEdit) -> list[tuple[str, Readiness]]:
    if phase.spans_nodes:
        live = applied.live(LEADER_WORKER_SETS, phase.worker_set)
        found = [(phase.worker_set_condition, _worker_set(live))]
    else:
        live = applied.live(DEPLOYMENTS, phase.deployment)
        found = [(phase.deployment_condition, _deployment(phase.deployment, live))]
    if wakes_on_request(applied.observed):
        [(condition, _)] = found
        if state := sleep(live or {}, edit.reason(condition), applied.observed.now):
            found = [(condition, state)]
    scaling = phase.spec.scaling or ScalingSpec()
    variant = scaling.wva or WVASpec()
    if scaling.keda is not None or variant.keda is not None:
        scaled = applied.live(SCALED_OBJECTS, phase.scaled_object)
        state = scaling_readiness(scaled or {}, applied.observed.away & {OPERATOR}, applied.observed.now)
        is_lost = wakes_on_request(applied.observed) and state.status == FALSE
        found.append((phase.scaling_condition, state if is_lost else _scaled_object(scaled)))
    elif variant.hpa is not None:
        found.append((phase.scaling_condition, _hpa(applied.live(HORIZONTAL_POD_AUTOSCALERS, phase.hpa))))
    return found


def _deployment(name: str, live: Object | None) -> Readiness:
    available = find(_conditions(live), "Available")
    if available is None:
        return Readiness("False", "Progressing", f"Deployment {name} does not report yet whether it is available")
    return _READY if available.get("status") == "True" else _verdict_of(available)


def _worker_set(live: Object | None) -> Readiness:
    available = find(_conditions(live), "Available")
    if available is None:
        return Readiness("False", "Progressing", "LWS is progressing")
    return _READY if available.get("status") == "True" else _verdict_of(available)


def _hpa(live: Object | None) -> Readiness:
    """Returns that it is not ready when it cannot scale, or when the metric that it follows cannot be read."""
    counting = [each for each in _conditions(live) if each.get("type") in ("AbleToScale", "ScalingActive")]
    if not counting:
        return Readiness("False", "HPAProgressing", "HPA conditions not yet available")
    return next((_verdict_of(each) for each in counting if each.get("status") == "False"), _READY)


def _scaled_object(live: Object | None) -> Readiness:
    ready = find(_conditions(live), "Ready")
    if ready is None or not _is_initialized(live):
        return Readiness("False", "ScaledObjectProgressing", "ScaledObject conditions not yet available")
    if ready.get("status") == "False":
        return _verdict_of(ready)
    if ready.get("status") != "True":
        return Readiness("False", "ScaledObjectProgressing", "ScaledObject is not yet ready")
    return _READY


def _is_initialized(live: Object | None) -> bool:
    """Returns whether KEDA has been here: it writes all of these at once."""
    return all(find(_conditions(live), kind) for kind in ("Ready", "Active", "Fallback", "Paused"))


def _verdict_of(condition: Object) -> Readiness:
    return Readiness("False", condition.get("reason", ""), condition.get("message", ""))


def _conditions(live: Object | None) -> list[Object]:
    return dig(live, "status", "conditions") or []
