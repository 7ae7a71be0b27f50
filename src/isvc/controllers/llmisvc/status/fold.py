"""Folds what was observed, planned and applied into the status of a service."""

from __future__ import annotations

from typing import Final, NamedTuple

from isvc.controllers.llmisvc import router, scheduler, workload
from isvc.controllers.llmisvc.observed import AppliedConfig, Merged, Observed
from isvc.controllers.llmisvc.planned import Applied, OnRefusal, Planned, Stop
from isvc.controllers.llmisvc.status import conditions as c
from isvc.controllers.llmisvc.status.edit import StatusEdit
from isvc.controllers.llmisvc.status.workloads import workloads
from isvc.engine.outcome import Outcome, Refusal, Taken
from isvc.kube.objects import Object, dig
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, SECRETS

REPORTS: Final = {"workload": workload.report, "scheduler": scheduler.report, "router": router.report}
OTHERWISE: Final = {
    "workload": (c.MAIN_WORKLOAD_READY, "ReconcileWorkloadError"),
    "scheduler": (c.SCHEDULER_WORKLOAD_READY, "SchedulerReconcileError"),
    "router": (c.HTTP_ROUTES_READY, "HTTPRouteReconcileError"),
}
"""What a refused child turns False where its area says nothing of its own."""


_SEEN_BY_LABEL: Final = (DEPLOYMENTS, SECRETS, HORIZONTAL_POD_AUTOSCALERS)
"""Kinds of which only objects with our label are watched: somebody else's shows when ours is created."""


def begun(raw: Object, now: str, annotations: dict[str, str]) -> StatusEdit:
    """The status to start from: with every condition there, and the names of presets pinned."""
    edit = StatusEdit(raw.get("status") or {}, now)
    edit.conditions.initialize()
    edit.fields["annotations"] = annotations
    edit.fields["observedGeneration"] = int(dig(raw, "metadata", "generation") or 0)
    return edit


def fold(edit: StatusEdit, observed: Observed, planned: Planned, outcome: Outcome) -> StatusEdit:
    applied = Applied(observed, outcome)
    halt = halted(planned, observed, outcome)
    for name, area in planned.areas.items():
        is_halted = halt is not None and halt.area == name
        if halt is not None and is_halted:
            edit.mark(halt.stop.condition, "False", halt.stop.reason, halt.stop.message)
        REPORTS[name](edit, area, applied)
        if is_halted:
            break
    edit.sum_up(c.WORKLOADS_READY, c.WORKLOAD_CONDITIONS)
    if halt is None or halt.area != "workload":
        edit.sum_up(c.ROUTER_READY, c.ROUTER_CONDITIONS)
    if halt is None:
        edit.fields["workloads"] = workloads(applied)
    return edit


# -- presets --------------------------------------------------------------------------------------------------------


def combined(edit: StatusEdit, merged: Merged) -> None:
    edit.fields["appliedConfigs"] = references(merged.applied)
    edit.mark(c.PRESETS_COMBINED, "True")


def references(applied: tuple[AppliedConfig, ...]) -> list[Object]:
    return [{"name": each.name, "namespace": each.namespace, "source": each.source} for each in applied]


# -- where it came to a halt ----------------------------------------------------------------------------------------


class Halt(NamedTuple):
    area: str
    stop: Stop


def halted(planned: Planned, observed: Observed, outcome: Outcome) -> Halt | None:
    """Why there is not all that was wanted: the API server refused a child, or planning stopped."""
    if outcome.refusal is not None:
        return _refused(planned, observed, outcome.refusal)
    return next((Halt(name, area.stop) for name, area in planned.areas.items() if area.stop), None)


def _refused(planned: Planned, observed: Observed, refusal: Refusal) -> Halt:
    message = _refusal(observed, refusal)
    for name, area in planned.areas.items():
        if any(part.name == refusal.part for part in area.parts):
            on = area.refusals.get(refusal.part) or OnRefusal(*OTHERWISE[name])
            return Halt(name, Stop(on.condition, on.reason, f"{on.context}: {message}" if on.context else message))
    raise AssertionError(f"no area has a part {refusal.part}")


def _refusal(observed: Observed, refusal: Refusal) -> str:
    resource, name, _ = refusal.child
    child = f"{resource.version}.{resource.kind} {observed.namespace}/{name}"
    if isinstance(refusal.result, Taken):
        if resource in _SEEN_BY_LABEL:
            return f'failed to create {child}: {resource} "{name}" already exists'
        owner = f"v1alpha2.LLMInferenceService {observed.namespace}/{observed.name}"
        return f"failed to update {child}: it is not controlled by {owner}"
    existed = (resource, name) in observed.live
    verb = "failed to get defaults for" if existed else "failed to create"
    return f"{verb} {child}: {refusal.result.message}"
