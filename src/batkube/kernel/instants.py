"""Virtual time.

An `Instant` is a point of virtual time, a `Duration` a length; both are integer nanoseconds, so that sums and
comparisons are exact whatever the order of the operations. Decimal seconds exist only in files: `seconds` reads
them exactly (never through a binary float where the text is at hand) and `format_seconds` writes them.
"""

from __future__ import annotations

import datetime
import functools
import re
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import NewType

Instant = NewType("Instant", int)
"""Nanoseconds since the start of the run."""

Duration = NewType("Duration", int)
"""A length of virtual time in nanoseconds."""

START = Instant(0)
NANOSECONDS_PER_SECOND = 1_000_000_000
#: No instant of a run may lie beyond this: what an int64 of nanoseconds holds, about 292 years.
LATEST_NS = 2**63 - 1

#: The calendar date of Instant 0, for Kubernetes timestamps. Fixed, so that two runs write the same bytes.
EPOCH = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_NAIVE_EPOCH = EPOCH.replace(tzinfo=None)
#: The instant from which Unix counts its seconds.
UNIX_START = Instant(int(-EPOCH.timestamp()) * NANOSECONDS_PER_SECOND)

_UNIT_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION_TEXT = re.compile(r"((?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(ms|us|ns|min|[smhdw]?)")
_FRACTION_UNITS = {"ms": Decimal("1e-3"), "us": Decimal("1e-6"), "ns": Decimal("1e-9")}


def after(now: Instant, wait: Duration) -> Instant:
    """Return the instant `wait` after `now`."""
    return Instant(now + wait)


class TooLong(ValueError):
    """A time is a number, and more than a run can last."""


def seconds(value: int | float | str | Decimal) -> Duration:
    """Return decimal seconds as a Duration, to the nearest nanosecond.

    A float is taken at its shortest decimal text, so that 0.1 means one tenth. Raises ValueError for what is not a
    finite number or does not fit the run's time.
    """
    ns = value * NANOSECONDS_PER_SECOND if type(value) is int else _exact_ns(value)
    if not -LATEST_NS <= ns <= LATEST_NS:
        raise TooLong(f"{value} s is more than the 292 years a run can last")
    return Duration(ns)


def bounded_seconds(value: int) -> Duration:
    """Return whole seconds of an object's field, at most as long as any run can last: clients may write any int64."""
    return Duration(max(-LATEST_NS, min(value * NANOSECONDS_PER_SECOND, LATEST_NS)))


def _exact_ns(value: float | str | Decimal) -> int:
    try:
        decimal = Decimal(repr(value) if isinstance(value, float) else value)
        if not decimal.is_finite():
            raise ValueError(f"{value} is not a finite number of seconds")
        if decimal.adjusted() > 12:
            raise TooLong(f"{value} s is more than the 292 years a run can last")
        return int((decimal * NANOSECONDS_PER_SECOND).to_integral_value(ROUND_HALF_EVEN))
    except InvalidOperation:
        raise ValueError(f"{value!r} is not a number of seconds") from None


def duration(text: str) -> Duration:
    """Return what a person means by `90`, `1.5h`, `2d`, `1h30m` or `250ms`; a bare number is seconds."""
    total = Decimal(0)
    position = 0
    stripped = text.strip()
    while position < len(stripped):
        match = _DURATION_TEXT.match(stripped, position)
        if match is None:
            break
        number, unit = match.groups()
        if not unit and match.end() < len(stripped):
            break  # a version, such as 1.34.4, is not 1.34 s and 0.4 s
        total += Decimal(number) * _FRACTION_UNITS.get(unit, Decimal(_UNIT_SECONDS.get(unit, 0)))
        position = match.end()
    if stripped.startswith("-") and _DURATION_TEXT.match(stripped, 1):
        raise ValueError(f"{text!r} is negative, which no duration is")
    if not stripped or position < len(stripped):
        raise ValueError(f"{text!r} is not a duration; write seconds, or a number with ms, s, m, h, d or w")
    return seconds(total)


def format_seconds(ns: int) -> str:
    """Return `ns` as seconds with six decimals, as Batsim prints them; rounds half up, exactly."""
    if ns % NANOSECONDS_PER_SECOND == 0:
        return f"{ns // NANOSECONDS_PER_SECOND}.000000"
    sign = "-" if ns < 0 else ""
    micros = (abs(ns) + 500) // 1000
    return f"{sign}{micros // 1_000_000}.{micros % 1_000_000:06d}"


def as_float_s(ns: int) -> float:
    """Return `ns` as float seconds, for statistics and pictures only."""
    return ns / NANOSECONDS_PER_SECOND


def rfc3339(instant: Instant) -> str:
    """Return the Kubernetes timestamp of `instant`: whole seconds, rounded down, as metav1.Time marshals them."""
    return _timestamp(instant // NANOSECONDS_PER_SECOND)


def rfc3339_micro(instant: Instant) -> str:
    """Return the Kubernetes timestamp of `instant` to the microsecond, rounded down, as metav1.MicroTime."""
    return f"{rfc3339(instant)[:-1]}.{instant // 1000 % 1_000_000:06d}Z"


@functools.lru_cache(maxsize=1024)
def instant_of(timestamp: str) -> Instant:
    """Return the instant that an RFC 3339 timestamp names, to the microsecond. Raises ValueError."""
    moment = datetime.datetime.fromisoformat(timestamp)
    since = (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)) - EPOCH
    return Instant(((since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds) * 1000)


@functools.lru_cache(maxsize=1024)
def _timestamp(seconds_since: int) -> str:
    return f"{(_NAIVE_EPOCH + datetime.timedelta(seconds=seconds_since)).isoformat()}Z"


def human_duration(ns: int) -> str:
    """Return a length of time as a person would say it: `2 d 3 h`, `36 min 50 s`, `1.5 s`."""
    whole_s = ns // NANOSECONDS_PER_SECOND
    if whole_s < 60:
        return f"{as_float_s(ns):.4g} s"
    for (large, large_s), (small, small_s) in (
        (("d", 86400), ("h", 3600)),
        (("h", 3600), ("min", 60)),
        (("min", 60), ("s", 1)),
    ):
        if whole_s >= large_s:
            count, rest = divmod(whole_s, large_s)
            return f"{count} {large} {rest // small_s} {small}" if rest // small_s else f"{count} {large}"
    raise AssertionError("unreachable: every length of a minute or more has a unit")
