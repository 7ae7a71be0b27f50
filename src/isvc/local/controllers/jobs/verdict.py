"""When a Job is over, and why: enough pods succeeded, too many failed, or its time is up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from isvc.kube.conditions import TRUE, condition_of, is_condition_true
from isvc.kube.objects import Object, dig
from isvc.kube.pods import container_statuses
from isvc.kube.timestamps import parse_timestamp
from isvc.local.controllers.jobs import failure_policy
from isvc.local.controllers.jobs.tally import Tally, has_failed
from isvc.local.controllers.pods import is_active

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
_INTERIM: Final = {COMPLETE: "SuccessCriteriaMet", FAILED: "FailureTarget"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The condition that a Job ends with; the interim condition says the same while its last pods are still going."""

    kind: str
    reason: str
    message: str

    @property
    def interim(self) -> str:
        return _INTERIM[self.kind]

    def condition(self, kind: str, now: str) -> Object:
        times = {"lastProbeTime": now, "lastTransitionTime": now}
        return {"type": kind, "status": TRUE, "reason": self.reason, "message": self.message, **times}


def is_finished(job: Object) -> bool:
    return is_condition_true(job, COMPLETE) or is_condition_true(job, FAILED)


def finished_at(job: Object) -> datetime | None:
    for kind in (COMPLETE, FAILED):
        condition = condition_of(job, kind)
        if condition.get("status") == TRUE:
            return parse_timestamp(condition["lastTransitionTime"])
    return None


def verdict(job: Object, pods: Sequence[Object], counts: Tally, now: datetime) -> Verdict | None:
    """Decides whether a Job is over, and why; what was decided before stands."""
    for kind, interim in _INTERIM.items():
        before = condition_of(job, interim)
        if before.get("status") == TRUE:
            return Verdict(kind, before.get("reason", ""), before.get("message", ""))
    return _failure(job, pods, counts, now) or _success(job, pods, counts)


def _failure(job: Object, pods: Sequence[Object], counts: Tally, now: datetime) -> Verdict | None:
    for pod in pods:
        rule = failure_policy.match(job, pod) if has_failed(job, pod) else None
        if rule is not None and rule.action == "FailJob":
            return Verdict(FAILED, "PodFailurePolicy", rule.message)
    limit = dig(job, "spec", "backoffLimit")
    limit = 6 if limit is None else limit
    if counts.all_failed > limit or _restarted_too_often(job, pods, limit):
        return Verdict(FAILED, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    left = seconds_to_deadline(job, now)
    if left is not None and left <= 0:
        return Verdict(FAILED, "DeadlineExceeded", "Job was active longer than specified deadline")
    return None


def _restarted_too_often(job: Object, pods: Sequence[Object], limit: int) -> bool:
    """Returns whether pods have restarted too often: those with restartPolicy OnFailure fail within themselves."""
    if dig(job, "spec", "template", "spec", "restartPolicy") != "OnFailure":
        return False
    restarts: int = sum(
        status.get("restartCount", 0) for pod in pods if is_active(pod) for status in container_statuses(pod)
    )
    return restarts > 0 if limit == 0 else restarts >= limit


def _success(job: Object, pods: Sequence[Object], counts: Tally) -> Verdict | None:
    """Returns success; without a number of completions, when one pod has succeeded and no other is left."""
    wanted = dig(job, "spec", "completions")
    if wanted is None:
        reached = counts.all_succeeded > 0 and not any(is_active(pod) for pod in pods)
    else:
        reached = counts.all_succeeded >= wanted
    if not reached:
        return None
    return Verdict(COMPLETE, "CompletionsReached", "Reached expected number of succeeded pods")


def seconds_to_deadline(job: Object, now: datetime) -> float | None:
    seconds, started = dig(job, "spec", "activeDeadlineSeconds"), dig(job, "status", "startTime")
    if seconds is None or started is None or dig(job, "spec", "suspend"):
        return None
    return (parse_timestamp(started) + timedelta(seconds=seconds) - now).total_seconds()


def seconds_to_expiry(job: Object, now: datetime) -> float | None:
    """Returns the seconds until a finished Job may be deleted; None if that is left to others."""
    seconds, ended = dig(job, "spec", "ttlSecondsAfterFinished"), finished_at(job)
    if seconds is None or ended is None:
        return None
    return (ended + timedelta(seconds=seconds) - now).total_seconds()
