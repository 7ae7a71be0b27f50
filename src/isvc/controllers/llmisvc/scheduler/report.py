"""Reports the scheduler in the status of a service."""

from __future__ import annotations

from isvc.controllers.llmisvc.area import Applied, Area
from isvc.controllers.llmisvc.router.validation import reference_problem
from isvc.controllers.llmisvc.scheduler.plan import has_tokenizer, is_managed
from isvc.controllers.llmisvc.status.conditions import (
    GATEWAYS_READY,
    HTTP_ROUTES_READY,
    SCHEDULER_WORKLOAD_READY,
    TOKENIZER_READY,
)
from isvc.controllers.llmisvc.status.edit import StatusEdit
from isvc.engine.plan import Stop
from isvc.kube.conditions import condition_of
from isvc.kube.objects import Object, dig
from isvc.kube.resource import DEPLOYMENTS
from isvc.serving.llm import names

STOPPED = ("False", "Stopped", "Service is stopped")


def report(edit: StatusEdit, area: Area, applied: Applied) -> None:
    """Reports the conditions that follow from what is there now."""
    observed, name = applied.observed, applied.observed.name
    problem = area.stop or reference_problem(observed)
    if problem is not None:
        edit.mark(problem.condition, "False", problem.reason, problem.message)
    if problem is not None or applied.is_refused(area):
        _clear_unknown(edit, problem)
        return
    if observed.stopped:
        edit.mark(SCHEDULER_WORKLOAD_READY, *STOPPED)
        edit.mark(TOKENIZER_READY, *STOPPED)
        return
    _report(edit, TOKENIZER_READY, applied, names.tokenizer(name) if has_tokenizer(observed) else None)
    _report(edit, SCHEDULER_WORKLOAD_READY, applied, names.scheduler(name) if is_managed(observed) else None)


def _clear_unknown(edit: StatusEdit, problem: Stop | None) -> None:
    """What is checked after a problem is not known. Gateways are checked first, then routes, then the rest."""
    failed = problem.condition if problem else None
    if failed == GATEWAYS_READY:
        return
    edit.clear(GATEWAYS_READY)
    if failed != HTTP_ROUTES_READY:
        edit.clear(HTTP_ROUTES_READY)


def _report(edit: StatusEdit, condition: str, applied: Applied, deployment: str | None) -> None:
    if deployment is None:
        edit.clear(condition)
    elif (live := applied.live(DEPLOYMENTS, deployment)) is not None:
        edit.mark(condition, *_readiness(live))


def _readiness(deployment: Object) -> tuple[str, ...]:
    """One pod that answers is enough: others only stand by."""
    if dig(deployment, "status", "availableReplicas"):
        return ("True",)
    progressing = condition_of(deployment, "Progressing")
    if progressing.get("status") == "False" and progressing.get("reason") == "ProgressDeadlineExceeded":
        return "False", progressing["reason"], progressing.get("message", "")
    available = condition_of(deployment, "Available")
    if not available:
        return "False", "Progressing", "Deployment rollout in progress"
    if available.get("status") == "True":
        return ("True",)
    return "False", available.get("reason", ""), available.get("message", "")
