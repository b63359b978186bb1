"""The types of CEL, and what functions take and give.

Signatures are written as people write them: `string.(string) -> bool` for a method, `(list(A)) -> A` for a function; a
capital letter stands for any type, the same in all its places. `dyn` is a type that is not known before the evaluation,
and fits everywhere.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

_is_variable = re.compile("[A-Z]").fullmatch
_tokens = re.compile(r"[\w.@]+|[(),]").findall
_SIGNATURE = re.compile(r"(?:(?P<target>.+?)\.)?\((?P<arguments>.*)\) -> (?P<result>.+)")


class CelType(msgspec.Struct, frozen=True):
    """A type: a name, the types it is made of, and the fields of an object."""

    name: str
    parameters: tuple[CelType, ...] = ()
    #: Of an object; two objects are of the same type only if they are the same dictionary.
    fields: dict[str, CelType] | None = None
    #: Of `dyn`: nothing is known because nothing is there, as of the items of `[]`; anything may take its place.
    is_unknown: bool = False

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})" if self.parameters else self.name


DYN, INT, DOUBLE, TEXT, BOOL, NULL = map(CelType, ("dyn", "int", "double", "string", "bool", "null"))
AUTHORIZER = "kubernetes.authorization.Authorizer"
"""The type of a variable that real CEL has functions for and this interpreter has not."""
UNKNOWN_ELEMENT = CelType("dyn", is_unknown=True)
"""The type of the items of an empty list."""

#: What is a message in Go, so that null may stand in its place.
_NULLABLE = frozenset(("object", "duration", "timestamp", "list", "map"))


def list_type(items: CelType) -> CelType:
    """Return the type of a list."""
    return CelType("list", (items,))


def map_type(values: CelType, keys: CelType = TEXT) -> CelType:
    """Return the type of a map."""
    return CelType("map", (keys, values))


def parse_type(text: str) -> CelType:
    """Read a type such as `map(string, A)`."""
    kind, rest = _parse_tokens(_tokens(text))
    assert not rest, f"{text} is not a type"
    return kind


def _parse_tokens(words: list[str]) -> tuple[CelType, list[str]]:
    name, *rest = words
    parts = []
    if rest[:1] == ["("]:
        while rest[0] != ")":
            part, rest = _parse_tokens(rest[1:])
            parts.append(part)
        rest = rest[1:]
    return CelType(name, tuple(parts)), rest


class Signature(NamedTuple):
    """What a function takes and gives."""

    is_method: bool
    #: The target of a method is its first parameter.
    parameters: tuple[CelType, ...]
    result: CelType

    def result_for(self, is_method: bool, types: list[CelType]) -> CelType | None:
        """Return what the function gives for arguments of these types; None if it is not for them."""
        if is_method is not self.is_method or len(types) != len(self.parameters):
            return None
        bound: dict[str, CelType] = {}
        if all(_is_assignable(actual, wanted, bound) for actual, wanted in zip(types, self.parameters, strict=True)):
            return _substitute(self.result, bound)
        return None


def parse_signature(text: str) -> Signature:
    """Read a signature such as `string.(string) -> bool`."""
    match = _SIGNATURE.fullmatch(text)
    assert match is not None, f"{text} is not a signature"
    arguments = parse_type(f"of({match['arguments']})").parameters if match["arguments"] else ()
    target = (parse_type(match["target"]),) if match["target"] else ()
    return Signature(bool(target), (*target, *arguments), parse_type(match["result"]))


def _is_nullable(kind: CelType) -> bool:
    return kind.name in _NULLABLE or kind.fields is not None


def _is_assignable(actual: CelType, wanted: CelType, bound: dict[str, CelType]) -> bool:
    """Return whether a value of one type may stand where another is wanted; binds the letters in `wanted`."""
    if _is_variable(wanted.name):
        known = bound.get(wanted.name)
        if known is None or known.name == "dyn" or (known.name == "null" and _is_nullable(actual)):
            bound[wanted.name] = actual
            return True
        bound[wanted.name] = _resolve_unknown(known, actual)
        return _is_assignable(actual, known, bound)
    if "dyn" in (actual.name, wanted.name) or (actual.name == "null" and _is_nullable(wanted)):
        return True
    if actual.name != wanted.name or actual.fields is not wanted.fields:
        return False
    return all(
        _is_assignable(one, other, bound) for one, other in zip(actual.parameters, wanted.parameters, strict=False)
    )


def _resolve_unknown(known: CelType, actual: CelType) -> CelType:
    """Return a type with what another one of its form knows of the items of empty lists."""
    if known.is_unknown:
        return actual
    if not known.parameters or known.name != actual.name:
        return known
    return CelType(known.name, tuple(map(_resolve_unknown, known.parameters, actual.parameters)))


def _substitute(kind: CelType, bound: dict[str, CelType]) -> CelType:
    if _is_variable(kind.name):
        return bound.get(kind.name, DYN)
    return CelType(kind.name, tuple(_substitute(part, bound) for part in kind.parameters)) if kind.parameters else kind
