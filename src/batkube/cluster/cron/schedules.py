"""The moments of a cron schedule: which one comes next, daylight saving and all.

The steps are those of SpecSchedule.Next and ConstantDelaySchedule.Next of github.com/robfig/cron/v3 (spec.go,
constantdelay.go), because what happens when clocks are set follows from them: an hour that is left out is passed
over, one that comes twice counts twice. Local times become moments as Go's time.Date makes them so.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

from batkube.kernel.instants import NANOSECONDS_PER_SECOND, UNIX_START, Duration, Instant

#: A schedule without a date in so many years has none.
_YEARS_AHEAD = 5
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400
_MIDNIGHT = (0, 0, 0)
_UNIX_DAY = datetime.date(1970, 1, 1)


class ConstantDelaySchedule(NamedTuple):
    """`@every`: so long after the last time, on the second."""

    delay: Duration

    def next_after(self, now: Instant) -> Instant:
        """Return the first moment after `now`."""
        return Instant(now - now % NANOSECONDS_PER_SECOND + self.delay)


class FieldSchedule(NamedTuple):
    """The minutes whose five fields are all listed; of the two kinds of day, one will do if neither has a star."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    days_have_star: bool
    zone: datetime.tzinfo

    def next_after(self, now: Instant) -> Instant | None:
        """Return the first moment after `now`, or None when there is none in five years."""
        if not (self.minutes and self.hours and self.months):
            return None
        try:
            next_s = _Search(self, (now - UNIX_START) // NANOSECONDS_PER_SECOND + 1).result()
        except (OverflowError, ValueError):  # No calendar of ours goes beyond the year 9999.
            return None
        return None if next_s is None else Instant(UNIX_START + next_s * NANOSECONDS_PER_SECOND)

    def matches_day(self, day: datetime.date) -> bool:
        """Return whether something may happen on that day of the month and of the week."""
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_day and by_weekday if self.days_have_star else by_day or by_weekday


Schedule = FieldSchedule | ConstantDelaySchedule


class _Search:
    """A moment, in seconds of Unix' count, that goes forward until its local time has all the fields right."""

    def __init__(self, schedule: FieldSchedule, unix_s: int) -> None:
        self._schedule = schedule
        self._set_time(unix_s)
        #: Whether the smaller fields were set to their beginnings, which is done once, before the first step.
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
        """Step to a month that is listed; False if a year began on the way, and everything must be looked at again."""
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
                # Midnight was left out, or came twice: back to the beginning of the day, or on to it.
                self._set_time(self._unix_s + (24 - hour if hour > 12 else -hour) * _HOUR_S)
            if self._unix_s <= before_s:
                # A whole day was left out (Samoa, 30 December 2011): the library goes round for ever here.
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
        """Go to a local time; where clocks are set just then, to the moment that Go's time.Date takes it for."""
        hour, minute, second = clock
        as_if_utc_s = (day - _UNIX_DAY).days * _DAY_S + hour * _HOUR_S + minute * _MINUTE_S + second
        self._has_stepped = True
        self._set_time(as_if_utc_s - self._utc_offset_s(as_if_utc_s - self._utc_offset_s(as_if_utc_s)))

    def _utc_offset_s(self, unix_s: int) -> int:
        offset = datetime.datetime.fromtimestamp(unix_s, self._schedule.zone).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())


def _month_after(day: datetime.date) -> datetime.date:
    """Return the same day a month later; 31 April is 1 May (Go: AddDate)."""
    first = datetime.date(day.year + day.month // 12, day.month % 12 + 1, 1)
    return first + datetime.timedelta(days=day.day - 1)
