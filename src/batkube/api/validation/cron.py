"""Schedules of cron jobs: the syntax of five fields, descriptors such as @daily, and time zones.

The words are those of the Go library github.com/robfig/cron, which Kubernetes parses schedules with.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from batkube.api.validation.problems import Problems
from batkube.cluster.go_text import go_quote
from batkube.cluster.time_text import NotATime, stored_duration
from batkube.kernel.numbers import int_of


class BadSchedule(ValueError):
    """The text is no schedule; says why."""


class _Field(NamedTuple):
    low: int
    high: int
    names: Mapping[str, int] = MappingProxyType({})


_MONTHS = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_DAYS = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_FIELDS = (_Field(0, 59), _Field(0, 23), _Field(1, 31), _Field(1, 12, _MONTHS), _Field(0, 6, _DAYS))
_DESCRIPTORS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_EVERY = "@every "
_is_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


def parse_schedule(text: str) -> None:
    """Raise BadSchedule unless `text` is a schedule."""
    if not text:
        raise BadSchedule("empty spec string")
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, _, rest = text.partition(" ")
        if wrong := _zone_problem(zone.partition("=")[2]):
            raise BadSchedule(f"provided bad location {zone.partition('=')[2]}: {wrong}")
        text = rest.strip()
    if text.startswith("@"):
        _parse_descriptor(text)
        return
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise BadSchedule(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for part, field in zip(fields, _FIELDS, strict=True):
        for expression in filter(None, part.split(",")):
            _parse_range(expression, field)


def _parse_descriptor(text: str) -> None:
    if text in _DESCRIPTORS:
        return
    if not text.startswith(_EVERY):
        raise BadSchedule(f"unrecognized descriptor: {text}")
    try:
        stored_duration(text.removeprefix(_EVERY))
    except NotATime as problem:
        raise BadSchedule(f"failed to parse duration {text}: {problem}") from None


def _parse_range(expression: str, field: _Field) -> None:
    span, *steps = expression.split("/")
    low, *highs = span.split("-")
    if low in ("*", "?"):
        start, end = field.low, field.high
    else:
        start = _number(low, field.names)
        if len(highs) > 1:
            raise BadSchedule(f"too many hyphens: {expression}")
        end = _number(highs[0], field.names) if highs else start
    if len(steps) > 1:
        raise BadSchedule(f"too many slashes: {expression}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not highs:
        end = field.high
    if start < field.low:
        raise BadSchedule(f"beginning of range ({start}) below minimum ({field.low}): {expression}")
    if end > field.high:
        raise BadSchedule(f"end of range ({end}) above maximum ({field.high}): {expression}")
    if start > end:
        raise BadSchedule(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise BadSchedule(f"step of range should be a positive number: {expression}")


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    is_number = re.fullmatch(r"[+-]?[0-9]+", text)
    number = int_of(text) if is_number else None
    if number is None:
        reason = f"strconv.Atoi: parsing {go_quote(text)}: {'value out of range' if is_number else 'invalid syntax'}"
        raise BadSchedule(f"failed to parse int from {text}: {reason}")
    if number < 0:
        raise BadSchedule(f"negative number ({number}) not allowed: {text}")
    return number


def check_schedule(text: str, path: str, problems: Problems, zone: str | None, old: str | None) -> None:
    """Check a schedule; only one that named a time zone before may go on doing so."""
    if not text:
        problems.required(path)
        return
    try:
        parse_schedule(text)
    except BadSchedule as wrong:
        problems.invalid(path, text, str(wrong))
    if "TZ" not in text:
        return
    if old is None or "TZ" not in old:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        problems.invalid(path, text, detail)
    elif zone is not None:
        problems.invalid(path, text, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def check_zone(zone: str, path: str, problems: Problems) -> None:
    """Check the name of a time zone."""
    if not zone:
        problems.invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _is_zone_part(part):
            problems.invalid(path, zone, f"unknown time zone {zone}")
            return
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        problems.invalid(path, zone, detail)
    if wrong := _zone_problem(zone):
        problems.invalid(path, zone, wrong)


def _zone_problem(zone: str) -> str:
    """Return what Go's time.LoadLocation says; it takes "" and "UTC" for UTC, and "Local" for itself."""
    if zone in ("", "UTC", "Local"):
        return ""
    if ".." in zone or zone.startswith(("/", "\\")) or "\\" in zone:
        return "time: invalid location name"
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return f"unknown time zone {zone}"
    return ""
