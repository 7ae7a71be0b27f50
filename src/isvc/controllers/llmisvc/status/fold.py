"""Folds what was observed, planned and applied into the status of a service, and says when to look again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from isvc.api.llm.workload import WorkloadSpec
from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc import router, scheduler, workload
from isvc.controllers.llmisvc.area import Applied
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.plan import Planned
from isvc.controllers.llmisvc.status import conditions as c
from isvc.controllers.llmisvc.status.edit import StatusEdit
from isvc.engine.events import WARNING, Event, failing, readiness_events
from isvc.engine.kind import Folded
from isvc.engine.outcome import Outcome, Refusal, Taken
from isvc.engine.plan import Stop
from isvc.kube.conditions import FALSE, UNKNOWN
from isvc.kube.objects import Object, dig, name_of
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, POD_DISRUPTION_BUDGETS, SECRETS, Resource
from isvc.kube.timestamps import seconds_between
from isvc.serving.llm import names
from isvc.serving.thirdparty import LEADER_WORKER_SETS
from isvc.serving.workload.scalers import NOT_LOOKED_AT
from isvc.serving.workload.sleep import ASLEEP, LOOK_AGAIN, WAKING

FIRST_RETRY: Final = 2.0  # for what may appear without a watch that reports it; later retries are further apart
LAST_RETRY: Final = 60.0
AFTER_FAILED_CHECK: Final = 5.0
REREAD: Final = 300.0  # no watch reports an edit of a ConfigMap without our label
_SEEN_BY_LABEL: Final = (DEPLOYMENTS, SECRETS, HORIZONTAL_POD_AUTOSCALERS, POD_DISRUPTION_BUDGETS)
"""Kinds of which only objects with our label are watched: somebody else's shows when ours is created."""


def fold(observed: Observed, planned: Planned, outcome: Outcome) -> Folded:
    edit, combination = StatusEdit(observed.status, observed.now), observed.combination
    edit.conditions.initialize()
    edit.fields["annotations"] = dict(observed.pins)
    edit.fields["observedGeneration"] = observed.generation
    if combination.applied is not None:
        edit.fields["appliedConfigs"] = [each.report() for each in combination.applied]
    edit.mark(c.PRESETS_COMBINED, combination.status, combination.reason, combination.message)
    stop = find_stop(planned, observed, outcome)
    if combination.is_planned:
        _fold_areas(edit, planned, Applied(observed, outcome), stop)
    warnings = tuple(event for area in planned.areas for event in area.events)
    if combination.status == UNKNOWN:
        return Folded(edit.result(), warnings, AFTER_FAILED_CHECK)
    if stop is not None:
        failure = Event(WARNING, "Error", f"Reconciliation failed: {stop.message}")
        return Folded(edit.result(), (*warnings, failure), _retry(edit, observed.now))
    later = [area.again for area in planned.areas if area.again is not None]
    if observed.is_reread:
        later.append(REREAD)
    reasons = {edit.reason(condition) for condition in (c.READY, c.SCALING_READY)}
    if reasons & {WAKING.reason, NOT_LOOKED_AT}:
        later.append(LOOK_AGAIN)
    return Folded(edit.result(), warnings, min(later, default=None))


def report_readiness(service: Object, before: Object, after: Object) -> Iterable[Event]:
    because = [condition for condition in failing(after) if condition != c.READY]
    return readiness_events(LLM_INFERENCE_SERVICES.kind, name_of(service), before, after, because=because)


def find_stop(planned: Planned, observed: Observed, outcome: Outcome) -> Stop | None:
    """Returns why there is not all that was wanted: the API server refused a child, or planning stopped."""
    refusal = outcome.refusal
    if refusal is None:
        return planned.stop
    on = next(area.refusals[refusal.part] for area in planned.areas if refusal.part in area.refusals)
    message = _refusal(observed, refusal)
    return replace(on, message=f"{on.message}: {message}" if on.message else message)


def _fold_areas(edit: StatusEdit, planned: Planned, applied: Applied, stop: Stop | None) -> None:
    """Each area reports what it knows; of those after one that was refused nothing is known."""
    if stop is not None:
        edit.mark(stop.condition, FALSE, stop.reason, stop.message)
    servers, picker, entrance = planned.workload, planned.scheduler, planned.router
    is_deployed = servers is not None and servers.stop is None and not applied.is_refused(servers)
    if servers is not None:
        workload.report(edit, servers, applied)
    if picker is not None and is_deployed:
        scheduler.report(edit, picker, applied)
        if entrance is not None and not applied.is_refused(picker):
            router.report(edit, entrance, applied)
    edit.sum_up(c.WORKLOADS_READY, c.WORKLOAD_CONDITIONS)
    if is_deployed:
        edit.sum_up(c.ROUTER_READY, c.ROUTER_CONDITIONS)
    if stop is None:
        edit.fields["workloads"] = _workloads(applied)
    given = {edit.reason(condition) for condition in c.WORKLOAD_CONDITIONS}
    for state in (ASLEEP, WAKING):
        if edit.is_true(c.READY) and state.reason in given:
            edit.conditions.set(c.READY, *state)


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


def _retry(edit: StatusEdit, now: str) -> float:
    """Returns the seconds until a service that lacks something is looked at again: ever more of them."""
    since = (edit.conditions.get(c.READY) or {}).get("lastTransitionTime")
    age = seconds_between(since, now) if since else 0.0
    return min(max(age / 20, FIRST_RETRY), LAST_RETRY)


def _workloads(applied: Applied) -> Object:
    observed = applied.observed
    spec, service = observed.spec, observed.name
    if observed.stopped:
        return {}
    status = {"primary": _workload(applied, spec, names.deployment(service), names.worker_set(service))}
    if (prefill := spec.prefill) is not None:
        deployment, worker_set = names.prefill_deployment(service), names.prefill_worker_set(service)
        status["prefill"] = _workload(applied, prefill, deployment, worker_set)
    status["service"] = {"kind": "Service", "name": names.workload_service(service)}
    scheduler = observed.scheduler
    if scheduler is not None and not scheduler.users_pool and scheduler.template is not None:
        status["scheduler"] = _workload_status(applied, DEPLOYMENTS, names.scheduler(service))
    return status


def _workload(applied: Applied, spec: WorkloadSpec, deployment: str, worker_set: str) -> Object:
    if spec.worker is not None:
        return _workload_status(applied, LEADER_WORKER_SETS, worker_set)
    return _workload_status(applied, DEPLOYMENTS, deployment)


def _workload_status(applied: Applied, resource: Resource, name: str) -> Object:
    count = "availableReplicas" if resource == DEPLOYMENTS else "readyReplicas"
    ready = dig(applied.live(resource, name) or {}, "status", count) or 0
    return {"apiGroup": resource.group, "kind": resource.kind, "name": name, "readyReplicas": ready}
