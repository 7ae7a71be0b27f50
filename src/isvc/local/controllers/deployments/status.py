"""A Deployment's status and conditions, in the words of kube-controller-manager."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from isvc.kube.conditions import condition_of, conditions_of, find
from isvc.kube.objects import Object, dig, generation_of, name_of
from isvc.kube.pods import replicas_of
from isvc.kube.timestamps import parse_timestamp, timestamp
from isvc.local.controllers.rollout import Limits, sum_status


def deployment_status(
    deployment: Object, new: Object | None, replica_sets: Sequence[Object], created: bool, now: datetime
) -> Object:
    """Returns the status now; `created` when the new ReplicaSet was just made."""
    replicas = sum_status(replica_sets, "replicas")
    available = sum_status(replica_sets, "availableReplicas")
    status: Object = {
        "observedGeneration": generation_of(deployment),
        "replicas": replicas,
        "updatedReplicas": sum_status([new] if new else [], "replicas"),
        "readyReplicas": sum_status(replica_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(replicas_of(item) for item in replica_sets) - available),
    }
    status = {key: value for key, value in status.items() if value}
    conditions = [_available(deployment, available)]
    progressing = _progressing_condition(deployment, new, status, created, now)
    if progressing:
        conditions.insert(0, progressing)
    conditions += _failures(replica_sets)
    status["conditions"] = [_stamp(each, find(conditions_of(deployment), each["type"]), now) for each in conditions]
    return status


def _available(deployment: Object, available: int) -> Object:
    if available >= Limits.of(deployment).minimum:
        return _condition("Available", True, "MinimumReplicasAvailable", "Deployment has minimum availability.")
    return _condition(
        "Available", False, "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    )


def is_complete(deployment: Object, status: Object) -> bool:
    wanted = replicas_of(deployment)
    return all(status.get(key, 0) == wanted for key in ("updatedReplicas", "replicas", "availableReplicas"))


def _progressing_condition(
    deployment: Object, new: Object | None, status: Object, created: bool, now: datetime
) -> Object | None:
    before = condition_of(deployment, "Progressing")
    if dig(deployment, "spec", "paused") and before.get("reason") != "ProgressDeadlineExceeded":
        return _condition("Progressing", None, "DeploymentPaused", "Deployment is paused")
    title = f'ReplicaSet "{name_of(new)}"' if new else f'Deployment "{name_of(deployment)}"'
    if created and new:
        return _condition("Progressing", True, "NewReplicaSetCreated", f'Created new replica set "{name_of(new)}"')
    if is_complete(deployment, status):
        return _condition("Progressing", True, "NewReplicaSetAvailable", f"{title} has successfully progressed.")
    if _has_progressed(dig(deployment, "status") or {}, status) or not before:
        renewed = _condition("Progressing", True, "ReplicaSetUpdated", f"{title} is progressing.")
        return {**renewed, "lastUpdateTime": timestamp(now)}
    if _is_overdue(deployment, before, now):
        return _condition("Progressing", False, "ProgressDeadlineExceeded", f"{title} has timed out progressing.")
    if before.get("reason") == "DeploymentPaused":
        return _condition("Progressing", None, "DeploymentResumed", "Deployment is resumed")
    if before.get("reason") == "NewReplicaSetAvailable":  # it was complete before, and has to start again
        return _condition("Progressing", True, "ReplicaSetUpdated", f"{title} is progressing.")
    return dict(before)


def _has_progressed(before: Object, after: Object) -> bool:
    def old(status: Object) -> int:
        return int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0))

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return any(after.get(key, 0) > before.get(key, 0) for key in grown) or old(after) < old(before)


def _is_overdue(deployment: Object, before: Object, now: datetime) -> bool:
    if before.get("reason") == "ProgressDeadlineExceeded":
        return True
    left = seconds_left(deployment, before, now)
    return left is not None and left <= 0


def seconds_left(deployment: Object, progressing: Object, now: datetime) -> float | None:
    """Returns the seconds until the progress deadline; None where there is nothing to wait for."""
    deadline = dig(deployment, "spec", "progressDeadlineSeconds")
    if deadline is None or not progressing.get("lastUpdateTime"):
        return None
    if progressing.get("reason") in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded", "DeploymentPaused"):
        return None
    return float(deadline - (now - parse_timestamp(progressing["lastUpdateTime"])).total_seconds())


def _failures(replica_sets: Sequence[Object]) -> list[Object]:
    for item in replica_sets:
        failure = condition_of(item, "ReplicaFailure")
        if failure.get("status") == "True":
            return [_condition("ReplicaFailure", True, failure.get("reason", ""), failure.get("message", ""))]
    return []


def _condition(kind: str, status: bool | None, reason: str, message: str) -> Object:
    text = "Unknown" if status is None else str(status)
    return {"type": kind, "status": text, "reason": reason, "message": message}


def _stamp(condition: Object, before: Object | None, now: datetime) -> Object:
    """Adds the times of a condition: a transition when the status changes, an update when the reason does."""
    moment = timestamp(now)
    if before is None:
        return {**condition, "lastUpdateTime": moment, "lastTransitionTime": moment}
    same = before["status"] == condition["status"]
    unchanged = same and all(before.get(key) == condition.get(key) for key in ("reason", "message"))
    updated = condition.get("lastUpdateTime") or (before.get("lastUpdateTime") if unchanged else moment)
    changed = before["lastTransitionTime"] if same else moment
    return {**condition, "lastUpdateTime": updated, "lastTransitionTime": changed}
