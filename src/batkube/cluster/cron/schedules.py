"""Computes the next activation time of a cron schedule, with daylight saving time.

The algorithm is that of SpecSchedule.Next and ConstantDelaySchedule.Next in github.com/robfig/cron/v3 (spec.go,
constantdelay.go), because it determines the behaviour when clocks change: a skipped hour has no activation, a repeated
hour has two. Local times are converted as by Go's time.Date.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

from batkube.kernel.instants import NANOSECONDS_PER_SECOND, UNIX_START, Duration, Instant

#: The search for an activation time ends after this many years (spec.go: yearLimit).
_YEARS_AHEAD = 5
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400
_MIDNIGHT = (0, 0, 0)
_UNIX_DAY = datetime.date(1970, 1, 1)


class ConstantDelaySchedule(NamedTuple):
    """`@every`: a constant delay after the last activation, on whole seconds."""

    delay: Duration

    def next_after(self, now: Instant) -> Instant:
        """Return the first activation time after `now`."""
        return Instant(now - now % NANOSECONDS_PER_SECOND + self.delay)


class FieldSchedule(NamedTuple):
    """A schedule of five fields. If neither day of month nor weekday is `*`, either of them may match."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    days_have_star: bool
    zone: datetime.tzinfo

    def next_after(self, now: Instant) -> Instant | None:
        """Return the first activation time after `now`, or None if there is none within five years."""
        if not (self.minutes and self.hours and self.months):
            return None
        try:
            next_s = _Search(self, (now - UNIX_START) // NANOSECONDS_PER_SECOND + 1).result()
        except (OverflowError, ValueError):  # Python's dates end with the year 9999.
            return None
        return None if next_s is None else Instant(UNIX_START + next_s * NANOSECONDS_PER_SECOND)

    def matches_day(self, day: datetime.date) -> bool:
        """Return whether the schedule can activate on that day (spec.go: dayMatches)."""
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_day and by_weekday if self.days_have_star else by_day or by_weekday


Schedule = FieldSchedule | ConstantDelaySchedule


class _Search:
    """A Unix time that is advanced until its local time matches all fields (spec.go: SpecSchedule.Next)."""

    def __init__(self, schedule: FieldSchedule, unix_s: int) -> None:
        self._schedule = schedule
        self._set_time(unix_s)
        #: Whether the smaller fields were reset to their minimum, which is done once, before the first step.
        self._has_stepped = False

    def result(self) -> int | None:
        last_year = self._local.year + _YEARS_AHEAD
        while self._local.year <= last_year:
            if self._month_fits() and self._day_fits() and self._hour_fits() and self._minute_fits():
                if not self._local.second:
                    return self._unix_s
                self._has_stepped = True
                self._set_time(self._unix_s + _MINUTE_S - self._local.second)
        return None

    def _month_fits(self) -> bool:
        """Advance to a matching month; return False if the year changed, so that all fields must be checked again."""
        while self._local.month not in self._schedule.months:
            if not self._has_stepped:
                self._set_local_time(self._local.date().replace(day=1), _MIDNIGHT)
            self._set_local_time(_month_after(self._local.date()), self._clock())
            if self._local.month == 1:
                return False
        return True

    def _day_fits(self) -> bool:
        while not self._schedule.matches_day(self._local):
            if not self._has_stepped:
                self._set_local_time(self._local.date(), _MIDNIGHT)
            before_s = self._unix_s
            self._set_local_time(self._local.date() + datetime.timedelta(days=1), self._clock())
            if hour := self._local.hour:
                # Midnight was skipped or repeated by a clock change: go back, or forward, to the start of the day.
                self._set_time(self._unix_s + (24 - hour if hour > 12 else -hour) * _HOUR_S)
            if self._unix_s <= before_s:
                # A whole day was skipped (Samoa, 30 December 2011): robfig/cron loops forever here.
                self._set_time(before_s + _DAY_S)
            if self._local.day == 1:
                return False
        return True

    def _hour_fits(self) -> bool:
        while self._local.hour not in self._schedule.hours:
            if not self._has_stepped:
                self._set_local_time(self._local.date(), (self._local.hour, 0, 0))
            self._set_time(self._unix_s + _HOUR_S)
            if self._local.hour == 0:
                return False
        return True

    def _minute_fits(self) -> bool:
        while self._local.minute not in self._schedule.minutes:
            if not self._has_stepped:
                self._has_stepped = True
                self._set_time(self._unix_s - self._unix_s % _MINUTE_S)
            self._set_time(self._unix_s + _MINUTE_S)
            if self._local.minute == 0:
                return False
        return True

    def _clock(self) -> tuple[int, int, int]:
        return self._local.hour, self._local.minute, self._local.second

    def _set_time(self, unix_s: int) -> None:
        self._unix_s = unix_s
        self._local = datetime.datetime.fromtimestamp(unix_s, self._schedule.zone)

    def _set_local_time(self, day: datetime.date, clock: tuple[int, int, int]) -> None:
        """Set the local time; one that is skipped or repeated by a clock change is resolved as by Go's time.Date."""
        hour, minute, second = clock
        as_if_utc_s = (day - _UNIX_DAY).days * _DAY_S + hour * _HOUR_S + minute * _MINUTE_S + second
        self._has_stepped = True
        self._set_time(as_if_utc_s - self._utc_offset_s(as_if_utc_s - self._utc_offset_s(as_if_utc_s)))

    def _utc_offset_s(self, unix_s: int) -> int:
        offset = datetime.datetime.fromtimestamp(unix_s, self._schedule.zone).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())


def _month_after(day: datetime.date) -> datetime.date:
    """Return the same day of the next month; 31 April becomes 1 May (Go: time.AddDate)."""
    first = datetime.date(day.year + day.month // 12, day.month % 12 + 1, 1)
    return first + datetime.timedelta(days=day.day - 1)
