"""The functions of CEL: which there are, and finding the one that fits the arguments.

Methods and global functions are one table, a method's target being its first argument (cel-go: common/stdlib and ext;
Kubernetes: apiserver/pkg/cel/library).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batkube.api.custom.cel import library, text_functions, time_functions
from batkube.api.custom.cel.conversions import CONVERSIONS
from batkube.api.custom.cel.lexing import Unsigned, Value
from batkube.api.custom.cel.values import NO_OVERLOAD, NONE, CelError, Optional, TypeName, type_name

Overload = tuple[tuple[type, ...], Callable[..., Any]]

NAMESPACES = frozenset(("optional", "sets", "lists", "strings", "ip", "cidr", "format", "math"))
"""What stands before a dot in the name of a function without being a value."""

TYPES: dict[str, TypeName] = {
    name: TypeName(name)
    for name in ("int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type")
}
"""The types that are also names."""


def _value_of(optional: Optional) -> Value:
    if not optional.has:
        raise CelError("optional.none() dereference")
    return optional.value


_CORE: list[tuple[str, tuple[type, ...], Callable[..., Any]]] = [
    ("size", (str,), len),
    ("size", (bytes,), len),
    ("size", (list,), len),
    ("size", (dict,), len),
    ("type", (object,), lambda value: TypeName(type_name(value))),
    ("dyn", (object,), lambda value: value),
    ("hasValue", (Optional,), lambda optional: optional.has),
    ("value", (Optional,), _value_of),
    ("orValue", (Optional, object), lambda optional, other: optional.value if optional.has else other),
    ("or", (Optional, Optional), lambda optional, other: optional if optional.has else other),
    ("optional.of", (object,), lambda value: Optional(True, value)),
    ("optional.none", (), lambda: NONE),
    ("optional.ofNonZeroValue", (object,), lambda value: Optional(True, value) if value else NONE),
]

FUNCTIONS: dict[str, list[Overload]] = {}
"""What each name may be applied to."""

for _table in (_CORE, CONVERSIONS, text_functions.FUNCTIONS, time_functions.FUNCTIONS, library.FUNCTIONS):
    for _function, _types, _implementation in _table:
        FUNCTIONS.setdefault(_function, []).append((_types, _implementation))


def call(name: str, arguments: list[Any]) -> Value:
    """Apply a function; raises CelError if it is not for arguments of these types."""
    for types, implementation in FUNCTIONS[name]:
        if len(types) == len(arguments) and all(map(_fits, arguments, types)):
            return implementation(*arguments)
    raise CelError(NO_OVERLOAD)


def _fits(value: Value, kind: type) -> bool:
    if kind is object:
        return True
    if isinstance(value, bool) or (isinstance(value, Unsigned) and kind is int):
        return kind is bool
    return isinstance(value, kind)
