"""All functions of CEL, and overload resolution.

One table serves both the type checker and the evaluation. It holds the Kubernetes libraries of the version before 1.34,
because new rules may only use functions of the previous version.

cel-go: common/stdlib and ext; Kubernetes: apiserver/pkg/cel/library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from batkube.api.cel.functions import kubernetes_library, strings, times
from batkube.api.cel.functions.conversions import CONVERSIONS
from batkube.api.cel.syntax.lexer import Value
from batkube.api.cel.syntax.nodes import FunctionCall, Identifier, Node
from batkube.api.cel.types import Signature, parse_signature
from batkube.api.cel.values import NO_OVERLOAD, OPTIONAL_NONE, CelError, CelOptional, TypeName, type_name

NAMESPACES = frozenset(("optional", "sets", "strings", "ip", "format", "jsonpatch"))
"""Namespaces: the prefixes of function names (`sets.contains`) that are not values."""

UNSUPPORTED_FUNCTIONS = frozenset(("semver", "isSemver", "major", "minor", "patch"))
"""Functions of CEL that this interpreter does not support."""

TYPE_NAMES: dict[str, TypeName] = {
    name: TypeName(name)
    for name in ("int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type")
}
"""The type names that are also identifiers."""

JSON_PATCH_FUNCTIONS = frozenset(("jsonpatch.escapeKey",))
"""Functions that only the expressions of mutating policies can use (Kubernetes: admission/plugin/cel/compile.go)."""

FULL_TYPE_NAMES = {
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
    "null": "null_type",
}
"""Types whose name is longer than in cel-go's messages."""


def _type_of(value: Value) -> TypeName:
    name = type_name(value)
    return TypeName(FULL_TYPE_NAMES.get(name, name))


def _optional_value(optional: CelOptional) -> Value:
    if not optional.has_value:
        raise CelError("optional.none() dereference")
    return optional.value


_STANDARD_FUNCTIONS: list[tuple[str, str, Callable[..., Any]]] = [
    *(("size", f"({kind}) -> int", len) for kind in ("string", "bytes", "list(A)", "map(A, B)")),
    *(("size", f"{kind}.() -> int", len) for kind in ("string", "bytes", "list(A)", "map(A, B)")),
    ("type", "(A) -> type", _type_of),
    ("dyn", "(A) -> dyn", lambda value: value),
    ("hasValue", "optional_type(A).() -> bool", lambda optional: optional.has_value),
    ("value", "optional_type(A).() -> A", _optional_value),
    ("orValue", "optional_type(A).(A) -> A", lambda optional, other: optional.value if optional.has_value else other),
    (
        "or",
        "optional_type(A).(optional_type(A)) -> optional_type(A)",
        lambda optional, other: optional if optional.has_value else other,
    ),
    ("optional.of", "(A) -> optional_type(A)", lambda value: CelOptional(True, value)),
    ("optional.none", "() -> optional_type(A)", lambda: OPTIONAL_NONE),
    (
        "optional.ofNonZeroValue",
        "(A) -> optional_type(A)",
        lambda value: CelOptional(True, value) if value else OPTIONAL_NONE,
    ),
]


class Overload(NamedTuple):
    """A function for arguments of certain types."""

    signature: Signature
    #: The type names of the arguments, "" for any type.
    type_names: tuple[str, ...]
    implementation: Callable[..., Any]


def _overload(text: str, implementation: Callable[..., Any]) -> Overload:
    signature = parse_signature(text)
    kinds = tuple("" if kind.name in ("A", "dyn") else kind.name for kind in signature.parameters)
    return Overload(signature, kinds, implementation)


FUNCTIONS: dict[str, list[Overload]] = {}
"""The overloads of each name."""

for _table in (_STANDARD_FUNCTIONS, CONVERSIONS, strings.FUNCTIONS, times.FUNCTIONS, kubernetes_library.FUNCTIONS):
    for _name, _signature, _implementation in _table:
        FUNCTIONS.setdefault(_name, []).append(_overload(_signature, _implementation))


def resolve_call(node: FunctionCall) -> tuple[str, Node | None]:
    """Return the function's name and a method's receiver; in `sets.contains(a, b)`, `sets` is not a receiver."""
    target = node.target
    if isinstance(target, Identifier) and target.name in NAMESPACES and f"{target.name}.{node.function}" in FUNCTIONS:
        return f"{target.name}.{node.function}", None
    return node.function, target


def call_function(name: str, is_method: bool, arguments: list[Any]) -> Value:
    """Call a function; raises CelError if no overload accepts the arguments."""
    for signature, kinds, implementation in FUNCTIONS[name]:
        if (
            signature.is_method is is_method
            and len(kinds) == len(arguments)
            and all(map(_matches_type, arguments, kinds))
        ):
            return implementation(*arguments)
    raise CelError(NO_OVERLOAD)


def _matches_type(value: Value, kind: str) -> bool:
    return not kind or type_name(value) == kind
