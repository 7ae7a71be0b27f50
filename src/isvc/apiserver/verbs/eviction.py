"""pods/NAME/eviction: a deletion that respects disruption budgets."""

from __future__ import annotations

from dataclasses import replace

from isvc.apiserver.http.response import Response
from isvc.apiserver.objects.metadata import now
from isvc.apiserver.request import Call
from isvc.apiserver.verbs import body, delete, read, update
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.conditions import FALSE, TRUE, is_condition_true, set_condition
from isvc.kube.errors import BadRequest, InternalError, TooManyRequests
from isvc.kube.objects import Object, dig, generation_of, is_being_deleted, labels_of, name_of
from isvc.kube.selectors import LabelSelector

BUDGETS = "poddisruptionbudgets.policy"
_UNGUARDED = ("Succeeded", "Failed", "Pending")
_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."


async def evict(api: Api, call: Call) -> Response:
    eviction = body.parse(call.request, "Eviction")
    if not isinstance(eviction, dict) or (dig(eviction, "metadata", "name") or call.name) != call.name:
        raise BadRequest("name in URL does not match name in Eviction object")
    options = delete.check_options(eviction.get("deleteOptions") or {})
    call.dry_run = call.dry_run or bool(options.get("dryRun"))
    pod = read.find(api, call).parse()
    if dig(pod, "status", "phase") not in _UNGUARDED and not is_being_deleted(pod):
        await _spend(api, call, pod)
    if not call.dry_run:
        options = await _say_why(api, call, options)
    await delete.delete_object(api, replace(call, subresource=""), options)
    return Response.success(code=201)


async def _say_why(api: Api, call: Call, options: Object) -> Object:
    """Writes down that the pod is evicted, not deleted; returns the options for the revision that it has then."""
    reason = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    wanted = {"type": "DisruptionTarget", "status": TRUE, "lastProbeTime": None, **reason}

    async def say(live: Object) -> Object:
        delete.check_preconditions(call, options, live)
        set_condition(live, wanted, now())
        return live

    await update.change(api, replace(call, subresource="status"), say, tracked=True)
    preconditions = {**(options.get("preconditions") or {})}
    if preconditions.pop("resourceVersion", None):
        options = {**options, "preconditions": preconditions}
    return options


async def _spend(api: Api, call: Call, pod: Object) -> None:
    """Takes one disruption off the budget of the pod, if it has one."""
    budgets = [entry for entry in api.store.list(BUDGETS, call.namespace) if _guards(entry.parse(), pod)]
    if not budgets:
        return
    if len(budgets) > 1:
        words = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise InternalError(words)
    budget = budgets[0].parse()
    if not is_condition_true(pod, "Ready") and _may_go_unready(budget):
        return
    if call.dry_run:
        _check(budget)
        return
    description = api.registry.of_collection(BUDGETS)
    assert description is not None
    place = (call.namespace, name_of(budget), "status")
    writing = Call(call.request, description, *place, field_manager="kube-apiserver", field_validation="Ignore")

    async def spend(live: Object) -> Object:
        _check(live)
        status = live["status"]
        status["disruptionsAllowed"] -= 1
        if not status["disruptionsAllowed"]:
            exhausted = {"type": "DisruptionAllowed", "status": FALSE, "reason": "InsufficientPods", "message": ""}
            set_condition(live, {**exhausted, "observedGeneration": status["observedGeneration"]}, now())
        status["disruptedPods"] = {**(status.get("disruptedPods") or {}), call.name: now()}
        return live

    await update.change(api, writing, spend)


def _check(budget: Object) -> None:
    """Refuses where a budget does not let another pod go."""
    status = budget.get("status") or {}
    if status.get("observedGeneration", 0) < generation_of(budget):
        raise _refusal(f"The disruption budget {name_of(budget)} is still being processed by the server.", 10)
    if not status.get("disruptionsAllowed"):
        needed, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        why = f"The disruption budget {name_of(budget)} needs {needed} healthy pods and has {healthy} currently"
        if healthy > needed:
            why = f"The disruption budget {name_of(budget)} does not allow evicting pods currently"
        raise _refusal(why)


def _guards(budget: Object, pod: Object) -> bool:
    selector = dig(budget, "spec", "selector")
    return isinstance(selector, dict) and LabelSelector.from_spec(selector).matches(labels_of(pod))


def _may_go_unready(budget: Object) -> bool:
    """Returns whether a pod that is not ready may go: always, or while enough others are healthy."""
    if dig(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    return bool(status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0)


def _refusal(why: str, retry_after: int = 0) -> TooManyRequests:
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return TooManyRequests(_VIOLATED, details=details)
