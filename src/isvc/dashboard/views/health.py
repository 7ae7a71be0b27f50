"""How an object of a service is doing."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from isvc.kube.conditions import FALSE, condition_of, conditions_of, is_condition_true
from isvc.kube.objects import Object, dig
from isvc.kube.pods import container_statuses, is_failing, replicas_of
from isvc.serving import http_routes


class Health(StrEnum):
    """The worst first. An object that has nothing to report is `present`."""

    BROKEN = "broken"
    WAITING = "waiting"
    READY = "ready"
    PRESENT = "present"


def worst(healths: Iterable[Health]) -> Health:
    order = list(Health)
    return min(healths, key=order.index, default=Health.PRESENT)


def health(obj: Object) -> Health:
    match obj.get("kind"):
        case "Pod":
            return _of_pod(obj)
        case "Deployment" | "ReplicaSet" | "StatefulSet":
            return _of_workload(obj)
        case "HTTPRoute":
            refused = http_routes.rejection(obj)
            if refused is None:
                return Health.READY
            return Health.WAITING if refused.reason == "ParentStatusNotAvailable" else Health.BROKEN
        case "HorizontalPodAutoscaler":
            return _of_autoscaler(obj)
        case _:
            return _of_conditions(obj)


def _of_pod(pod: Object) -> Health:
    phase = dig(pod, "status", "phase")
    if phase == "Succeeded" or is_condition_true(pod, "Ready"):
        return Health.READY
    ended = any(dig(each, "state", "terminated", "exitCode") for each in container_statuses(pod))
    unschedulable = condition_of(pod, "PodScheduled").get("status") == FALSE
    return Health.BROKEN if phase == "Failed" or is_failing(pod) or ended or unschedulable else Health.WAITING


def _of_workload(workload: Object) -> Health:
    status = workload.get("status") or {}
    there = status.get("availableReplicas", status.get("readyReplicas", 0))
    if there >= replicas_of(workload):
        return Health.READY
    failed = is_condition_true(workload, "ReplicaFailure")
    return Health.BROKEN if failed or condition_of(workload, "Progressing").get("status") == FALSE else Health.WAITING


def _of_autoscaler(autoscaler: Object) -> Health:
    """Counts one without metrics as waiting: it leaves the replicas as they are."""
    if condition_of(autoscaler, "AbleToScale").get("status") == FALSE:
        return Health.BROKEN
    return Health.WAITING if condition_of(autoscaler, "ScalingActive").get("status") == FALSE else Health.READY


def _of_conditions(obj: Object) -> Health:
    sources = (obj.get("status"), *(dig(obj, "status", "parents") or ()))
    found = (each for source in sources for each in conditions_of({"status": source}))
    conditions = [each for each in found if not each.get("severity")]
    if not conditions:
        return Health.PRESENT
    if any(each.get("status") == FALSE for each in conditions):
        return Health.BROKEN
    return Health.READY if all(each.get("status") != "Unknown" for each in conditions) else Health.WAITING
