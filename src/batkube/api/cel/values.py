"""The values of CEL that have no equivalent in Python.

int, float, str, bytes, bool, None, list and dict stand for themselves; a `uint` is a `syntax.lexer.Unsigned`. Lists of
type set and map compare without regard to order (Kubernetes: apiserver/pkg/cel/common/valuesunstructured.go).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Hashable, Iterable
from typing import Any
from urllib.parse import SplitResult

import msgspec

from batkube.api.cel.syntax.lexer import Unsigned, Value
from batkube.kernel.quantities import Quantity

_INT_RANGE = range(-(2**63), 2**63)
_UINT_RANGE = range(2**64)


class CelError(Exception):
    """The evaluation failed, for example with `no such key: x`."""


NO_OVERLOAD = "no such overload"


class CelDuration(msgspec.Struct, frozen=True, order=True):
    """A duration, in nanoseconds."""

    ns: int


class Timestamp(msgspec.Struct, frozen=True, order=True):
    """A point in time, in nanoseconds since 1970."""

    ns: int


class CelOptional(msgspec.Struct, frozen=True):
    """CEL's `optional`: a value or none."""

    has_value: bool
    value: Any = None


OPTIONAL_NONE = CelOptional(False)


class TypeName(msgspec.Struct, frozen=True):
    """A type as a value, as in `type(self) == int`."""

    name: str


class CelObject(dict[str, Any]):
    """An object with properties: its fields are declared, and a null field is absent."""


class CelMessage(dict[str, Any]):
    """A message that an expression creates, `Object.spec{…}`: its fields and its type name."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.name = name


class NamedFormat(msgspec.Struct, frozen=True):
    """A named format, against which strings can be validated."""

    validate: Callable[[str], tuple[str, ...]]
    #: The length of its regular expression in kube-apiserver, which determines the cost.
    regex_size: int


class SetList(list[Any]):
    """A list of type set."""

    def __add__(self, other: Iterable[Any]) -> SetList:
        result, keys = SetList(self), {hash_key(item) for item in self}
        for item in other:
            if (key := hash_key(item)) not in keys:
                keys.add(key)
                result.append(item)
        return result


class MapList(list[Any]):
    """A list of type map."""

    def __init__(self, items: Iterable[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys

    def key_of(self, item: Value) -> tuple[Any, ...]:
        """Return the values of the item's map keys."""
        return tuple(hash_key(item.get(key)) for key in self.keys)

    def __add__(self, other: Iterable[Any]) -> MapList:
        places = {self.key_of(item): index for index, item in enumerate(self)}
        result = MapList(self, self.keys)
        for item in other:
            place = places.get(self.key_of(item))
            if place is None:
                result.append(item)
            else:
                result[place] = item
        return result


_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (Unsigned, "uint"),
    (int, "int"),
    (float, "double"),
    (str, "string"),
    (bytes, "bytes"),
    (list, "list"),
    (dict, "map"),
    (CelDuration, "duration"),
    (Timestamp, "timestamp"),
    (CelOptional, "optional_type"),
    (TypeName, "type"),
    (Quantity, "kubernetes.Quantity"),
    (ipaddress.IPv4Interface, "net.CIDR"),
    (ipaddress.IPv6Interface, "net.CIDR"),
    (ipaddress.IPv4Address, "net.IP"),
    (ipaddress.IPv6Address, "net.IP"),
    (SplitResult, "kubernetes.URL"),
    (NamedFormat, "kubernetes.NamedFormat"),
)


def type_name(value: Value) -> str:
    """Return the CEL type of a value."""
    if value is None:
        return "null"
    if isinstance(value, CelMessage):
        return value.name
    for python, name in _TYPES:
        if isinstance(value, python):
            return name
    return "unknown"


def is_number(value: Value) -> bool:
    """Return whether a value is an int, a uint or a double."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Value, right: Value) -> bool:
    """Return whether two values are equal; values of different types are not, but numbers compare across types."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return _equal_lists(left, right)
    if isinstance(left, dict) and isinstance(right, dict):
        if type_name(left) != type_name(right):
            return False
        return len(left) == len(right) and all(key in right and equal(value, right[key]) for key, value in left.items())
    if isinstance(left, CelOptional) and isinstance(right, CelOptional):
        return left.has_value == right.has_value and equal(left.value, right.value)
    return (type_name(left) == type_name(right) and bool(left == right)) or (
        is_number(left) and is_number(right) and left == right
    )


def hash_key(value: Value) -> Hashable:
    """Return a hashable key that is the same for equal values."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list):
        return ("list", tuple(map(hash_key, value)))
    if isinstance(value, dict):
        return ("map", frozenset((key, hash_key(item)) for key, item in value.items()))
    plain: Hashable = value
    return plain


def _equal_lists(left: list[Any], right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    if isinstance(left, SetList):
        keys = {hash_key(item) for item in left}
        return all(hash_key(item) in keys for item in right)
    if isinstance(left, MapList):
        by_key = {left.key_of(item): item for item in left}
        return all(left.key_of(item) in by_key and equal(by_key[left.key_of(item)], item) for item in right)
    return all(equal(a, b) for a, b in zip(left, right, strict=True))


def contains(items: Iterable[Any], wanted: Value) -> bool:
    """Return whether `items` contains an equal value."""
    return any(equal(item, wanted) for item in items)


def checked_integer(number: int, like: Value) -> int:
    """Return the result of integer arithmetic; raises CelError on overflow of the type of `like`."""
    if isinstance(like, Unsigned):
        if number not in _UINT_RANGE:
            raise CelError("unsigned integer overflow")
        return Unsigned(number)
    if number not in _INT_RANGE:
        raise CelError("integer overflow")
    return number
