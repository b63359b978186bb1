"""Parses and formats times and durations as Go does, with Go's error messages.

metav1.Time is RFC 3339 in whole seconds, metav1.MicroTime has exactly six decimals, metav1.Duration is `1m30s`. Each is
printed in canonical form, whatever form it was read in (Go: package time, Parse and ParseDuration).
"""

from __future__ import annotations

import datetime
import re

from batkube.kernel.memo import memoized

SECONDS_LAYOUT = "2006-01-02T15:04:05Z07:00"
MICROSECONDS_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"

#: The parts of both layouts: separator, the part as Go's layout writes it, its name, its minimum and maximum.
_DATE_PARTS = (
    ("", "2006", "year", 0, 9999),
    ("-", "01", "month", 1, 12),
    ("-", "02", "day", 0, 99),
    ("T", "15", "hour", 0, 23),
    (":", "04", "minute", 0, 59),
    (":", "05", "second", 0, 59),
)
_FRACTION = re.compile(r"[.,](\d+)", re.ASCII)
_ZONE = re.compile(r"Z|([+-])(\d\d):(\d\d)", re.ASCII)
_DURATION_PART = re.compile(r"(\d*)(?:\.(\d*))?([^0-9.]*)", re.ASCII)
_UNIT_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_INT64_MAX = 2**63 - 1
_DIGITS = len(str(_INT64_MAX))
#: Go's zero time, which means "unset". All times here are in UTC.
_ZERO = datetime.datetime(1, 1, 1)


class InvalidTime(ValueError):
    """The text is not a valid time or duration; the message is Go's."""


@memoized(4096)
def normalize_time(text: str) -> str | None:
    """Return a metav1.Time as kube-apiserver prints it, in UTC and whole seconds; None for Go's zero time."""
    time = _parse(text, SECONDS_LAYOUT).replace(microsecond=0)
    return None if time == _ZERO else time.isoformat(timespec="seconds") + "Z"


@memoized(4096)
def normalize_micro_time(text: str) -> str | None:
    """Return a metav1.MicroTime as kube-apiserver prints it, in UTC with six decimals; None for Go's zero time."""
    time = _parse(text, MICROSECONDS_LAYOUT)
    return None if time == _ZERO else time.isoformat(timespec="microseconds") + "Z"


def _parse(text: str, layout: str) -> datetime.datetime:
    """Parse part by part as Go does, so that the error names the first invalid part."""
    rest = text
    numbers = []
    for separator, layout_part, name, minimum, maximum in _DATE_PARTS:
        if not rest.startswith(separator):
            raise _parse_error(text, layout, rest, separator)
        rest = rest[len(separator) :]
        part, rest = rest, rest[len(layout_part) :]
        digits = part[: len(layout_part)]
        if not (len(digits) == len(layout_part) and digits.isascii() and digits.isdigit()):
            raise _parse_error(text, layout, part, layout_part)
        if not minimum <= int(digits) <= maximum:
            raise InvalidTime(f"parsing time {_quote(text)}: {name} out of range")
        numbers.append(int(digits))
    micros, rest = _fraction(text, layout, rest)
    utc_offset = _zone(text, layout, rest)
    year, month, day, hour, minute, second = numbers
    try:
        return datetime.datetime(year, month, day, hour, minute, second, micros) - utc_offset
    except OverflowError:
        return _ZERO
    except ValueError:
        raise InvalidTime(f"parsing time {_quote(text)}: day out of range") from None


def _fraction(text: str, layout: str, rest: str) -> tuple[int, str]:
    """Return the microseconds and the rest; seconds may have any number of decimals, microseconds have six."""
    match = _FRACTION.match(rest)
    if layout == SECONDS_LAYOUT:
        return (0, rest) if match is None else (int(match[1][:6].ljust(6, "0")), rest[match.end() :])
    if match is None or len(match[1]) < 6:
        raise _parse_error(text, layout, rest, ".000000")
    return int(match[1][:6]), rest[7:]


def _zone(text: str, layout: str, rest: str) -> datetime.timedelta:
    """Return the offset of local time from UTC."""
    match = _ZONE.match(rest)
    if match is None:
        raise _parse_error(text, layout, rest, "Z07:00")
    if match.end() < len(rest):
        raise InvalidTime(f"parsing time {_quote(text)}: extra text: {_quote(rest[match.end() :])}")
    sign, hours, minutes = match.groups()
    if sign is None:
        return datetime.timedelta()
    for number, maximum, name in ((hours, 24, "hour"), (minutes, 60, "minute")):
        if int(number) > maximum:
            raise InvalidTime(f"parsing time {_quote(text)}: time zone offset {name} out of range")
    offset = datetime.timedelta(hours=int(hours), minutes=int(minutes))
    return -offset if sign == "-" else offset


def _parse_error(text: str, layout: str, rest: str, part: str) -> InvalidTime:
    return InvalidTime(
        f"parsing time {_quote(text)} as {_quote(layout)}: cannot parse {_quote(rest)} as {_quote(part)}"
    )


@memoized(256)
def normalize_duration(text: str) -> str:
    """Return a metav1.Duration as kube-apiserver prints it: `90s` is `1m30s`."""
    ns = parse_go_duration(text)
    return "-" + format_go_duration(-ns) if ns < 0 else format_go_duration(ns)


def parse_go_duration(text: str) -> int:
    """Parse a duration as Go's ParseDuration does, in nanoseconds; it may be negative, such as `-1h30m`."""
    negative, rest = text.startswith("-"), text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    total = 0
    if not rest:
        raise InvalidTime(f"time: invalid duration {_quote(text)}")
    while rest:
        match = _DURATION_PART.match(rest)
        if match is None or not (match[1] or match[2]):
            raise InvalidTime(f"time: invalid duration {_quote(text)}")
        whole, fraction, unit = match[1].lstrip("0") or "0", match[2] or "", match[3]
        if not unit:
            raise InvalidTime(f"time: missing unit in duration {_quote(text)}")
        if unit not in _UNIT_NS:
            raise InvalidTime(f"time: unknown unit {_quote(unit)} in duration {_quote(text)}")
        fraction = fraction[:_DIGITS]
        # The extra digit makes the total exceed an int64 in every unit.
        total += int(whole[: _DIGITS + 1]) * _UNIT_NS[unit] + int(fraction or 0) * _UNIT_NS[unit] // 10 ** len(fraction)
        rest = rest[match.end() :]
    if total > _INT64_MAX:
        raise InvalidTime(f"time: invalid duration {_quote(text)}")
    return -total if negative else total


def format_go_duration(ns: int) -> str:
    """Format a duration as Go's Duration.String does: `1h0m0s`, `1.5s`, `250ms`."""
    if ns < 10**9:
        for unit, size in (("ms", 10**6), ("µs", 10**3), ("ns", 1)):
            if ns >= size:
                return _decimal(ns, size) + unit
        return "0s"
    minutes, rest = divmod(ns, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    seconds = _decimal(rest, 10**9) + "s"
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds


def _decimal(number: int, size: int) -> str:
    whole, rest = divmod(number, size)
    return f"{whole}.{str(rest).zfill(len(str(size)) - 1).rstrip('0')}" if rest else str(whole)


def _quote(text: str) -> str:
    """Quote as Go's package time does: it escapes every byte beyond ASCII."""
    return '"' + "".join(_escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if " " <= char < "\x80" else "".join(f"\\x{byte:02x}" for byte in char.encode(errors="replace"))
