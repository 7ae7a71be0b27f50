"""When a CronJob is due, and which of its Jobs it keeps."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from isvc.kube.objects import Object
from isvc.local.controllers.jobs.cron import cron_job_status, due_time, job_of, past_history, schedule_of
from isvc.local.controllers.jobs.schedule import ScheduleError, parse_schedule

NOW = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)
HOURLY = parse_schedule("0 * * * *")


def cron_job(last: str | None = None, **spec: object) -> Object:
    return {
        "metadata": {"name": "tick", "namespace": "default", "uid": "u", "creationTimestamp": "2026-11-16T10:30:00Z"},
        "spec": {"jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"parallelism": 2}}, **spec},
        "status": {"lastScheduleTime": last} if last else {},
    }


def job(name: str, outcome: str, hour: int = 10) -> Object:
    at = f"2026-11-16T{hour}:00:00Z"
    ended = {"type": outcome, "status": "True", "lastTransitionTime": at}
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1", "creationTimestamp": at}
    return {"metadata": metadata, "status": {"conditions": [ended] if outcome else []}}


@pytest.mark.parametrize(
    ("last", "deadline", "expected"),
    [
        (None, None, 12),  # of two times since its creation the last
        ("2026-11-16T12:00:00Z", None, None),
        ("2026-11-16T09:00:00Z", 60, None),  # too late
        ("2026-11-16T09:00:00Z", 3600, 12),
    ],
)
def test_the_last_missed_time_is_made_up_for(last: str | None, deadline: int | None, expected: int | None) -> None:
    due = due_time(cron_job(last, startingDeadlineSeconds=deadline), HOURLY, NOW)
    assert (due and due.hour) == expected


def test_a_time_has_one_job_by_its_name() -> None:
    made = job_of(cron_job(), NOW.replace(minute=0))
    assert made["metadata"]["name"] == job_of(cron_job(), NOW.replace(minute=0))["metadata"]["name"]
    assert made["metadata"]["annotations"] == {
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-11-16T12:00:00Z"
    }
    assert (made["metadata"]["labels"], made["spec"]) == ({"a": "b"}, {"parallelism": 2})
    assert made["metadata"]["ownerReferences"][0]["kind"] == "CronJob"


def test_history_is_kept_apart_for_successes_and_failures() -> None:
    jobs = [job("a", "Complete", 10), job("b", "Complete", 11), job("c", "Failed", 10), job("d", "", 10)]
    old = past_history(cron_job(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=1), jobs)
    assert [each["metadata"]["name"] for each in old] == ["a"]


def test_the_status_names_what_runs_and_when_it_last_went_well() -> None:
    by_hand, scheduled = job("c", ""), job("d", "")
    scheduled["metadata"]["annotations"] = job_of(cron_job(), NOW)["metadata"]["annotations"]
    status = cron_job_status(cron_job(), [job("a", "Complete", 11), by_hand, scheduled], "2026-11-16T12:00:00Z")
    assert [each["name"] for each in status["active"]] == ["d"]
    assert status["lastSuccessfulTime"] == "2026-11-16T11:00:00Z"


@pytest.mark.parametrize("zone", ["../UTC", "/etc/passwd", "Europe", "Nowhere/At_All"])
def test_a_time_zone_that_there_is_not_is_said_of_the_schedule(zone: str) -> None:
    with pytest.raises(ScheduleError):
        schedule_of(cron_job(schedule="0 * * * *", timeZone=zone))
