"""What is said of a workload that has no pods until somebody asks it: asleep and waking are ready, too.

Whoever waits for such a service has nothing to mend, and requests wait for its pod. Only a pod that does not come up
within the time that a rollout has is a failure. Kubernetes does not tell: it stops watching the progress of a
Deployment when its rollout is complete, and so the time since its pods are missed is what counts.
"""

from __future__ import annotations

from typing import Final

from isvc.kube.conditions import FALSE, TRUE, condition_of, is_condition_true
from isvc.kube.objects import Object, dig
from isvc.kube.readiness import readiness
from isvc.kube.timestamps import seconds_between
from isvc.serving.workload.http_metric import COLD_START_SECONDS
from isvc.serving.workload.readiness import AVAILABLE, REPLICA_FAILURE, Readiness

ASLEEP: Final = Readiness(TRUE, "Asleep", "asleep, wakes on a request")
WAKING: Final = Readiness(TRUE, "Waking", "waking up: requests wait for the first pod")
SCALING_UP: Final = Readiness(TRUE, "ScalingUp", "a pod answers, and more of them start")
LOOK_AGAIN: Final = 30.0
"""Seconds until a look at who wakes: nothing changes when its time is over."""


def is_waking(service: Object) -> bool:
    """Returns whether a service says that it is on its way out of a sleep."""
    return readiness(service).get("reason") == WAKING.reason


def left_asleep(workload: Object | None, scaled: Object | None) -> bool:
    """Returns whether KEDA took the last pod of a workload, which nobody brings back once its ScaledObject goes.

    Neither an HPA nor Kubernetes itself starts from zero.
    """
    return scaled is not None and dig(workload, "spec", "replicas") == 0


def sleep(workload: Object, before: str, now: str) -> Readiness | None:
    """Returns what is said of a Deployment or LeaderWorkerSet that may sleep; None where its own conditions say it.

    `before` is the reason that was last given for its state: who was awake and lost its pods is not waking. One with a
    pod is ready: Kubernetes calls it unavailable while a second one starts, which requests bring about every day.
    """
    if dig(workload, "spec", "replicas") == 0:
        return ASLEEP
    if is_condition_true(workload, REPLICA_FAILURE):
        return None
    if _has_pods(workload):
        is_missed = not is_condition_true(workload, AVAILABLE)
        return SCALING_UP if is_missed and not _is_rolling_out(workload) else None
    return WAKING if before in (ASLEEP.reason, WAKING.reason) and not _is_overdue(workload, now) else None


def _is_overdue(workload: Object, now: str) -> bool:
    missed = condition_of(workload, AVAILABLE)
    since = missed.get("lastTransitionTime")
    if missed.get("status") != FALSE or not since:
        return False
    return seconds_between(since, now) >= (dig(workload, "spec", "progressDeadlineSeconds") or COLD_START_SECONDS)


def _is_rolling_out(workload: Object) -> bool:
    """Returns whether pods of a new template take the place of others, so that it matters which of them are there."""
    return bool(dig(workload, "status", "updatedReplicas") != dig(workload, "status", "replicas"))


def _has_pods(workload: Object) -> bool:
    return bool(dig(workload, "status", "availableReplicas") or dig(workload, "status", "readyReplicas"))
