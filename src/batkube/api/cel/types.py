"""The types of CEL, and the signatures of functions.

Signatures are written `string.(string) -> bool` for a method, `(list(A)) -> A` for a function. A capital letter is a
type parameter. `dyn` is a type that is unknown before the evaluation, and is compatible with every type.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

_is_variable = re.compile("[A-Z]").fullmatch
_tokens = re.compile(r"[\w.@]+|[(),]").findall
_SIGNATURE = re.compile(r"(?:(?P<target>.+?)\.)?\((?P<arguments>.*)\) -> (?P<result>.+)")


class CelType(msgspec.Struct, frozen=True):
    """A type: its name, type arguments, and the fields of an object."""

    name: str
    parameters: tuple[CelType, ...] = ()
    #: Of an object; two object types are equal only if they share the same dictionary.
    fields: dict[str, CelType] | None = None
    #: Of `dyn`: the element type of an empty literal such as `[]`, which is compatible with any type.
    is_unknown: bool = False

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})" if self.parameters else self.name


DYN, INT, DOUBLE, TEXT, BOOL, NULL = map(CelType, ("dyn", "int", "double", "string", "bool", "null"))
AUTHORIZER = "kubernetes.authorization.Authorizer"
"""The type of the variable `authorizer`, whose functions this interpreter does not support."""
UNKNOWN_ELEMENT = CelType("dyn", is_unknown=True)
"""The element type of an empty list."""

#: Types whose values cannot be compared with null (cel-go: checker/types.go, isLegacyNullable).
_NOT_NULLABLE = frozenset(("bool", "bytes", "double", "int", "list", "map", "string", "type", "uint"))


def list_type(items: CelType) -> CelType:
    """Return a list type."""
    return CelType("list", (items,))


def map_type(values: CelType, keys: CelType = TEXT) -> CelType:
    """Return a map type."""
    return CelType("map", (keys, values))


def parse_type(text: str) -> CelType:
    """Parse a type such as `map(string, A)`."""
    kind, rest = _parse_tokens(_tokens(text))
    assert not rest, f"{text} is not a type"
    return kind


def _parse_tokens(tokens: list[str]) -> tuple[CelType, list[str]]:
    name, *remaining = tokens
    parts = []
    if remaining[:1] == ["("]:
        while remaining[0] != ")":
            part, remaining = _parse_tokens(remaining[1:])
            parts.append(part)
        remaining = remaining[1:]
    return CelType(name, tuple(parts)), remaining


class Signature(NamedTuple):
    """The parameter types and the result type of a function."""

    is_method: bool
    #: The receiver of a method is its first parameter.
    parameters: tuple[CelType, ...]
    result: CelType

    def result_for(self, is_method: bool, types: list[CelType]) -> CelType | None:
        """Return the result type for arguments of these types; None if they do not match."""
        if is_method is not self.is_method or len(types) != len(self.parameters):
            return None
        bound: dict[str, CelType] = {}
        if all(_is_assignable(actual, wanted, bound) for actual, wanted in zip(types, self.parameters, strict=True)):
            return _substitute(self.result, bound)
        return None


def parse_signature(text: str) -> Signature:
    """Parse a signature such as `string.(string) -> bool`."""
    match = _SIGNATURE.fullmatch(text)
    assert match is not None, f"{text} is not a signature"
    arguments = parse_type(f"of({match['arguments']})").parameters if match["arguments"] else ()
    target = (parse_type(match["target"]),) if match["target"] else ()
    return Signature(bool(target), (*target, *arguments), parse_type(match["result"]))


def _is_nullable(kind: CelType) -> bool:
    return kind.name not in _NOT_NULLABLE


def _is_assignable(actual: CelType, wanted: CelType, bound: dict[str, CelType]) -> bool:
    """Return whether a value of type `actual` is assignable to `wanted`; binds the type parameters in `wanted`."""
    if _is_variable(wanted.name):
        binding = bound.get(wanted.name)
        if binding is None or binding.name == "dyn" or (binding.name == "null" and _is_nullable(actual)):
            bound[wanted.name] = actual
            return True
        bound[wanted.name] = _resolve_unknown(binding, actual)
        return _is_assignable(actual, binding, bound)
    if "dyn" in (actual.name, wanted.name) or (actual.name == "null" and _is_nullable(wanted)):
        return True
    if actual.name != wanted.name or actual.fields is not wanted.fields:
        return False
    return all(
        _is_assignable(first, second, bound)
        for first, second in zip(actual.parameters, wanted.parameters, strict=False)
    )


def _resolve_unknown(known: CelType, actual: CelType) -> CelType:
    """Return a type whose unknown element types are resolved by another type of the same form."""
    if known.is_unknown:
        return actual
    if not known.parameters or known.name != actual.name:
        return known
    return CelType(known.name, tuple(map(_resolve_unknown, known.parameters, actual.parameters)))


def _substitute(kind: CelType, bound: dict[str, CelType]) -> CelType:
    if _is_variable(kind.name):
        return bound.get(kind.name, DYN)
    return CelType(kind.name, tuple(_substitute(part, bound) for part in kind.parameters)) if kind.parameters else kind
