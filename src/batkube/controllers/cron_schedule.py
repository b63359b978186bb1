"""When a cron schedule is due: `*/5 * * * *`, `0 2 * * MON-FRI`, `@hourly`, `@every 90s`.

The notation is that of github.com/robfig/cron, which the real controller uses: five fields, names of months and
weekdays, `?` for `*`; when both the day of the month and the weekday are restricted, either will do.
"""

from __future__ import annotations

import datetime
import zoneinfo
from typing import NamedTuple

from batkube.kernel.instants import EPOCH, NANOSECONDS_PER_SECOND, Duration, Instant, duration, seconds

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
#: The least and the largest value of each field, and the names that stand for values from the least on.
_FIELDS: tuple[tuple[int, int, list[str]], ...] = (
    (0, 59, []),
    (0, 23, []),
    (1, 31, []),
    (1, 12, _MONTHS),
    (0, 6, _WEEKDAYS),
)
_ANY = ("*", "?")
#: A schedule without a date in so many years has none.
_YEARS_AHEAD = 5


class Schedule(NamedTuple):
    """The moments at which something is to happen."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    #: Whether any day of the month, and any weekday, will do.
    any_day: bool
    any_weekday: bool
    zone: datetime.tzinfo
    #: Of `@every`: the pause between two moments; everything else is void then.
    pause: Duration | None = None

    def next_after(self, now: Instant) -> Instant | None:
        """Return the first moment after `now`, or None when there is none in years."""
        if self.pause is not None:
            whole = now - now % NANOSECONDS_PER_SECOND
            return Instant(whole + self.pause)
        start = (EPOCH + datetime.timedelta(seconds=now // NANOSECONDS_PER_SECOND)).astimezone(self.zone)
        found = self._next(start.replace(second=0, microsecond=0) + datetime.timedelta(minutes=1))
        if found is None:
            return None
        return Instant(int((found - EPOCH).total_seconds()) * NANOSECONDS_PER_SECOND)

    def _next(self, moment: datetime.datetime) -> datetime.datetime | None:
        last_year = moment.year + _YEARS_AHEAD
        while moment.year <= last_year:
            if moment.month not in self.months:
                first = moment.replace(day=1, hour=0, minute=0)
                moment = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
            elif not self._is_day(moment):
                moment = moment.replace(hour=0, minute=0) + datetime.timedelta(days=1)
            elif moment.hour not in self.hours:
                moment = moment.replace(minute=0) + datetime.timedelta(hours=1)
            elif moment.minute not in self.minutes:
                moment += datetime.timedelta(minutes=1)
            else:
                return moment
        return None

    def _is_day(self, moment: datetime.datetime) -> bool:
        by_day, by_weekday = moment.day in self.days, moment.isoweekday() % 7 in self.weekdays
        return by_day and by_weekday if self.any_day or self.any_weekday else by_day or by_weekday


def parse_schedule(text: str, time_zone: str | None = None) -> Schedule:
    """Return the schedule that `text` means, in a time zone (UTC unless given). Raises ValueError."""
    zone = _zone(time_zone)
    for prefix in ("TZ=", "CRON_TZ="):
        if text.startswith(prefix):
            name, _, text = text.removeprefix(prefix).partition(" ")
            zone = _zone(name)
    text = text.strip()
    if text.startswith("@every "):
        pause = max(seconds(1), duration(text.removeprefix("@every ")))
        return _schedule(["*"] * 5, zone, Duration(pause - pause % NANOSECONDS_PER_SECOND))
    fields = _MACROS.get(text, text).split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: {text}")
    return _schedule(fields, zone, None)


def _schedule(fields: list[str], zone: datetime.tzinfo, pause: Duration | None) -> Schedule:
    minutes, hours, days, months, weekdays = (
        _values(field, *bounds) for field, bounds in zip(fields, _FIELDS, strict=True)
    )
    any_day, any_weekday = (fields[position].split("/")[0] in _ANY for position in (2, 4))
    return Schedule(minutes, hours, days, months, weekdays, any_day, any_weekday, zone, pause)


def _zone(name: str | None) -> datetime.tzinfo:
    if not name:
        return datetime.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"unknown time zone {name}") from error


def _values(field: str, least: int, largest: int, names: list[str]) -> frozenset[int]:
    """Return the values that one field lists."""
    found: list[int] = []
    for part in field.split(","):
        span, slash, step_text = part.partition("/")
        first_text, dash, last_text = span.partition("-")
        if first_text in _ANY:
            first, last = least, largest
        else:
            first = _value(first_text, least, names)
            last = _value(last_text, least, names) if dash else largest if slash else first
        step = int(step_text) if slash else 1
        if not least <= first <= last <= largest or step < 1:
            raise ValueError(f"{part!r} is not within {least} and {largest}")
        found += range(first, last + 1, step)
    return frozenset(found)


def _value(text: str, least: int, names: list[str]) -> int:
    return least + names.index(text.lower()) if text.lower() in names else int(text)
