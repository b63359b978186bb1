"""String functions: the standard ones, cel-go's strings extension and Kubernetes' regex library."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from batkube.api.cel.functions import regex
from batkube.api.cel.functions.times import format_duration, format_timestamp
from batkube.api.cel.syntax.lexer import Value
from batkube.api.cel.values import CelDuration, CelError, Timestamp, type_name
from batkube.kernel.numbers import parse_int
from batkube.text.go_format import go_quote, go_value

_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER = {lower: upper for upper, lower in _LOWER.items()}
#: The maximum precision of a format clause.
_PRECISION_MAX = 1000
_find_format_verbs = re.compile(r"%(?:\.(\d+))?([sdfeboxX%])")


def _compile_pattern(text: str) -> regex.Pattern:
    try:
        return regex.compile_pattern(text)
    except regex.BadPattern as problem:
        raise CelError(str(problem)) from None


def _checked_index(index: int, length: int) -> int:
    if not 0 <= index <= length:
        raise CelError(f"index out of range: {index}")
    return index


def _char_at(text: str, index: int) -> str:
    return text[_checked_index(index, len(text)) :][:1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    return text.find(part, _checked_index(start, len(text)))


def _last_index_of(text: str, part: str, end: int | None = None) -> int:
    if end is None:
        return text.rfind(part)
    return text.rfind(part, 0, _checked_index(end, len(text)) + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    _checked_index(start, len(text))
    if end is None:
        return text[start:]
    if start > _checked_index(end, len(text)):
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    return text[start:end]


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        parts = list(text)
        return parts if limit < 0 or len(parts) <= limit else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _join(items: list[Any], separator: str = "") -> str:
    if not all(isinstance(item, str) for item in items):
        raise CelError("no such overload")
    return separator.join(items)


def _find(text: str, pattern: str) -> str:
    match = _compile_pattern(pattern).search(text)
    return match[0] if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    matches = _compile_pattern(pattern).finditer(text)
    return [match[0] for match in (matches if limit < 0 else itertools.islice(matches, limit))]


def _format(template: str, arguments: list[Any]) -> str:
    """Format a template, as in `'%s is %d'.format([a, b])`."""
    remaining = list(arguments)

    def clause(match: re.Match[str]) -> str:
        precision, kind = match.groups()
        if kind == "%":
            return "%"
        if not remaining:
            raise CelError(f"index {len(arguments)} out of range")
        return _format_value(remaining.pop(0), kind, precision)

    return _find_format_verbs.sub(clause, template)


def _format_value(value: Value, kind: str, precision: str | None) -> str:
    if kind == "s":
        return string_of(value)
    if kind in "fe" and isinstance(value, int | float) and not isinstance(value, bool):
        digits = parse_int(precision or "6")
        if digits is None or digits > _PRECISION_MAX:
            raise CelError(f"error during formatting: precision beyond {_PRECISION_MAX}")
        return f"{value:.{digits}{kind}}"
    if kind in "dboxX" and isinstance(value, int) and (not isinstance(value, bool) or kind == "b"):
        return format(int(value), kind)
    raise CelError(f"error during formatting: cannot format {type_name(value)} with %{kind}")


def string_of(value: Value) -> str:
    """Format a value as %s does."""
    if value is None:
        return "null"
    if isinstance(value, Timestamp):
        return format_timestamp(value)
    if isinstance(value, CelDuration):
        return format_duration(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list):
        return f"[{', '.join(string_of(item) for item in value)}]"
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{string_of(key)}: {string_of(value[key])}" for key in sorted(value, key=string_of)) + "}"
        )
    return go_value(value)


FUNCTIONS: list[tuple[str, str, Callable[..., Any]]] = [
    ("startsWith", "string.(string) -> bool", str.startswith),
    ("endsWith", "string.(string) -> bool", str.endswith),
    ("contains", "string.(string) -> bool", lambda text, part: part in text),
    ("matches", "string.(string) -> bool", lambda text, pattern: _compile_pattern(pattern).search(text) is not None),
    ("find", "string.(string) -> string", _find),
    ("findAll", "string.(string) -> list(string)", _find_all),
    ("findAll", "string.(string, int) -> list(string)", _find_all),
    ("charAt", "string.(int) -> string", _char_at),
    ("indexOf", "string.(string) -> int", _index_of),
    ("indexOf", "string.(string, int) -> int", _index_of),
    ("lastIndexOf", "string.(string) -> int", _last_index_of),
    ("lastIndexOf", "string.(string, int) -> int", _last_index_of),
    ("lowerAscii", "string.() -> string", lambda text: text.translate(_LOWER)),
    ("upperAscii", "string.() -> string", lambda text: text.translate(_UPPER)),
    ("replace", "string.(string, string) -> string", str.replace),
    ("replace", "string.(string, string, int) -> string", str.replace),
    ("split", "string.(string) -> list(string)", _split),
    ("split", "string.(string, int) -> list(string)", _split),
    ("join", "list(string).() -> string", _join),
    ("join", "list(string).(string) -> string", _join),
    ("substring", "string.(int) -> string", _substring),
    ("substring", "string.(int, int) -> string", _substring),
    ("trim", "string.() -> string", str.strip),
    ("format", "string.(list(dyn)) -> string", _format),
    ("strings.quote", "(string) -> string", go_quote),
    ("jsonpatch.escapeKey", "(string) -> string", lambda key: key.replace("~", "~0").replace("/", "~1")),
]
"""All functions, with their signatures."""
