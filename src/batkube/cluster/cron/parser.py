"""Parses CronJob schedules: five fields, descriptors such as `@daily`, `@every 90s`, with an optional time zone prefix.

API validation and the CronJob controller both parse here, so the controller understands every schedule that passes
validation. Syntax and messages are those of ParseStandard in github.com/robfig/cron/v3 (parser.go), which Kubernetes
calls in both places.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from batkube.cluster.cron.schedules import ConstantDelaySchedule, FieldSchedule, Schedule
from batkube.cluster.cron.time_zones import UnknownZone, zone_of
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration
from batkube.text.go_format import go_quote
from batkube.text.go_times import InvalidTime, parse_go_duration


class InvalidSchedule(ValueError):
    """The text is not a valid schedule; the message says why."""


class _Field(NamedTuple):
    low: int
    high: int
    names: Mapping[str, int] = MappingProxyType({})


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Field(0, 59),
    _Field(0, 23),
    _Field(1, 31),
    _Field(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field(0, 6, {name: number for number, name in enumerate(_WEEKDAYS)}),
)
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_INT64 = range(-(2**63), 2**63)
#: White space by Go's unicode.IsSpace; Python's str.split knows four more control characters.
_SPACE = "\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_split_fields = re.compile(f"[^{_SPACE}]+").findall
_trim = re.compile(f"^[{_SPACE}]+|[{_SPACE}]+$").sub
_is_integer = re.compile("[+-]?[0-9]+").fullmatch


def parse_schedule(text: str) -> Schedule:
    """Parse a schedule; raise InvalidSchedule."""
    if not text:
        raise InvalidSchedule("empty spec string")
    zone: datetime.tzinfo = datetime.UTC
    if text.startswith(("TZ=", "CRON_TZ=")):
        # robfig/cron panics if no space follows the zone. Here such a text has too few fields.
        prefix, _, rest = text.partition(" ")
        zone, text = _load_zone(prefix.partition("=")[2]), _trim("", rest)
    if text.startswith(_EVERY):
        return _parse_every(text)
    if text.startswith("@") and text not in _DESCRIPTORS:
        raise InvalidSchedule(f"unrecognized descriptor: {text}")
    return _from_fields(_split_fields(_DESCRIPTORS.get(text, text)), zone)


def _load_zone(name: str) -> datetime.tzinfo:
    try:
        return zone_of(name)
    except UnknownZone as problem:
        raise InvalidSchedule(f"provided bad location {name}: {problem}") from None


def _parse_every(text: str) -> ConstantDelaySchedule:
    """Parse `@every 90s`; the delay is rounded down to seconds, with a minimum of 1 s (constantdelay.go, Every)."""
    try:
        ns = parse_go_duration(text.removeprefix(_EVERY))
    except InvalidTime as problem:
        raise InvalidSchedule(f"failed to parse duration {text}: {problem}") from None
    return ConstantDelaySchedule(Duration(max(ns // NANOSECONDS_PER_SECOND, 1) * NANOSECONDS_PER_SECOND))


def _from_fields(texts: list[str], zone: datetime.tzinfo) -> FieldSchedule:
    if len(texts) != len(_FIELDS):
        raise InvalidSchedule(f"expected exactly 5 fields, found {len(texts)}: [{' '.join(texts)}]")
    listed = [_values(text, field) for text, field in zip(texts, _FIELDS, strict=True)]
    (minutes, _), (hours, _), (days, day_star), (months, _), (weekdays, weekday_star) = listed
    return FieldSchedule(minutes, hours, days, months, weekdays, day_star or weekday_star, zone)


def _values(text: str, field: _Field) -> tuple[frozenset[int], bool]:
    """Return the values of one field, and whether it has a `*` without a step."""
    values: set[int] = set()
    has_star = False
    for expression in filter(None, text.split(",")):
        span = _range(expression, field)
        values.update(span)
        has_star |= expression[0] in "*?" and span.step == 1
    return frozenset(values), has_star


def _range(expression: str, field: _Field) -> range:
    """Parse `3`, `3-5`, `3-5/2`, `3/2` (up to the maximum), `*` or `*/2` (parser.go, getRange)."""
    span, *steps = expression.split("/")
    low, *highs = span.split("-")
    if low in ("*", "?"):
        start, end = field.low, field.high
    else:
        start = _number(low, field.names)
        if len(highs) > 1:
            raise InvalidSchedule(f"too many hyphens: {expression}")
        end = _number(highs[0], field.names) if highs else start
    if len(steps) > 1:
        raise InvalidSchedule(f"too many slashes: {expression}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not highs:
        end = field.high
    if start < field.low:
        raise InvalidSchedule(f"beginning of range ({start}) below minimum ({field.low}): {expression}")
    if end > field.high:
        raise InvalidSchedule(f"end of range ({end}) above maximum ({field.high}): {expression}")
    if start > end:
        raise InvalidSchedule(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise InvalidSchedule(f"step of range should be a positive number: {expression}")
    return range(start, end + 1, step)


def _number(text: str, names: Mapping[str, int]) -> int:
    # Go's strings.ToLower maps letter by letter, and the Turkish İ to a plain i.
    if (name := text.replace("İ", "i").lower()) in names:
        return names[name]
    # Longer numbers are out of range anyway, and int() rejects very long ones.
    number = int(text) if _is_integer(text) and len(text) < 400 else None
    if number is None or number not in _INT64:
        reason = "value out of range" if _is_integer(text) else "invalid syntax"
        raise InvalidSchedule(f"failed to parse int from {text}: strconv.Atoi: parsing {go_quote(text)}: {reason}")
    if number < 0:
        raise InvalidSchedule(f"negative number ({number}) not allowed: {text}")
    return number
