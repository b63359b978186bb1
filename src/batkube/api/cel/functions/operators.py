"""The operators of CEL, on values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from batkube.api.cel.functions.times import checked_duration, checked_timestamp
from batkube.api.cel.syntax.lexer import Unsigned, Value
from batkube.api.cel.values import (
    NO_OVERLOAD,
    CelDuration,
    CelError,
    Timestamp,
    checked_integer,
    contains,
    equal,
    is_number,
)
from batkube.kernel.quantities import Quantity


def _same_kind_of_number(left: Value, right: Value) -> bool:
    return (
        is_number(left)
        and is_number(right)
        and isinstance(left, float) == isinstance(right, float)
        and isinstance(left, Unsigned) == isinstance(right, Unsigned)
    )


def _add(left: Value, right: Value) -> Value:
    if _same_kind_of_number(left, right):
        return left + right if isinstance(left, float) else checked_integer(int(left) + int(right), left)
    if any(isinstance(left, kind) and isinstance(right, kind) for kind in (str, bytes, list)):
        return left + right
    if isinstance(left, CelDuration) and isinstance(right, CelDuration):
        return checked_duration(left.ns + right.ns)
    if {type(left), type(right)} == {Timestamp, CelDuration}:
        return checked_timestamp(left.ns + right.ns)
    raise CelError(NO_OVERLOAD)


def _subtract(left: Value, right: Value) -> Value:
    if _same_kind_of_number(left, right):
        return left - right if isinstance(left, float) else checked_integer(int(left) - int(right), left)
    if isinstance(left, Timestamp) and isinstance(right, Timestamp):
        return checked_duration(left.ns - right.ns)
    if isinstance(left, Timestamp | CelDuration) and isinstance(right, CelDuration):
        in_range = checked_timestamp if isinstance(left, Timestamp) else checked_duration
        return in_range(left.ns - right.ns)
    raise CelError(NO_OVERLOAD)


def _multiply(left: Value, right: Value) -> Value:
    if not _same_kind_of_number(left, right):
        raise CelError(NO_OVERLOAD)
    return left * right if isinstance(left, float) else checked_integer(int(left) * int(right), left)


def _divide(left: Value, right: Value) -> Value:
    if not _same_kind_of_number(left, right):
        raise CelError(NO_OVERLOAD)
    if isinstance(left, float):
        if right == 0:
            return (
                math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)
            )
        return left / right
    if right == 0:
        raise CelError("division by zero")
    quotient = abs(int(left)) // abs(int(right))
    return checked_integer(quotient if (left < 0) == (right < 0) else -quotient, left)


def _modulo(left: Value, right: Value) -> Value:
    if not _same_kind_of_number(left, right) or isinstance(left, float):
        raise CelError(NO_OVERLOAD)
    if right == 0:
        raise CelError("modulus by zero")
    rest = abs(int(left)) % abs(int(right))
    return checked_integer(rest if left >= 0 else -rest, left)


def _in(item: Value, whole: Value) -> bool:
    if isinstance(whole, dict):
        return not isinstance(item, list | dict) and item in whole and not isinstance(item, bool)
    if isinstance(whole, list):
        return contains(whole, item)
    raise CelError(NO_OVERLOAD)


_ORDERED_TYPES = (str, bytes, bool, CelDuration, Timestamp, Quantity)


def compare(left: Value, right: Value) -> int:
    """Return -1, 0 or 1; raises CelError for values that are not ordered."""
    if is_number(left) and is_number(right):
        return int(left > right) - int(left < right)
    if any(isinstance(left, kind) and isinstance(right, kind) for kind in _ORDERED_TYPES):
        return int(left > right) - int(left < right)
    raise CelError(NO_OVERLOAD)


def _is_nan(*values: Value) -> bool:
    return any(isinstance(value, float) and math.isnan(value) for value in values)


def _ordering_operator(accept: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    return lambda left, right: accept(compare(left, right)) and not _is_nan(left, right)


def negate(value: Value) -> Value:
    """Return the negated number."""
    if isinstance(value, Unsigned) or not is_number(value):
        raise CelError(NO_OVERLOAD)
    return -value if isinstance(value, float) else checked_integer(-value, value)


def invert(value: Value) -> bool:
    """Return the negated bool."""
    if not isinstance(value, bool):
        raise CelError(NO_OVERLOAD)
    return not value


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "_+_": _add,
    "_-_": _subtract,
    "_*_": _multiply,
    "_/_": _divide,
    "_%_": _modulo,
    "_==_": equal,
    "_!=_": lambda left, right: not equal(left, right),
    "_<_": _ordering_operator(lambda order: order < 0),
    "_<=_": _ordering_operator(lambda order: order <= 0),
    "_>_": _ordering_operator(lambda order: order > 0),
    "_>=_": _ordering_operator(lambda order: order >= 0),
    "@in": _in,
}
UNARY: dict[str, Callable[[Any], Any]] = {"!_": invert, "-_": negate}

_NUMBER_TYPES = ("int", "uint", "double")
_NUMBER_PAIRS = [(left, right) for left in _NUMBER_TYPES for right in _NUMBER_TYPES]
_NUMBER_PAIRS += [(kind, kind) for kind in ("string", "bytes", "bool", "duration", "timestamp")]
_NUMBER_COMPARISON_SIGNATURES = [f"({left}, {right}) -> bool" for left, right in _NUMBER_PAIRS]

SIGNATURES: dict[str, list[str]] = {
    "_+_": [
        *(f"({kind}, {kind}) -> {kind}" for kind in (*_NUMBER_TYPES, "string", "bytes", "duration", "list(A)")),
        "(timestamp, duration) -> timestamp",
        "(duration, timestamp) -> timestamp",
    ],
    "_-_": [
        *(f"({kind}, {kind}) -> {kind}" for kind in (*_NUMBER_TYPES, "duration")),
        "(timestamp, timestamp) -> duration",
        "(timestamp, duration) -> timestamp",
    ],
    "_*_": [f"({kind}, {kind}) -> {kind}" for kind in _NUMBER_TYPES],
    "_/_": [f"({kind}, {kind}) -> {kind}" for kind in _NUMBER_TYPES],
    "_%_": ["(int, int) -> int", "(uint, uint) -> uint"],
    "_==_": ["(A, A) -> bool"],
    "_!=_": ["(A, A) -> bool"],
    "_<_": _NUMBER_COMPARISON_SIGNATURES,
    "_<=_": _NUMBER_COMPARISON_SIGNATURES,
    "_>_": _NUMBER_COMPARISON_SIGNATURES,
    "_>=_": _NUMBER_COMPARISON_SIGNATURES,
    "@in": ["(A, list(A)) -> bool", "(A, map(A, B)) -> bool"],
    "_[_]": ["(list(A), int) -> A", "(map(A, B), A) -> B"],
    "_?_:_": ["(bool, A, A) -> A"],
    "!_": ["(bool) -> bool"],
    "-_": ["(int) -> int", "(double) -> double"],
}
"""The signatures of the operators, as cel-go declares them (common/stdlib)."""
