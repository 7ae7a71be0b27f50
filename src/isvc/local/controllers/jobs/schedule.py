"""The schedule of a CronJob: five fields as cron has them, `@daily` and its like, or `@every 90s`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Protocol

from isvc.kube.durations import seconds

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
_MINUTE: Final = timedelta(minutes=1)
_RANGE: Final = re.compile(r"(?P<first>\*|\?|\w{1,9})(?:-(?P<last>\w{1,9}))?(?:/(?P<step>\d{1,9}))?", re.ASCII)
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
class Field:
    numbers: frozenset[int]
    is_star: bool  # which says nothing; with a step it does


@dataclass(frozen=True, slots=True)
class Calendar:
    """The minutes at which the wall clock of a time zone shows this.

    Those that a clock shows twice when it is set back count twice, those that it leaves out when it is set forward not
    at all: Kubernetes' own parser (robfig/cron) has it so.
    """

    minutes: Field
    hours: Field
    days: Field
    months: Field
    weekdays: Field
    zone: tzinfo

    def next_after(self, moment: datetime) -> datetime | None:
        found = moment.astimezone(UTC).replace(second=0, microsecond=0) + _MINUTE
        last = found + _HORIZON if self.minutes.numbers and self.hours.numbers else found  # `,` has none
        while found < last:
            wall = found.astimezone(self.zone)
            if wall.month not in self.months.numbers:
                found = self._midnight((wall.replace(day=1) + timedelta(days=32)).replace(day=1))
            elif not self._is_day(wall):
                found = self._midnight(wall + timedelta(days=1))
            elif wall.hour not in self.hours.numbers:
                found += (60 - wall.minute) * _MINUTE
            elif wall.minute not in self.minutes.numbers:
                found += _MINUTE
            else:
                return found
        return None

    def _midnight(self, wall: datetime) -> datetime:
        """Returns the beginning of a day, also of one that begins at one o'clock."""
        return wall.replace(hour=0, minute=0, fold=0).astimezone(UTC)

    def _is_day(self, wall: datetime) -> bool:
        day, weekday = wall.day in self.days.numbers, wall.isoweekday() % 7 in self.weekdays.numbers
        return day and weekday if self.days.is_star or self.weekdays.is_star else day or weekday


def parse_schedule(text: str, zone: tzinfo = UTC) -> Schedule:
    """Raises ScheduleError."""
    if text.startswith("@every "):
        return Interval(_duration(text.removeprefix("@every ")))
    fields = _NAMED.get(text, text).split()
    if len(fields) != 5:
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: {text!r}")
    minutes, hours, days, months, weekdays = fields
    return Calendar(
        _field(minutes, 0, 59),
        _field(hours, 0, 23),
        _field(days, 1, 31),
        _field(months, 1, 12, _MONTHS),
        _field(weekdays, 0, 6, _DAYS),
        zone,
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
    length = seconds(text)
    if length is None:
        raise ScheduleError(f"expected a duration such as 1h30m, found {text!r}")
    return max(timedelta(seconds=int(length)), timedelta(seconds=1))


def _field(text: str, low: int, high: int, names: list[str] | None = None) -> Field:
    parts = [part for part in text.lower().split(",") if part]
    numbers = frozenset(number for part in parts for number in _range(part, low, high, names or []))
    return Field(numbers, any(part[0] in "*?" and part.partition("/")[2] in ("", "1") for part in parts))


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
