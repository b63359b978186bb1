"""Virtual time.

An `Instant` is a point in virtual time, a `Duration` a length of it. Both are integer nanoseconds, so that sums and
comparisons are exact in any order of operations. Decimal seconds exist only in files: `seconds` parses them exactly
(never through a binary float if the text is available) and `format_seconds` prints them.
"""

from __future__ import annotations

import datetime
import functools
import re
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, Overflow
from typing import NewType

Instant = NewType("Instant", int)
"""Nanoseconds since the start of the run."""

Duration = NewType("Duration", int)
"""A length of virtual time in nanoseconds."""

START = Instant(0)
NANOSECONDS_PER_SECOND = 1_000_000_000
#: The latest possible instant of a run: the largest int64 of nanoseconds, about 292 years.
LATEST_NS = 2**63 - 1

#: The calendar date of Instant 0, for Kubernetes timestamps. Fixed, so that two runs write the same bytes.
EPOCH = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_NAIVE_EPOCH = EPOCH.replace(tzinfo=None)
#: The Unix epoch as an instant.
UNIX_START = Instant(int(-EPOCH.timestamp()) * NANOSECONDS_PER_SECOND)

_UNIT_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION_TEXT = re.compile(r"((?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(ms|us|ns|min|[smhdw]?)")
_FRACTION_UNITS = {"ms": Decimal("1e-3"), "us": Decimal("1e-6"), "ns": Decimal("1e-9")}


def after(now: Instant, wait: Duration) -> Instant:
    """Return the instant `wait` after `now`."""
    return Instant(now + wait)


class TooLong(ValueError):
    """A duration is valid but longer than the longest possible run."""


def seconds(value: int | float | str | Decimal) -> Duration:
    """Parse decimal seconds, rounded to the nearest nanosecond.

    A float is converted through its shortest decimal text, so that 0.1 is exactly one tenth. Raises ValueError if
    `value` is not a finite number or exceeds the longest possible run.
    """
    ns = value * NANOSECONDS_PER_SECOND if type(value) is int else _exact_ns(value)
    if not -LATEST_NS <= ns <= LATEST_NS:
        raise TooLong(f"{value} s is more than the 292 years a run can last")
    return Duration(ns)


def bounded_seconds(value: int) -> Duration:
    """Convert whole seconds of an API field, clamped to the longest possible run: clients may write any int64."""
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
    """Parse a duration such as `90`, `1.5h`, `2d`, `1h30m` or `250ms`; a bare number is in seconds."""
    total = Decimal(0)
    position = 0
    stripped = text.strip()
    while position < len(stripped):
        match = _DURATION_TEXT.match(stripped, position)
        if match is None:
            break
        number, unit = match.groups()
        if not unit and match.end() < len(stripped):
            break  # reject a version number: 1.34.4 is not 1.34 s plus 0.4 s
        try:
            total += Decimal(number) * _FRACTION_UNITS.get(unit, Decimal(_UNIT_SECONDS.get(unit, 0)))
        except Overflow:
            raise TooLong(f"{text} is more than the 292 years a run can last") from None
        position = match.end()
    if stripped.startswith("-") and _DURATION_TEXT.match(stripped, 1):
        raise ValueError(f"{text!r} is negative; a duration cannot be")
    if not stripped or position < len(stripped):
        raise ValueError(f"{text!r} is not a duration; write seconds, or a number with ms, s, m, h, d or w")
    return seconds(total)


def format_seconds(ns: int) -> str:
    """Format `ns` as seconds with six decimals, as Batsim prints them; rounds half up, exactly."""
    if ns % NANOSECONDS_PER_SECOND == 0:
        return f"{ns // NANOSECONDS_PER_SECOND}.000000"
    sign = "-" if ns < 0 else ""
    micros = (abs(ns) + 500) // 1000
    return f"{sign}{micros // 1_000_000}.{micros % 1_000_000:06d}"


def as_float_s(ns: int) -> float:
    """Convert `ns` to float seconds; only for statistics and plots."""
    return ns / NANOSECONDS_PER_SECOND


def rfc3339(instant: Instant) -> str:
    """Return the Kubernetes timestamp of `instant` in whole seconds, rounded down, as metav1.Time does."""
    return _timestamp(instant // NANOSECONDS_PER_SECOND)


def rfc3339_micro(instant: Instant) -> str:
    """Return the Kubernetes timestamp of `instant` in microseconds, rounded down, as metav1.MicroTime does."""
    return f"{rfc3339(instant)[:-1]}.{instant // 1000 % 1_000_000:06d}Z"


@functools.lru_cache(maxsize=1024)
def instant_of(timestamp: str) -> Instant:
    """Parse an RFC 3339 timestamp, to the microsecond. Raises ValueError."""
    date_time = datetime.datetime.fromisoformat(timestamp)
    since = (date_time if date_time.tzinfo else date_time.replace(tzinfo=datetime.UTC)) - EPOCH
    return Instant(((since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds) * 1000)


@functools.lru_cache(maxsize=1024)
def _timestamp(seconds_since: int) -> str:
    return f"{(_NAIVE_EPOCH + datetime.timedelta(seconds=seconds_since)).isoformat()}Z"


def human_duration(ns: int) -> str:
    """Format a duration for people: `2 d 3 h`, `36 min 50 s`, `1.5 s`."""
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
