"""Job → Pods: reconciles a Job's pods and status until enough pods have succeeded, or it has failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from isvc.kube.conditions import conditions_of, find, is_true
from isvc.kube.objects import Key, Object, dig, finalizers_of, is_being_deleted, namespace_of, uid_of
from isvc.kube.owners import controller_of, is_controlled_by
from isvc.kube.resource import JOBS, PODS
from isvc.kube.timestamps import timestamp
from isvc.local.controllers.jobs.pods_wanted import Change, change, seconds_to_retry
from isvc.local.controllers.jobs.tally import FINALIZER, Tally, tally
from isvc.local.controllers.jobs.verdict import (
    COMPLETE,
    Verdict,
    is_finished,
    seconds_to_deadline,
    seconds_to_expiry,
    verdict,
)
from isvc.local.controllers.pod_writes import BURST, create_pod, delete_pod
from isvc.local.controllers.pods import is_active, is_ready, is_terminating
from isvc.toolkit.cache import OWNER
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Result, Watch
from isvc.toolkit.reads import Read

_OURS = "kubernetes.io/job-controller"
_UNCOUNTED = "uncounted"


def controller(context: Context) -> Controller:
    watches = [Watch(JOBS), Watch(PODS, to=OwnerOf(JOBS))]
    reads = [Read(PODS, indexers={_UNCOUNTED: _uncounted})]
    return Controller("job", Jobs(context).reconcile, watches, workers=4, clock=context.clock, reads=reads)


def _uncounted(pod: Object) -> Iterable[str]:
    """Indexes pods that wait to be counted by the name of their Job."""
    owner = controller_of(pod)
    if owner is not None and owner.get("kind") == JOBS.kind and FINALIZER in finalizers_of(pod):
        yield str(Key(namespace_of(pod), owner.get("name", "")))


class Jobs:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._cache = context.cache

    async def reconcile(self, key: Key) -> Result | None:
        job = self._cache.get(JOBS, key.name, key.namespace)
        await self._release(self._left_by_others(key, job))
        if job is None:
            return None
        if (dig(job, "spec", "managedBy") or _OURS) != _OURS:
            return None
        if is_being_deleted(job) or is_finished(job):
            await self._release(self._pods(job))
            return await self._expire(job)
        return await self._progress(job)

    def _pods(self, job: Object) -> list[Object]:
        return self._cache.by_index(PODS, OWNER, uid_of(job))

    def _left_by_others(self, key: Key, job: Object | None) -> list[Object]:
        """Returns pods of Jobs that had the name before, and are gone."""
        pods = self._cache.by_index(PODS, _UNCOUNTED, str(key))
        return [pod for pod in pods if job is None or not is_controlled_by(pod, uid_of(job))]

    async def _release(self, pods: Sequence[Object]) -> None:
        """Lets pods go that nobody counts any more."""
        for pod in pods:
            await self._context.remove_finalizer(PODS, pod, FINALIZER)

    async def _expire(self, job: Object) -> Result | None:
        left = seconds_to_expiry(job, self._context.clock.now())
        if left is None or is_being_deleted(job):
            return None
        if left > 0:
            return Result(requeue_after=left)
        await self._context.delete(JOBS, job, propagation="Background")
        return None

    async def _progress(self, job: Object) -> Result | None:
        now = self._context.clock.now()
        counts = tally(job, self._pods(job))
        outcome = verdict(job, self._pods(job), counts, now)
        suspended = bool(dig(job, "spec", "suspend"))
        retry = 0.0
        if outcome is not None or suspended:
            await self._change(job, Change(delete=tuple(pod for pod in self._pods(job) if is_active(pod))))
        elif dig(job, "status", "startTime"):
            wanted, retry = change(job, self._pods(job), counts), seconds_to_retry(job, self._pods(job), now)
            await self._change(job, Change(delete=wanted.delete) if retry else wanted)
        status = job_status(job, self._pods(job), counts, outcome, now)
        self._tell(job, status)
        await self._context.write_status(JOBS, job, status)
        await self._release(counts.ended)
        left = seconds_to_deadline({**job, "status": status}, now) if outcome is None else None
        waits = [seconds for seconds in (retry, left) if seconds]
        return Result(requeue_after=min(waits)) if waits else None

    async def _change(self, job: Object, wanted: Change) -> None:
        """Deletes and creates pods. What is deleted here is no failure: without the finalizer it is not counted."""
        for pod in wanted.delete:
            await self._context.remove_finalizer(PODS, pod, FINALIZER)
            await delete_pod(self._context, job, pod)
        for pod in wanted.create[:BURST]:
            await create_pod(self._context, job, pod)

    def _tell(self, job: Object, status: Object) -> None:
        before = conditions_of(job)
        for condition in status.get("conditions") or ():
            earlier = find(before, condition["type"])
            if earlier is not None and earlier.get("status") == condition["status"]:
                continue
            match condition["type"]:
                case "Complete":
                    self._context.recorder.event(job, "Normal", "Completed", "Job completed")
                case "Failed":
                    self._context.recorder.event(job, "Warning", condition["reason"], condition["message"])
                case "Suspended":
                    reason = "Suspended" if condition["status"] == "True" else "Resumed"
                    self._context.recorder.event(job, "Normal", reason, condition["message"])


def job_status(job: Object, pods: Sequence[Object], counts: Tally, outcome: Verdict | None, now: datetime) -> Object:
    """Returns the status. A Job ends when its last pod has; until then an interim condition says how it will."""
    active = [pod for pod in pods if is_active(pod)]
    going = sum(map(is_terminating, pods))
    status: Object = {**counts.to_status(), "ready": sum(is_ready(pod) for pod in active), "terminating": going}
    if active:
        status["active"] = len(active)
    conditions = _suspension(job, timestamp(now))
    started = dig(job, "status", "startTime")
    if not dig(job, "spec", "suspend"):
        status["startTime"] = started or timestamp(now)
    if outcome is not None:
        conditions += [find(conditions, outcome.interim) or outcome.condition(outcome.interim, timestamp(now))]
        if counts.is_settled and not active and not going:
            conditions += [outcome.condition(outcome.kind, timestamp(now))]
            if outcome.kind == COMPLETE:
                status["completionTime"] = timestamp(now)
    kept = {each["type"]: each for each in conditions}
    if kept:
        status["conditions"] = list(kept.values())
    return status


def _suspension(job: Object, now: str) -> list[Object]:
    """Returns the conditions so far; of Suspended only once there is something to say."""
    conditions = conditions_of(job)
    suspended = bool(dig(job, "spec", "suspend"))
    before = find(conditions, "Suspended")
    if suspended == is_true(conditions, "Suspended"):
        return conditions
    reason, words = ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
    condition = {"type": "Suspended", "status": "True" if suspended else "False", "reason": reason, "message": words}
    stamped = {**condition, "lastProbeTime": now, "lastTransitionTime": now}
    return [*(each for each in conditions if each is not before), stamped]
