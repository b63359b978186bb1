"""Timestamps and durations in CEL: parsing, formatting and accessors."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from batkube.api.cel.values import CelDuration, CelError, Timestamp
from batkube.kernel.numbers import parse_int

_NS = 10**9
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_match_timestamp = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
).fullmatch
#: Written so that the digits match in one way only, which prevents catastrophic backtracking.
_DURATION_PART = r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_is_duration = re.compile(rf"(?:{_DURATION_PART})+", re.ASCII).fullmatch
_duration_parts = re.compile(_DURATION_PART, re.ASCII).findall
_UNITS_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": _NS, "m": 60 * _NS, "h": 3600 * _NS}
#: A number is matched from its first digit only, not from each of its digits.
_worded_parts = re.compile(r"(?<!\d)(\d+)\s*([A-Za-zµ]+)", re.ASCII)
_WORDED_UNITS = (
    (("ns",), "nano", 1),
    (("us", "µs"), "micro", 10**3),
    (("ms",), "milli", 10**6),
    (("s",), "sec", _NS),
    (("m",), "min", 60 * _NS),
    (("h", "hr"), "hour", 3600 * _NS),
    (("d",), "day", 86400 * _NS),
    (("w", "wk"), "week", 604800 * _NS),
)
#: A duration is an int64 of nanoseconds; digits beyond that precision are ignored (Go: time, leadingFraction).
_DURATION_MAX_NS = 2**63 - 1
_FRACTION_DIGITS = 18
#: From year 1 to year 9999.
_TIMESTAMP_RANGE_S = range(-62_135_596_800, 253_402_300_800)
_BAD_DURATION = "type conversion error from 'string' to 'google.protobuf.Duration'"
_BAD_TIMESTAMP = "type conversion error from 'string' to 'google.protobuf.Timestamp'"
_is_offset = re.compile(r"([+-]?)(\d{2}):(\d{2})").fullmatch


def parse_timestamp(text: str) -> Timestamp:
    """Parse RFC 3339; raises CelError."""
    match = _match_timestamp(text)
    if match is None:
        raise CelError(_BAD_TIMESTAMP)
    date, time, fraction, zone = match.groups()
    zone = "+00:00" if zone in "Zz" else zone
    try:
        moment = datetime.datetime.fromisoformat(f"{date}T{time}{zone}")
    except ValueError:
        raise CelError(_BAD_TIMESTAMP) from None
    seconds = (moment - _EPOCH) // datetime.timedelta(seconds=1)
    return Timestamp(seconds * _NS + int((fraction or "0").ljust(9, "0")))


def checked_timestamp(ns: int) -> Timestamp:
    """Return a timestamp between the years 1 and 9999; raises CelError (cel-go: common/types/overflow.go)."""
    if ns // _NS not in _TIMESTAMP_RANGE_S:
        raise CelError("timestamp overflow")
    return Timestamp(ns)


def checked_duration(ns: int) -> CelDuration:
    """Return a duration; raises CelError if it overflows an int64."""
    if abs(ns) > _DURATION_MAX_NS:
        raise CelError("integer overflow")
    return CelDuration(ns)


def parse_date(text: str) -> Timestamp:
    """Parse a date, as midnight in UTC."""
    return parse_timestamp(f"{text}T00:00:00Z")


def parse_duration(text: str) -> CelDuration:
    """Parse Go's notation, such as `1h30m`; raises CelError."""
    body = text.lstrip("+-")
    if body == "0":
        return CelDuration(0)
    if _is_duration(body) is None or len(text) - len(body) > 1:
        raise CelError(_BAD_DURATION)
    total = sum(_scaled(number, _UNITS_NS[unit]) for number, unit in _duration_parts(body))
    if total > _DURATION_MAX_NS:
        raise CelError(_BAD_DURATION)
    return CelDuration(-total if text.startswith("-") else total)


