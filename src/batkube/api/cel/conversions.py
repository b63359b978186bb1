"""Conversions between the types of CEL: `int(x)`, `string(x)` and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batkube.api.cel.lexing import Unsigned
from batkube.api.cel.time_functions import duration_text, timestamp_text
from batkube.api.cel.values import CelError, checked
from batkube.kernel.go_text import go_value
from batkube.kernel.numbers import float_of, int_of

_NS = 10**9
_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


def _whole(text: str, like: int, kind: str) -> int:
    """Return the number that a text is; one that is none, or too large, is no such number (Go: strconv)."""
    try:
        return checked(_known(int_of(text)), like)
    except (CelError, ValueError):
        raise CelError(f"type conversion error from 'string' to '{kind}'") from None


def _known(number: int | None) -> int:
    if number is None:
        raise ValueError("beyond every integer")
    return number


def _int_of_text(text: str) -> int:
    return _whole(text, 0, "int")


def _uint_of_text(text: str) -> int:
    return _whole(text if text[:1].isdigit() else "", Unsigned(0), "uint")


def _double_of_text(text: str) -> float:
    try:
        return float_of(text)
    except ValueError:
        raise CelError("type conversion error from 'string' to 'double'") from None


def _bool_of_text(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise CelError("type conversion error from 'string' to 'bool'")


def _int_of_double(number: float) -> int:
    if number != number or abs(number) == float("inf"):
        raise CelError("integer overflow")
    return checked(int(number), 0)


def _text_of_bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


CONVERSIONS: list[tuple[str, str, Callable[..., Any]]] = [
    ("int", "(int) -> int", lambda number: number),
    ("int", "(uint) -> int", lambda number: checked(int(number), 0)),
    ("int", "(double) -> int", _int_of_double),
    ("int", "(string) -> int", _int_of_text),
    ("int", "(timestamp) -> int", lambda instant: instant.ns // _NS),
    ("int", "(duration) -> int", lambda length: length.ns),
    ("uint", "(uint) -> uint", lambda number: number),
    ("uint", "(int) -> uint", lambda number: checked(number, Unsigned(0))),
    ("uint", "(double) -> uint", lambda number: checked(_int_of_double(number), Unsigned(0))),
    ("uint", "(string) -> uint", _uint_of_text),
    ("double", "(double) -> double", lambda number: number),
    ("double", "(int) -> double", float),
    ("double", "(uint) -> double", float),
    ("double", "(string) -> double", _double_of_text),
    ("bool", "(bool) -> bool", lambda value: value),
    ("bool", "(string) -> bool", _bool_of_text),
    ("string", "(string) -> string", lambda text: text),
    ("string", "(bool) -> string", lambda value: "true" if value else "false"),
    ("string", "(int) -> string", str),
    ("string", "(uint) -> string", lambda number: str(int(number))),
    ("string", "(double) -> string", go_value),
    ("string", "(bytes) -> string", _text_of_bytes),
    ("string", "(timestamp) -> string", timestamp_text),
    ("string", "(duration) -> string", duration_text),
    ("bytes", "(bytes) -> bytes", lambda data: data),
    ("bytes", "(string) -> bytes", str.encode),
]
"""Each conversion with its signature."""
