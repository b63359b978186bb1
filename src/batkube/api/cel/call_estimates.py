"""What one call of a function or an operator costs at most, and how large its result can be.

The figures are those of cel-go (checker/cost.go, functionCost; ext/sets.go) and of Kubernetes' own functions
(apiserver/pkg/cel/library/cost.go, EstimateCallCost): they decide which rules a definition may have, so they are
imitated with what is odd about them, such as an inequality of quantities being beyond all limits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from batkube.api.cel.extents import ITEMS, ONE, UNKNOWN, Extent, Size, capped, scaled
from batkube.api.cel.trees import Constant, Node
from batkube.api.cel.types import CelType

_TEXT, _REGEX = 0.1, 0.25
#: The bytes of an IPv4 and an IPv6 address.
_ADDRESS = Size(4, 16)
_FORMAT_SIZE_MOST = 64
_FORMAT_REGEX_SIZE = 128


class ElementSizes(NamedTuple):
    """How large the elements of a list or a map are."""

    is_list: bool
    key: Size
    value: Size

    def or_entry(self, other: ElementSizes | None) -> ElementSizes | None:
        """Return what holds for the elements of both; None if one is not known."""
        if other is None:
            return None
        return ElementSizes(self.is_list, self.key.or_size(other.key), self.value.or_size(other.value))


class SizedPart(NamedTuple):
    """What is known of a part of an expression."""

    node: Node
    type: CelType
    cost: int
    size: Size | None = None
    entry: ElementSizes | None = None
    #: Where in the variables it comes from; () if it is computed.
    path: tuple[str, ...] = ()

    @property
    def extent(self) -> Size:
        """Its size, if need be from nothing to everything."""
        return UNKNOWN if self.size is None else self.size


class OverloadCall(NamedTuple):
    """A call of one overload of a function."""

    name: str
    parameters: tuple[CelType, ...]
    target: SizedPart | None
    arguments: list[SizedPart]
    root: Extent

    @property
    def first(self) -> Size:
        """The size of what a method is called on, or of a function's first argument."""
        return (self.target or self.arguments[0]).extent

    @property
    def second(self) -> Size:
        """The size of the argument after that."""
        return self.arguments[0 if self.target is not None else 1].extent


class CallEstimate(NamedTuple):
    """What a call costs beside its arguments."""

    cost: int
    #: None if it is not known from the call.
    size: Size | None = None


Estimate = Callable[[OverloadCall], CallEstimate]


def _one(call: OverloadCall) -> CallEstimate:
    return CallEstimate(1)


def _read_text(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(call.first.most, _TEXT))


def _changed_text(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(call.first.most, _TEXT), call.first)


def _read_twice(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(call.first.most, 2 * _TEXT))


def _traversed(call: OverloadCall) -> CallEstimate:
    """Each element is looked at, or each character of a text."""
    assert call.target is not None
    if not call.target.type.parts:
        return _read_text(call)
    each, kind = 1, call.target.type.parts[0].name
    if kind in ("string", "bytes"):
        path = (*call.target.path, ITEMS) if call.target.path else ()
        each += scaled((call.root.at(path) or UNKNOWN).most, _TEXT)
    return CallEstimate(capped(call.first.most * each))


def _replaced(call: OverloadCall) -> CallEstimate:
    """The result is longest if the shortest texts are replaced by the longest, and the other way round."""
    size, old, new = call.first, call.second, call.arguments[1].extent
    if old.least == 0:
        most = Size(capped(size.most + 1), size.most)
    else:
        most = Size(0, size.most) if new.most <= old.least else Size(_quotient(size.most, old.least), 0)
    if old.most == 0:
        least = Size(capped(size.least + 1), size.least)
    else:
        least = Size(0, size.least) if old.most <= new.least else Size(_quotient(size.least, old.most), 0)
    result = Size(least[0], most[0]).times(new).plus(Size(least[1], most[1]))
    return CallEstimate(scaled(size.most, 2 * _TEXT), result)


