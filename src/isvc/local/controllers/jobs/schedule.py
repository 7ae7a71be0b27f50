"""The schedule of a CronJob: five fields as cron has them, `@daily` and its like, or `@every 90s`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Protocol

_NAMED: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_UNITS: Final = {"h": 3600, "m": 60, "s": 1}
_RANGE: Final = re.compile(r"(?P<first>\*|\?|\w+)(?:-(?P<last>\w+))?(?:/(?P<step>\d+))?")
_WINDOWS: Final = (timedelta(hours=1), timedelta(days=1), timedelta(days=32), timedelta(days=367), timedelta(days=3000))
_HORIZON: Final = timedelta(days=366 * 5)


class ScheduleError(ValueError):
    """A schedule that cannot be read; says why."""


class Schedule(Protocol):
    def next_after(self, moment: datetime) -> datetime | None:
        """Returns the first time after this one; None if there is none, as on the 30th of February."""
        ...


@dataclass(frozen=True, slots=True)
class Interval:
    """Every so often, counted from the last time."""

    length: timedelta

    def next_after(self, moment: datetime) -> datetime:
        return moment.replace(microsecond=0) + self.length


@dataclass(frozen=True, slots=True)
class Calendar:
    """Minutes of the wall clock in a time zone."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool  # of the two fields for days, one is a star: the other decides
    zone: tzinfo

    def next_after(self, moment: datetime) -> datetime | None:
        wall = moment.astimezone(self.zone).replace(tzinfo=None, second=0, microsecond=0)
        last = wall + _HORIZON
        while wall < last:
            wall = self._later(wall)
            found = wall.replace(tzinfo=self.zone).astimezone(UTC)
            if self._matches(wall) and found > moment:
                return found
        return None

    def _later(self, wall: datetime) -> datetime:
        """Returns the next minute that may match: whole months, days and hours that cannot are left out."""
        wall += timedelta(minutes=1)
        if wall.month not in self.months:
            return (wall.replace(day=1, hour=0, minute=0) + timedelta(days=32)).replace(day=1) - timedelta(minutes=1)
        if not self._is_day(wall):
            return wall.replace(hour=0, minute=0) + timedelta(days=1, minutes=-1)
        if wall.hour not in self.hours:
            return wall.replace(minute=0) + timedelta(hours=1, minutes=-1)
        return wall

    def _matches(self, wall: datetime) -> bool:
        parts = wall.month in self.months and wall.hour in self.hours and wall.minute in self.minutes
        return parts and self._is_day(wall)

    def _is_day(self, wall: datetime) -> bool:
        day, weekday = wall.day in self.days, wall.isoweekday() % 7 in self.weekdays
        return day and weekday if self.any_day else day or weekday


def parse_schedule(text: str, zone: tzinfo = UTC) -> Schedule:
    """Raises ScheduleError."""
    words = text.lower().split()
    if words[:1] == ["@every"]:
        return Interval(_duration(" ".join(words[1:])))
    fields = _NAMED.get(words[0], "").split() if len(words) == 1 else words
    if len(fields) != 5:
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: {text!r}")
    minutes, hours, days, months, weekdays = fields
    return Calendar(
        _field(minutes, 0, 59),
        _field(hours, 0, 23),
        _field(days, 1, 31),
        _field(months, 1, 12, _MONTHS),
        _field(weekdays, 0, 6, _DAYS),
        any_day=days[0] in "*?" or weekdays[0] in "*?",
        zone=zone,
    )


def latest(schedule: Schedule, after: datetime, until: datetime) -> datetime | None:
    """Returns the last time of a schedule in this span, found without walking through a long one."""
    if isinstance(schedule, Interval):
        rounds = (until - after) // schedule.length
        return after + rounds * schedule.length if rounds > 0 else None
    for window in _WINDOWS:
        begin = max(after, until - window)
        if times := list(_times(schedule, begin, until)):
            return times[-1]
        if begin == after:
            return None
    return None


def _times(schedule: Schedule, after: datetime, until: datetime) -> Iterator[datetime]:
    moment = schedule.next_after(after)
    while moment is not None and moment <= until:
        yield moment
        moment = schedule.next_after(moment)


def _duration(text: str) -> timedelta:
    if not re.fullmatch(r"(\d+[hms])+", text):
        raise ScheduleError(f"expected a duration such as 1h30m, found {text!r}")
    length = timedelta(seconds=sum(int(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+)([hms])", text)))
    return max(length, timedelta(seconds=1))


def _field(text: str, low: int, high: int, names: list[str] | None = None) -> frozenset[int]:
    numbers: set[int] = set()
    for part in text.split(","):
        numbers.update(_range(part, low, high, names or []))
    return frozenset(numbers)


def _range(part: str, low: int, high: int, names: list[str]) -> range:
    found = _RANGE.fullmatch(part)
    if found is None:
        raise ScheduleError(f"cannot read {part!r} in a schedule")
    step = int(found["step"] or 1)
    if found["first"] in "*?":
        first, last = low, high
    else:
        first = _number(found["first"], low, names)
        last = _number(found["last"], low, names) if found["last"] else high if found["step"] else first
    if not (low <= first <= last <= high) or step < 1:
        raise ScheduleError(f"{part!r} is not within {low} and {high}")
    return range(first, last + 1, step)


def _number(text: str, low: int, names: list[str]) -> int:
    if text.isdigit():
        return int(text)
    if text in names:
        return names.index(text) + low
    raise ScheduleError(f"cannot read {text!r} in a schedule")
