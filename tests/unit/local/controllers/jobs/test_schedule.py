"""When a CronJob's schedule says it is time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
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
        ("0 8 */2 * wed", "2026-11-17T08:00"),  # and a star with a step is no star
        ("0 8 */1 * wed", "2026-11-18T08:00"),
        ("0 0 ? * *", "2026-11-17T00:00"),
        ("0 0 * * */8", "2026-11-22T00:00"),
        ("1,,2 * * * *", "2026-11-16T13:01"),
        ("@hourly", "2026-11-16T13:00"),
        ("@weekly", "2026-11-22T00:00"),
        ("@every 1h30m", "2026-11-16T14:00:15"),
        ("@every 1.5h", "2026-11-16T14:00:15"),
        ("@every 500ms", "2026-11-16T12:30:16"),
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


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        ("30 * * * *", "Europe/Berlin", "2026-10-25T00:00", ["10-25T00:30", "10-25T01:30", "10-25T02:30"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T20:00", ["10-25T00:30", "10-25T01:30", "10-26T01:30"]),
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", ["03-30T00:30", "03-31T00:30"]),
        ("30 0 * * *", "America/Havana", "2026-03-07T00:00", ["03-07T05:30", "03-09T04:30"]),
        ("15 1 * * *", "Australia/Lord_Howe", "2026-04-03T00:00", ["04-03T14:15", "04-04T14:15", "04-05T14:45"]),
    ],
)  # fmt: skip
def test_a_clock_that_is_set_back_or_forward(schedule, zone, after, expected):
    """What it shows twice comes twice, what it does not show does not come: as Kubernetes' own parser says."""
    parsed, times = parse_schedule(schedule, ZoneInfo(zone)), [datetime.fromisoformat(f"{after}Z")]
    for _ in expected:
        following = parsed.next_after(times[-1])
        assert following
        times.append(following)
    assert [f"{time:%m-%dT%H:%M}" for time in times[1:]] == expected


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "* * * *",
        "60 * * * *",
        "* 5-2 * * *",
        "*/0 * * * *",
        "a * * * *",
        "@never",
        "@every soon",
        "@DAILY",
        "* * * * 7",
        "0 0 L * *",
        "0 0 * * 5#2",
        "* * * * * *",
        "0 0 * * sat-sun",
        "² * * * *",
        pytest.param("9" * 5_000 + " * * * *", id="many digits"),
        pytest.param("*/" + "9" * 5_000 + " * * * *", id="many digits of a step"),
        "@every 2562048h",
        pytest.param("@every " + "9" * 500 + "h", id="infinitely long"),
    ],
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


@pytest.mark.parametrize("schedule", [", * * * *", "* , * * *", "* * * , *"])
def test_no_minute_of_years_is_looked_at_for_a_schedule_without_numbers(schedule):
    class Zone(tzinfo):
        """Counts how often a wall clock is asked."""

        asked = 0

        def utcoffset(self, moment: datetime | None) -> timedelta:
            self.asked += 1
            return timedelta()

        def dst(self, moment: datetime | None) -> timedelta:
            return timedelta()

        def tzname(self, moment: datetime | None) -> str:
            return "UTC"

    zone = Zone()
    assert parse_schedule(schedule, zone).next_after(MONDAY) is None
    assert zone.asked < 1_000
