"""Conversions between the types of CEL: `int(x)`, `string(x)` and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batkube.api.cel.functions.times import format_duration, format_timestamp
from batkube.api.cel.syntax.lexer import Unsigned
from batkube.api.cel.values import CelError, checked_integer
from batkube.kernel.numbers import parse_float, parse_int
from batkube.text.go_format import go_value

_NS = 10**9
_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


def _parse_integer(text: str, like: int, kind: str) -> int:
    """Parse an integer; raises CelError if the string is not one, or it overflows (Go: strconv)."""
    try:
        return checked_integer(_checked_int(parse_int(text)), like)
    except (CelError, ValueError):
        raise CelError(f"type conversion error from 'string' to '{kind}'") from None


def _checked_int(number: int | None) -> int:
    if number is None:
        raise ValueError("beyond every integer")
    return number


def _string_to_int(text: str) -> int:
    return _parse_integer(text, 0, "int")


def _string_to_uint(text: str) -> int:
    return _parse_integer(text if text[:1].isdigit() else "", Unsigned(0), "uint")


def _string_to_double(text: str) -> float:
    try:
        return parse_float(text)
    except ValueError:
        raise CelError("type conversion error from 'string' to 'double'") from None


def _string_to_bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise CelError("type conversion error from 'string' to 'bool'")


def _double_to_int(number: float) -> int:
    if number != number or abs(number) == float("inf"):
        raise CelError("integer overflow")
    return checked_integer(int(number), 0)


def _bytes_to_string(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


CONVERSIONS: list[tuple[str, str, Callable[..., Any]]] = [
    ("int", "(int) -> int", lambda number: number),
    ("int", "(uint) -> int", lambda number: checked_integer(int(number), 0)),
    ("int", "(double) -> int", _double_to_int),
    ("int", "(string) -> int", _string_to_int),
    ("int", "(timestamp) -> int", lambda instant: instant.ns // _NS),
    ("int", "(duration) -> int", lambda length: length.ns),
    ("uint", "(uint) -> uint", lambda number: number),
    ("uint", "(int) -> uint", lambda number: checked_integer(number, Unsigned(0))),
    ("uint", "(double) -> uint", lambda number: checked_integer(_double_to_int(number), Unsigned(0))),
    ("uint", "(string) -> uint", _string_to_uint),
    ("double", "(double) -> double", lambda number: number),
    ("double", "(int) -> double", float),
    ("double", "(uint) -> double", float),
    ("double", "(string) -> double", _string_to_double),
    ("bool", "(bool) -> bool", lambda value: value),
    ("bool", "(string) -> bool", _string_to_bool),
    ("string", "(string) -> string", lambda text: text),
    ("string", "(bool) -> string", lambda value: "true" if value else "false"),
    ("string", "(int) -> string", str),
    ("string", "(uint) -> string", lambda number: str(int(number))),
    ("string", "(double) -> string", go_value),
    ("string", "(bytes) -> string", _bytes_to_string),
    ("string", "(timestamp) -> string", format_timestamp),
    ("string", "(duration) -> string", format_duration),
    ("bytes", "(bytes) -> bytes", lambda data: data),
    ("bytes", "(string) -> bytes", str.encode),
]
"""All conversions, with their signatures."""
