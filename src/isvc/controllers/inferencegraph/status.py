"""The status of a graph: what its Knative Service or its Deployment reports, and whether it was stopped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isvc.api.annotations import is_stopped
from isvc.api.modes import DeploymentMode
from isvc.api.resources import INFERENCE_GRAPHS
from isvc.controllers.inferencegraph.observe import Observed
from isvc.controllers.inferencegraph.plan import INVALID, KNATIVE_MISSING, SERVICE_NOT_READY
from isvc.engine.events import WARNING, Event, readiness_events
from isvc.engine.kind import Folded
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Plan, Stop
from isvc.kube import conditions
from isvc.kube.conditions import ConditionSet, stamp
from isvc.kube.objects import Object, dig, generation_of, name_of
from isvc.kube.readiness import READY, is_observed
from isvc.kube.resource import DEPLOYMENTS
from isvc.serving import explanations, shared_host
from isvc.serving.explanations import Explanation, with_explanations
from isvc.serving.thirdparty import KNATIVE_SERVICES

CONDITIONS: Final = ConditionSet(())
STOPPED: Final = "Stopped"
LOOK_FOR_KNATIVE: Final = 5.0  # no watch reports that it was installed
LOOK_FOR_LLM: Final = 15.0  # nor that an LLMInferenceService is there, or has another address
REFUSED: Final = "ReconcileFailed"
_KIND: Final = INFERENCE_GRAPHS.kind
_NOT_OF_THE_WORKLOAD: Final = frozenset({SERVICE_NOT_READY, KNATIVE_MISSING, INVALID, REFUSED, "InternalError"})
"""Reasons that say nothing of a workload, and are withdrawn when they no longer hold."""


def fold(observed: Observed, planned: Plan, outcome: Outcome) -> Folded:
    """Returns the status that follows from what was observed and done.

    Every condition that is not True has a reason.
    """
    if planned.stop is None:
        refusal = outcome.refusal
        events = (Event(WARNING, "InternalError", refusal.result.message),) if refusal else ()
        status = _with_shared_host(_fold_status(observed, outcome), observed)
        if refusal is not None:
            status = _with_refusal(status, refusal.result.message, observed)
        return Folded(_with_explanations(status, observed.raw), events, _again(observed))
    stop, status = planned.stop, waiting(observed.raw, planned.stop, observed.now)
    if stop.reason == KNATIVE_MISSING:
        return Folded(status, (Event(WARNING, stop.reason, stop.message),), LOOK_FOR_KNATIVE)
    return Folded(status, again=LOOK_FOR_LLM if stop.reason == SERVICE_NOT_READY else None)


def _again(observed: Observed) -> float | None:
    """Returns when to look at what no watch reports."""
    if observed.leads_to_llms and not is_stopped(observed.raw):
        return LOOK_FOR_LLM
    return None if observed.host_conflict is None else shared_host.LOOK_FOR_MOVE


def _with_shared_host(status: Object, observed: Observed) -> Object:
    """Warns where an older service or graph has the same host; it affects no readiness."""
    others = [each for each in status.get("conditions") or () if each["type"] != shared_host.CONDITION]
    if observed.host_conflict is None or not status.get("url"):
        return {**status, "conditions": others} if others else status
    warning = {
        "type": shared_host.CONDITION,
        "status": conditions.FALSE,
        "severity": conditions.INFO,
        "reason": shared_host.REASON,
        "message": observed.host_conflict,
    }
    return {**status, "conditions": [*others, *_with_times([warning], observed.status, observed.now)]}


def _with_refusal(status: Object, message: str, observed: Observed) -> Object:
    """Says what the API server did not allow; whatever ran before runs on."""
    ready = {"type": READY, "status": conditions.FALSE, "reason": REFUSED, "message": message}
    others = [each for each in status.get("conditions") or [_not_stopped()] if each["type"] != READY]
    stamped = _with_times([ready, *others], observed.status, observed.now)
    return {**status, "conditions": stamped, "observedGeneration": observed.generation}


def report_readiness(graph: Object, before: Object, after: Object) -> Iterable[Event]:
    unready = (conditions.FALSE, conditions.UNKNOWN)
    return readiness_events(_KIND, name_of(graph), before, after, not_ready=unready)


def waiting(graph: Object, stop: Stop, now: str) -> Object:
    """Returns what a graph that never ran waits for; one that runs goes on, and so does what its workload reports."""
    before: Object = graph.get("status") or {}
    reported = conditions.find(before.get("conditions") or [], READY)
    if reported is not None and reported.get("reason") not in {STOPPED, *_NOT_OF_THE_WORKLOAD}:
        return before
    ready: Object = {"type": READY, "status": conditions.FALSE, "reason": stop.reason, "message": stop.message}
    after = {**before, "conditions": _with_times([ready, _not_stopped()], before, now)}
    return _with_explanations({**after, "observedGeneration": generation_of(graph)}, graph)


def _with_explanations(status: Object, graph: Object) -> Object:
    if not status.get("conditions"):
        return status
    explained = with_explanations(status["conditions"], lambda each: _explain(each, name_of(graph)))
    return {**status, "conditions": explained}


def _fold_status(observed: Observed, outcome: Outcome) -> Object:
    """While a workload reports on an earlier spec, so does the graph."""
    before, now = observed.status, observed.now
    if is_stopped(observed.raw):
        return {**stopped_status(before, now), "observedGeneration": observed.generation}
    is_standard = observed.mode is DeploymentMode.STANDARD
    workload = outcome.live(DEPLOYMENTS if is_standard else KNATIVE_SERVICES, observed.name)
    after = with_deployment(before, workload, observed.url, now) if is_standard else with_knative(before, workload, now)
    is_current = workload is not None and is_observed(workload) and after.get("conditions")
    return {**after, "observedGeneration": observed.generation} if is_current else after


def _explain(condition: Object, name: str) -> Explanation:
    if condition["type"] == STOPPED:
        return explanations.running(_KIND, name)
    if condition.get("reason") == STOPPED:
        return explanations.stopped(_KIND, name)
    message = (
        f"the workload {name} of the graph's router does not say why it is not {condition['type']}; look at its pods"
    )
    return Explanation("WaitingForRouter", message)


def stopped_status(before: Object, now: str) -> Object:
    """Nothing runs: no URL, not ready, and the reason why."""
    after = {key: value for key, value in before.items() if key != "url"}
    wanted = [
        {"type": READY, "status": conditions.FALSE, "reason": STOPPED},
        {"type": STOPPED, "status": conditions.TRUE},
    ]
    return {**after, "conditions": _with_times(wanted, before, now)}


def with_knative(before: Object, service: Object | None, now: str) -> Object:
    """Returns the Knative Service's own conditions; the URL follows its readiness and stays while it says nothing."""
    reported = dig(service or {}, "status", "conditions") or []
    after = {**before, "conditions": _with_times([*reported, _not_stopped()], before, now)}
    ready = conditions.find(reported, READY)
    if ready is not None:
        after.pop("url", None)
        url = dig(service or {}, "status", "url")
        if ready.get("status") == conditions.TRUE and url:
            after["url"] = url
    return after