def parse_worded_duration(text: str) -> CelDuration:
    """Parse the format `duration`: Go's notation, or `3 days`; raises CelError."""
    try:
        return parse_duration(text)
    except CelError:
        parts = [(_parse_digits(number), _unit_ns(unit.lower())) for number, unit in _worded_parts.findall(text)]
        total = sum(number * unit for number, unit in parts)
        if not any(unit for _, unit in parts) or total > _DURATION_MAX_NS:
            raise
        return CelDuration(total)


def _unit_ns(word: str) -> int:
    """Return the length of a unit by its abbreviation or by a prefix of its name, 0 if it is unknown."""
    for shorts, start, ns in _WORDED_UNITS:
        if word in shorts or word.startswith(start):
            return ns
    return 0


def _scaled(number: str, unit: int) -> int:
    whole, _, fraction = number.partition(".")
    fraction = fraction[:_FRACTION_DIGITS]
    return _parse_digits(whole or "0") * unit + int(fraction or "0") * unit // int(10 ** len(fraction))


def _parse_digits(digits: str) -> int:
    """Return a number; one with too many digits exceeds every duration."""
    number = parse_int(digits)
    return _DURATION_MAX_NS + 1 if number is None else number


def format_timestamp(value: Timestamp) -> str:
    """Format as RFC 3339, with the shortest fraction."""
    seconds, rest = divmod(value.ns, _NS)
    moment = _EPOCH + datetime.timedelta(seconds=seconds)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + fraction + "Z"


def format_duration(value: CelDuration) -> str:
    """Format as decimal seconds, as CEL does."""
    seconds, rest = divmod(abs(value.ns), _NS)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if value.ns < 0 else ''}{seconds}{fraction}s"


def _in_time_zone(value: Timestamp, zone: str) -> datetime.datetime:
    try:
        return (_EPOCH + datetime.timedelta(microseconds=value.ns // 1000)).astimezone(_time_zone(zone))
    except (OverflowError, ValueError):
        raise CelError("timestamp overflow") from None


def _time_zone(name: str) -> datetime.tzinfo:
    """Return a time zone by its offset or by its name in the tz database."""
    offset = _is_offset(name)
    try:
        if offset is None:
            return ZoneInfo(name)
        minutes = int(offset[2]) * 60 + int(offset[3])
        return datetime.timezone(datetime.timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CelError(f"unknown time zone {name}") from None


_TIME_FIELDS: dict[str, Callable[[datetime.datetime], int]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
    "getMilliseconds": lambda moment: moment.microsecond // 1000,
}


def _time_field_getters(of: Callable[[datetime.datetime], int]) -> tuple[Callable[..., int], Callable[..., int]]:
    return lambda value: of(_in_time_zone(value, "UTC")), lambda value, zone: of(_in_time_zone(value, zone))


FUNCTIONS: list[tuple[str, str, Callable[..., Any]]] = [
    ("timestamp", "(string) -> timestamp", parse_timestamp),
    ("timestamp", "(timestamp) -> timestamp", lambda value: value),
    ("timestamp", "(int) -> timestamp", lambda seconds: checked_timestamp(seconds * _NS)),
    ("duration", "(string) -> duration", parse_duration),
    ("duration", "(duration) -> duration", lambda value: value),
    ("getHours", "duration.() -> int", lambda value: int(value.ns / (3600 * _NS))),
    ("getMinutes", "duration.() -> int", lambda value: int(value.ns / (60 * _NS))),
    ("getSeconds", "duration.() -> int", lambda value: int(value.ns / _NS)),
    ("getMilliseconds", "duration.() -> int", lambda value: int(value.ns / 10**6) % 1000),
]
"""All functions, with their signatures."""

for _name, _of in _TIME_FIELDS.items():
    _plain, _zoned = _time_field_getters(_of)
    FUNCTIONS += [(_name, "timestamp.() -> int", _plain), (_name, "timestamp.(string) -> int", _zoned)]