def _quotient(number: int, divisor: int) -> int:
    return -(-number // divisor)


def _split(call: OverloadCall) -> CallEstimate:
    most = call.first.most
    if len(call.arguments) > 1 and isinstance(call.arguments[1].node, Constant):
        limit = call.arguments[1].node.value
        most = limit % 2**64 if isinstance(limit, int) else most
    return CallEstimate(scaled(call.first.most, 2 * _TEXT), Size(0, most))


def _joined(call: OverloadCall) -> CallEstimate:
    assert call.target is not None
    path = (*call.target.path, ITEMS) if call.target.path else ()
    size = call.first.times(call.root.at(path) or UNKNOWN)
    if call.arguments:
        gaps = Size(max(0, call.first.least - 1), max(0, call.first.most - 1))
        size = size.plus(call.second.times(gaps))
    return CallEstimate(scaled(size.most, _TEXT), size)


def _searched(call: OverloadCall) -> CallEstimate:
    text = scaled(capped(call.first.most + 1), _TEXT)
    return CallEstimate(capped(text * scaled(call.second.most, _REGEX)))


def _all_matches(call: OverloadCall) -> CallEstimate:
    return CallEstimate(_searched(call).cost, Size(0, call.first.most))


def _contained(call: OverloadCall) -> CallEstimate:
    return CallEstimate(capped(scaled(call.first.most, _TEXT) * scaled(call.second.most, _TEXT)))


def _of_network(call: OverloadCall) -> CallEstimate:
    """The address of a network is at hand; that of a text is read."""
    return CallEstimate(1) if call.target is not None else _read_text(call)


def _holds(call: OverloadCall) -> CallEstimate:
    cost = scaled(2 * _ADDRESS.most, _TEXT)
    if call.name == "containsCIDR":
        cost += scaled(_ADDRESS.most, _TEXT) + 1
    if call.parameters[-1].name == "string":
        cost = capped(cost + scaled(call.second.most, _TEXT))
    return CallEstimate(cost)


def _formatted(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(scaled(call.second.most, _TEXT), _FORMAT_REGEX_SIZE * _REGEX))


def _product(factor: int) -> Estimate:
    def estimate(call: OverloadCall) -> CallEstimate:
        product = capped(call.first.most * call.second.most)
        return CallEstimate(capped(scaled(product, factor) + 1))

    return estimate


def _to_bytes(call: OverloadCall) -> CallEstimate:
    if call.parameters[0].name != "string":
        return CallEstimate(1)
    # Go's product is not guarded here.
    return CallEstimate(scaled(call.first.most, _TEXT), Size(call.first.least, call.first.most * 4 % 2**64))


def _to_text(call: OverloadCall) -> CallEstimate:
    if call.parameters[0].name != "bytes":
        return CallEstimate(1)
    return CallEstimate(scaled(call.first.most, _TEXT), Size(call.first.least // 4, call.first.most))


def _quoted(call: OverloadCall) -> CallEstimate:
    most = (call.first.most * 2 + 2) % 2**64
    return CallEstimate(scaled(call.first.most, _TEXT), Size((call.first.least + 2) % 2**64, most))


def _by_second(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(call.second.most, _TEXT))


def _among(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(call.second.most, 1) if call.parameters[1].name == "list" else 1)


def _added(call: OverloadCall) -> CallEstimate:
    kind = call.parameters[0].name
    if kind not in ("string", "bytes", "list"):
        return CallEstimate(1)
    size = call.first.plus(call.second)
    return CallEstimate(1 if kind == "list" else scaled(size.most, _TEXT), size)


def _compared(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(min(call.first.most, call.second.most), _TEXT))


def _ordered(call: OverloadCall) -> CallEstimate:
    return _compared(call) if call.parameters[0].name in ("string", "bytes") else CallEstimate(1)


def _equal(call: OverloadCall) -> CallEstimate:
    kind = call.arguments[0].type
    if kind == call.arguments[1].type:
        if kind.name in ("net.IP", "net.CIDR", "kubernetes.Quantity"):
            return CallEstimate(1)
        if kind.name == "kubernetes.NamedFormat":
            return CallEstimate(scaled(_FORMAT_SIZE_MOST, _TEXT))
        if kind.name == "kubernetes.URL":
            return CallEstimate(scaled((call.arguments[1].size or ONE).most, _TEXT))
    return _compared(call)


_ESTIMATES: dict[str, Estimate] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversed),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _changed_text),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "format"), _read_text),
    **dict.fromkeys(("find", "findAll"), _all_matches),
    **dict.fromkeys(("containsIP", "containsCIDR"), _holds),
    **dict.fromkeys(("startsWith", "endsWith"), _by_second),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ordered),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _product(1)),
    "sets.equivalent": _product(2),
    "replace": _replaced,
    "split": _split,
    "join": _joined,
    "ip": _of_network,
    "ip.isCanonical": _read_twice,
    "validate": _formatted,
    "bytes": _to_bytes,
    "string": _to_text,
    "strings.quote": _quoted,
    "@in": _among,
    "matches": _searched,
    "contains": _contained,
    "_+_": _added,
    "_==_": _equal,
    "_!=_": _compared,
}


def estimated(call: OverloadCall) -> CallEstimate:
    """Return what a call costs at most, without its arguments, and how large its result is if that is known."""
    return _ESTIMATES.get(call.name, _one)(call)
