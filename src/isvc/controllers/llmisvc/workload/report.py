"""Reports the workloads in a service's status: a condition for each Deployment, LeaderWorkerSet and autoscaler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from isvc.api.llm.scaling import ScalingSpec, WVASpec
from isvc.controllers.llmisvc.area import Applied
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.status import conditions
from isvc.controllers.llmisvc.status.edit import StatusEdit
from isvc.controllers.llmisvc.workload.phases import Phase, phases
from isvc.controllers.llmisvc.workload.plan import STEPS, Workload
from isvc.kube.conditions import find
from isvc.kube.objects import Object, dig
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS
from isvc.serving.storage.image_volumes import image_volume_problem
from isvc.serving.thirdparty import LEADER_WORKER_SETS, SCALED_OBJECTS


class Verdict(NamedTuple):
    status: str
    reason: str = ""
    message: str = ""


_READY: Final = Verdict("True")
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
    verdicts = {condition: verdict for phase in phases(applied.observed) for condition, verdict in _of(phase, applied)}
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


def _of(phase: Phase, applied: Applied) -> list[tuple[str, Verdict]]:
    if phase.spans_nodes:
        live = applied.live(LEADER_WORKER_SETS, phase.worker_set)
        found = [(phase.worker_set_condition, _worker_set(live))]
    else:
        live = applied.live(DEPLOYMENTS, phase.deployment)
        found = [(phase.deployment_condition, _deployment(phase.deployment, live))]
    scaling = phase.spec.scaling or ScalingSpec()
    variant = scaling.wva or WVASpec()
    if scaling.keda is not None or variant.keda is not None:
        found.append((phase.scaling_condition, _scaled_object(applied.live(SCALED_OBJECTS, phase.scaled_object))))
    elif variant.hpa is not None:
        found.append((phase.scaling_condition, _hpa(applied.live(HORIZONTAL_POD_AUTOSCALERS, phase.hpa))))
    return found


def _deployment(name: str, live: Object | None) -> Verdict:
    available = find(_conditions(live), "Available")
    if available is None:
        return Verdict("False", "Progressing", f"Deployment {name} does not report yet whether it is available")
    return _READY if available.get("status") == "True" else _verdict_of(available)


def _worker_set(live: Object | None) -> Verdict:
    available = find(_conditions(live), "Available")
    if available is None:
        return Verdict("False", "Progressing", "LWS is progressing")
    return _READY if available.get("status") == "True" else _verdict_of(available)


def _hpa(live: Object | None) -> Verdict:
    """Returns that it is not ready when it cannot scale, or when the metric that it follows cannot be read."""
    counting = [each for each in _conditions(live) if each.get("type") in ("AbleToScale", "ScalingActive")]
    if not counting:
        return Verdict("False", "HPAProgressing", "HPA conditions not yet available")
    return next((_verdict_of(each) for each in counting if each.get("status") == "False"), _READY)


def _scaled_object(live: Object | None) -> Verdict:
    ready = find(_conditions(live), "Ready")
    if ready is None or not _is_initialized(live):
        return Verdict("False", "ScaledObjectProgressing", "ScaledObject conditions not yet available")
    if ready.get("status") == "False":
        return _verdict_of(ready)
    if ready.get("status") != "True":
        return Verdict("False", "ScaledObjectProgressing", "ScaledObject is not yet ready")
    return _READY


def _is_initialized(live: Object | None) -> bool:
    """Returns whether KEDA has been here: it writes all of these at once."""
    return all(find(_conditions(live), kind) for kind in ("Ready", "Active", "Fallback", "Paused"))


def _verdict_of(condition: Object) -> Verdict:
    return Verdict("False", condition.get("reason", ""), condition.get("message", ""))


def _conditions(live: Object | None) -> list[Object]:
    return dig(live, "status", "conditions") or []
