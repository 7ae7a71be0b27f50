"""When a CronJob's schedule says it is time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from isvc.local.controllers.jobs.schedule import ScheduleError, latest, parse_schedule

MONDAY = datetime(2026, 11, 16, 12, 30, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("* * * * *", "2026-11-16T12:31"),
        ("*/20 * * * *", "2026-11-16T12:40"),
        ("5/20 * * * *", "2026-11-16T12:45"),
        ("0 9-17/4 * * *", "2026-11-16T13:00"),
        ("30 12 * * *", "2026-11-17T12:30"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("0 0 1 jan,JUL *", "2027-01-01T00:00"),
        ("0 8 * * sat", "2026-11-21T08:00"),
        ("0 8 20 * wed", "2026-11-18T08:00"),  # both fields for days: either will do
        ("@hourly", "2026-11-16T13:00"),
        ("@weekly", "2026-11-22T00:00"),
        ("@every 1h30m", "2026-11-16T14:00:15"),
    ],
)
def test_the_next_time(schedule, expected):
    assert parse_schedule(schedule).next_after(MONDAY) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


def test_a_date_that_never_comes():
    assert parse_schedule("0 0 30 2 *").next_after(MONDAY) is None


def test_the_wall_clock_of_a_time_zone_decides():
    schedule = parse_schedule("0 3 * * *", ZoneInfo("Europe/Berlin"))
    winter, summer = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)
    times = [schedule.next_after(day) for day in (winter, summer)]
    assert [time and time.hour for time in times] == [2, 1]


def test_times_go_on_when_the_clock_is_set_back():
    schedule = parse_schedule("30 * * * *", ZoneInfo("Europe/Berlin"))
    times = [datetime(2026, 10, 24, 20, tzinfo=UTC)]
    for _ in range(8):
        following = schedule.next_after(times[-1])
        assert following
        times.append(following)
    assert times == sorted(set(times))


@pytest.mark.parametrize(
    "schedule",
    ["", "* * * *", "60 * * * *", "* 5-2 * * *", "*/0 * * * *", "a * * * *", "@never", "@every soon", "1,,2 * * * *"],
)
def test_what_cannot_be_read_is_refused(schedule):
    with pytest.raises(ScheduleError):
        parse_schedule(schedule)


@pytest.mark.parametrize("schedule", ["* * * * *", "0 0 * * *", "0 0 1 1 *", "@every 7m"])
@pytest.mark.parametrize("days", [0, 1, 40, 800])
def test_the_latest_missed_time_is_the_last_of_all(schedule, days):
    parsed, after = parse_schedule(schedule), MONDAY - timedelta(days=min(days, 3) if schedule[0] == "*" else days)
    expected, moment = None, parsed.next_after(after)
    while moment and moment <= MONDAY:
        expected, moment = moment, parsed.next_after(moment)
    assert latest(parsed, after, MONDAY) == expected
