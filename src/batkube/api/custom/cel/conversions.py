"""Conversions between the types of CEL: `int(x)`, `string(x)` and the like."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from batkube.api.custom.cel.lexing import Unsigned
from batkube.api.custom.cel.time_functions import duration_text, timestamp_text
from batkube.api.custom.cel.values import CelError, checked
from batkube.cluster.go_text import go_value

_is_whole = re.compile(r"[+-]?[0-9]+", re.ASCII).fullmatch
_NS = 10**9
_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


def _int_of_text(text: str) -> int:
    if not _is_whole(text):
        raise CelError("type conversion error from 'string' to 'int'")
    return checked(int(text), 0)


def _uint_of_text(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise CelError("type conversion error from 'string' to 'uint'")
    return checked(int(text), Unsigned(0))


def _double_of_text(text: str) -> float:
    try:
        return float(text)
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
