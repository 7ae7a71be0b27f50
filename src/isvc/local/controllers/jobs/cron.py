"""CronJob → Jobs: one at each time of its schedule, of which a few are kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from isvc.kube.conditions import is_condition_true, is_true
from isvc.kube.errors import AlreadyExists, ApiError
from isvc.kube.objects import (
    Key,
    Object,
    annotations_of,
    deep_copy,
    dig,
    is_being_deleted,
    name_of,
    namespace_of,
    uid_of,
)
from isvc.kube.owners import controller_ref
from isvc.kube.resource import CRON_JOBS, JOBS
from isvc.kube.timestamps import parse_timestamp, timestamp
from isvc.local.controllers.jobs.schedule import Schedule, ScheduleError, latest, parse_schedule
from isvc.local.controllers.jobs.verdict import COMPLETE, finished_at, is_finished
from isvc.toolkit.cache import OWNER
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Result, Watch

_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def schedule_of(cron_job: Object) -> Schedule:
    """Returns when a CronJob is due. Raises ScheduleError, also for a time zone that there is not."""
    spec = cron_job["spec"]
    try:
        zone = ZoneInfo(spec.get("timeZone") or "UTC")
    except (ValueError, ZoneInfoNotFoundError) as error:  # of which `../UTC` is the first
        raise ScheduleError(str(error)) from None
    return parse_schedule(spec["schedule"], zone)


def controller(context: Context) -> Controller:
    watches = [Watch(CRON_JOBS), Watch(JOBS, to=OwnerOf(CRON_JOBS))]
    return Controller("cronjob", CronJobs(context).reconcile, watches, clock=context.clock)


class CronJobs:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._cache = context.cache

    async def reconcile(self, key: Key) -> Result | None:
        cron_job = self._context.find(CRON_JOBS, key)
        if cron_job is None:
            return None
        for job in past_history(cron_job, self._jobs(cron_job)):
            await self._context.delete(JOBS, job, propagation="Background")
        scheduled = dig(cron_job, "status", "lastScheduleTime")
        wait: float | None = None
        if not dig(cron_job, "spec", "suspend") and (schedule := self._schedule(cron_job)) is not None:
            now = self._context.clock.now()
            due = due_time(cron_job, schedule, now)
            if due is not None and await self._start(cron_job, due):
                scheduled = timestamp(due)
            following = schedule.next_after(now)
            wait = (following - now).total_seconds() if following else None
        status = cron_job_status(cron_job, self._jobs(cron_job), scheduled)
        await self._context.write_status(CRON_JOBS, cron_job, status)
        return Result(requeue_after=wait) if wait is not None else None

    def _jobs(self, cron_job: Object) -> list[Object]:
        return self._cache.by_index(JOBS, OWNER, uid_of(cron_job))

    def _schedule(self, cron_job: Object) -> Schedule | None:
        try:
            return schedule_of(cron_job)
        except ScheduleError as error:
            self._context.recorder.event(cron_job, "Warning", "UnparseableSchedule", f"unparseable schedule: {error}")
            return None

    async def _start(self, cron_job: Object, due: datetime) -> bool:
        """Returns whether the time is dealt with: by a Job, or by the decision that there shall be none."""
        active = [job for job in self._jobs(cron_job) if not is_finished(job) and _is_scheduled(job)]
        policy = cron_job["spec"].get("concurrencyPolicy")
        if active and policy == "Forbid":
            words = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._context.recorder.event(cron_job, "Normal", "JobAlreadyActive", words)
            return False
        for job in active if policy == "Replace" else ():
            await self._context.delete(JOBS, job, propagation="Background")
        wanted = job_of(cron_job, due)
        try:
            made = await self._context.create(JOBS, wanted)
        except AlreadyExists:
            return True
        except ApiError as error:
            self._context.recorder.event(cron_job, "Warning", "FailedCreate", f"Error creating job: {error.message}")
            raise
        self._context.recorder.event(cron_job, "Normal", "SuccessfulCreate", f"Created job {name_of(made)}")
        return True


def due_time(cron_job: Object, schedule: Schedule, now: datetime) -> datetime | None:
    """Returns the last time that has come and has had no Job; of several that were missed only the last counts."""
    after = parse_timestamp(dig(cron_job, "status", "lastScheduleTime") or cron_job["metadata"]["creationTimestamp"])
    deadline = dig(cron_job, "spec", "startingDeadlineSeconds")
    if deadline is not None:
        after = max(after, now - timedelta(seconds=deadline))
    return latest(schedule, after, now)


def job_of(cron_job: Object, due: datetime) -> Object:
    """Makes the Job, whose name follows from its time, so that no time has two."""
    template = deep_copy(cron_job["spec"]["jobTemplate"])
    metadata = template.get("metadata") or {}
    named = {
        "name": f"{name_of(cron_job)}-{int(due.timestamp()) // 60}",
        "namespace": namespace_of(cron_job),
        "labels": metadata.get("labels") or {},
        "annotations": {**(metadata.get("annotations") or {}), _SCHEDULED: timestamp(due)},
        "ownerReferences": [controller_ref(CRON_JOBS.typed(cron_job))],
    }
    return JOBS.manifest(named, spec=template.get("spec") or {})


def _is_scheduled(job: Object) -> bool:
    """Returns whether its time has come, and not somebody made it by hand (`kubectl create job --from`)."""
    return _SCHEDULED in annotations_of(job)


def past_history(cron_job: Object, jobs: Sequence[Object]) -> list[Object]:
    """Returns finished Jobs beyond those that are kept, the oldest."""
    finished = [job for job in jobs if is_finished(job) and not is_being_deleted(job)]
    old: list[Object] = []
    for succeeded, field in ((True, "successfulJobsHistoryLimit"), (False, "failedJobsHistoryLimit")):
        limit = dig(cron_job, "spec", field)
        alike = [job for job in finished if is_true(job["status"]["conditions"], COMPLETE) == succeeded]
        alike.sort(key=lambda job: job["metadata"]["creationTimestamp"])
        old += alike[: max(0, len(alike) - limit)] if limit is not None else []
    return old


def cron_job_status(cron_job: Object, jobs: Sequence[Object], scheduled: str | None) -> Object:
    active = [job for job in jobs if not is_finished(job) and not is_being_deleted(job) and _is_scheduled(job)]
    status: Object = {}
    if active:
        status["active"] = [_reference(job) for job in active]
    if scheduled:
        status["lastScheduleTime"] = scheduled
    successes = [finished_at(job) for job in jobs if is_condition_true(job, COMPLETE)]
    times = [timestamp(moment) for moment in successes if moment is not None]
    if last := max([*times, dig(cron_job, "status", "lastSuccessfulTime") or ""]):
        status["lastSuccessfulTime"] = last
    return status


def _reference(job: Object) -> Object:
    version = job["metadata"]["resourceVersion"]
    return JOBS.typed(
        {"name": name_of(job), "namespace": namespace_of(job), "uid": uid_of(job), "resourceVersion": version}
    )