def with_deployment(before: Object, deployment: Object | None, url: str, now: str) -> Object:
    """Ready while the Deployment is available; as long as it says nothing, so does the graph."""
    available = conditions.condition_of(deployment or {}, "Available")
    if not available:
        return _no_longer_waiting(before)
    if available.get("status") == conditions.TRUE:
        ready: Object = {"type": READY, "status": conditions.TRUE}
        after = {**before, "url": url}
    else:
        words = {field: available[field] for field in ("reason", "message") if available.get(field)}
        ready = {"type": READY, "status": conditions.FALSE, **words}
        after = {key: value for key, value in before.items() if key != "url"}
    return {**after, "conditions": _with_times([ready, _not_stopped()], before, now)}


def _no_longer_waiting(before: Object) -> Object:
    old = before.get("conditions") or []
    kept = [condition for condition in old if condition.get("reason") not in _NOT_OF_THE_WORKLOAD]
    others = {key: value for key, value in before.items() if key != "conditions"}
    return {**others, "conditions": kept} if kept else others


def _not_stopped() -> Object:
    return {"type": STOPPED, "status": conditions.FALSE}


def _with_times(wanted: list[Object], before: Object, now: str) -> list[Object]:
    """Returns the conditions with the time of their last transition, which the workload's own bring along."""
    old = before.get("conditions") or []
    return [each if each.get("lastTransitionTime") else stamp(each, old, now) for each in wanted]
