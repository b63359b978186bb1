"""Upper bounds for the cost of a call of a function or an operator, and for the size of its result.

The numbers are those of cel-go (checker/cost.go, functionCost; ext/sets.go) and of Kubernetes' own functions
(apiserver/pkg/cel/library/cost.go, EstimateCallCost). They decide which rules a definition may have. Oddities are
therefore imitated, such as the unlimited cost of an inequality of quantities.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from batkube.api.cel.estimation.sizes import ITEMS, SCALAR_SIZE, UNKNOWN_SIZE, SizeEstimate, SizeLimits, capped, scaled
from batkube.api.cel.syntax.nodes import Constant, Node
from batkube.api.cel.types import CelType

_TEXT_FACTOR, _REGEX_FACTOR = 0.1, 0.25
#: The number of bytes of an IPv4 and an IPv6 address.
_ADDRESS_SIZE = SizeEstimate(4, 16)
_FORMAT_SIZE_MAX = 64
_FORMAT_REGEX_SIZE = 128


class ElementSizes(NamedTuple):
    """The size estimates of the elements of a list or a map."""

    is_list: bool
    key: SizeEstimate
    value: SizeEstimate

    def union(self, other: ElementSizes | None) -> ElementSizes | None:
        """Return estimates that cover the elements of both; None if one is unknown."""
        if other is None:
            return None
        return ElementSizes(self.is_list, self.key.union(other.key), self.value.union(other.value))


class EstimatedNode(NamedTuple):
    """The estimate of a node."""

    node: Node
    type: CelType
    cost: int
    size: SizeEstimate | None = None
    element_sizes: ElementSizes | None = None
    #: The path in the variables from which the value comes; () if it is computed.
    path: tuple[str, ...] = ()

    @property
    def size_or_unknown(self) -> SizeEstimate:
        """The size, or 0 to unlimited if it is unknown."""
        return UNKNOWN_SIZE if self.size is None else self.size


class OverloadCall(NamedTuple):
    """A call of one overload of a function."""

    name: str
    parameters: tuple[CelType, ...]
    target: EstimatedNode | None
    arguments: list[EstimatedNode]
    variable_sizes: SizeLimits

    @property
    def first(self) -> SizeEstimate:
        """The size of a method's receiver, or of a function's first argument."""
        return (self.target or self.arguments[0]).size_or_unknown

    @property
    def second(self) -> SizeEstimate:
        """The size of the next argument."""
        return self.arguments[0 if self.target is not None else 1].size_or_unknown


class CallEstimate(NamedTuple):
    """The cost of a call, without that of its arguments."""

    cost: int
    #: None if the call does not determine it.
    size: SizeEstimate | None = None


EstimateCall = Callable[[OverloadCall], CallEstimate]


def _constant_cost(call: OverloadCall) -> CallEstimate:
    return CallEstimate(1)


def _string_scan(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(call.first.maximum, _TEXT_FACTOR))


def _string_transform(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(call.first.maximum, _TEXT_FACTOR), call.first)


def _double_string_scan(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(call.first.maximum, 2 * _TEXT_FACTOR))


def _list_traversal(call: OverloadCall) -> CallEstimate:
    """Every element of a list, or every character of a string, is visited."""
    assert call.target is not None
    if not call.target.type.parameters:
        return _string_scan(call)
    each, kind = 1, call.target.type.parameters[0].name
    if kind in ("string", "bytes"):
        path = (*call.target.path, ITEMS) if call.target.path else ()
        each += scaled((call.variable_sizes.size_at(path) or UNKNOWN_SIZE).maximum, _TEXT_FACTOR)
    return CallEstimate(capped(call.first.maximum * each))


def _replace(call: OverloadCall) -> CallEstimate:
    """The result is longest if the shortest strings are replaced by the longest, or the other way round."""
    size, old, new = call.first, call.second, call.arguments[1].size_or_unknown
    if old.minimum == 0:
        most = SizeEstimate(capped(size.maximum + 1), size.maximum)
    else:
        most = (
            SizeEstimate(0, size.maximum)
            if new.maximum <= old.minimum
            else SizeEstimate(_quotient(size.maximum, old.minimum), 0)
        )
    if old.maximum == 0:
        least = SizeEstimate(capped(size.minimum + 1), size.minimum)
    else:
        least = (
            SizeEstimate(0, size.minimum)
            if old.maximum <= new.minimum
            else SizeEstimate(_quotient(size.minimum, old.maximum), 0)
        )
    result = SizeEstimate(least[0], most[0]).multiply(new).add(SizeEstimate(least[1], most[1]))
    return CallEstimate(scaled(size.maximum, 2 * _TEXT_FACTOR), result)


def _quotient(number: int, divisor: int) -> int:
    return -(-number // divisor)


def _split(call: OverloadCall) -> CallEstimate:
    most = call.first.maximum
    if len(call.arguments) > 1 and isinstance(call.arguments[1].node, Constant):
        limit = call.arguments[1].node.value
        most = limit % 2**64 if isinstance(limit, int) else most
    return CallEstimate(scaled(call.first.maximum, 2 * _TEXT_FACTOR), SizeEstimate(0, most))


def _join(call: OverloadCall) -> CallEstimate:
    assert call.target is not None
    path = (*call.target.path, ITEMS) if call.target.path else ()
    size = call.first.multiply(call.variable_sizes.size_at(path) or UNKNOWN_SIZE)
    if call.arguments:
        gaps = SizeEstimate(max(0, call.first.minimum - 1), max(0, call.first.maximum - 1))
        size = size.add(call.second.multiply(gaps))
    return CallEstimate(scaled(size.maximum, _TEXT_FACTOR), size)


def _regex_match(call: OverloadCall) -> CallEstimate:
    text = scaled(capped(call.first.maximum + 1), _TEXT_FACTOR)
    return CallEstimate(capped(text * scaled(call.second.maximum, _REGEX_FACTOR)))


def _regex_find_all(call: OverloadCall) -> CallEstimate:
    return CallEstimate(_regex_match(call).cost, SizeEstimate(0, call.first.maximum))


def _substring_search(call: OverloadCall) -> CallEstimate:
    return CallEstimate(capped(scaled(call.first.maximum, _TEXT_FACTOR) * scaled(call.second.maximum, _TEXT_FACTOR)))


def _ip(call: OverloadCall) -> CallEstimate:
    """The address of a CIDR is a field; that of a string is parsed."""
    return CallEstimate(1) if call.target is not None else _string_scan(call)


def _network_contains(call: OverloadCall) -> CallEstimate:
    cost = scaled(2 * _ADDRESS_SIZE.maximum, _TEXT_FACTOR)
    if call.name == "containsCIDR":
        cost += scaled(_ADDRESS_SIZE.maximum, _TEXT_FACTOR) + 1
    if call.parameters[-1].name == "string":
        cost = capped(cost + scaled(call.second.maximum, _TEXT_FACTOR))
    return CallEstimate(cost)


def _format_validation(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(scaled(call.second.maximum, _TEXT_FACTOR), _FORMAT_REGEX_SIZE * _REGEX_FACTOR))


def _set_comparison(factor: int) -> EstimateCall:
    def estimate(call: OverloadCall) -> CallEstimate:
        product = capped(call.first.maximum * call.second.maximum)
        return CallEstimate(capped(scaled(product, factor) + 1))

    return estimate


def _to_bytes(call: OverloadCall) -> CallEstimate:
    if call.parameters[0].name != "string":
        return CallEstimate(1)
    # Go does not guard this multiplication against overflow.
    return CallEstimate(
        scaled(call.first.maximum, _TEXT_FACTOR), SizeEstimate(call.first.minimum, call.first.maximum * 4 % 2**64)
    )


def _to_string(call: OverloadCall) -> CallEstimate:
    if call.parameters[0].name != "bytes":
        return CallEstimate(1)
    return CallEstimate(
        scaled(call.first.maximum, _TEXT_FACTOR), SizeEstimate(call.first.minimum // 4, call.first.maximum)
    )


def _quote(call: OverloadCall) -> CallEstimate:
    most = (call.first.maximum * 2 + 2) % 2**64
    return CallEstimate(scaled(call.first.maximum, _TEXT_FACTOR), SizeEstimate((call.first.minimum + 2) % 2**64, most))


def _prefix_or_suffix(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(call.second.maximum, _TEXT_FACTOR))


def _list_membership(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(call.second.maximum, 1) if call.parameters[1].name == "list" else 1)


def _add(call: OverloadCall) -> CallEstimate:
    kind = call.parameters[0].name
    if kind not in ("string", "bytes", "list"):
        return CallEstimate(1)
    size = call.first.add(call.second)
    return CallEstimate(1 if kind == "list" else scaled(size.maximum, _TEXT_FACTOR), size)


def _compare(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(min(call.first.maximum, call.second.maximum), _TEXT_FACTOR))


def _order(call: OverloadCall) -> CallEstimate:
    return _compare(call) if call.parameters[0].name in ("string", "bytes") else CallEstimate(1)


def _equal(call: OverloadCall) -> CallEstimate:
    kind = call.arguments[0].type
    if kind == call.arguments[1].type:
        if kind.name in ("net.IP", "net.CIDR", "kubernetes.Quantity"):
            return CallEstimate(1)
        if kind.name == "kubernetes.NamedFormat":
            return CallEstimate(scaled(_FORMAT_SIZE_MAX, _TEXT_FACTOR))
        if kind.name == "kubernetes.URL":
            return CallEstimate(scaled((call.arguments[1].size or SCALAR_SIZE).maximum, _TEXT_FACTOR))
    return _compare(call)


_ESTIMATES: dict[str, EstimateCall] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _list_traversal),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _string_transform),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "format"), _string_scan),
    **dict.fromkeys(("find", "findAll"), _regex_find_all),
    **dict.fromkeys(("containsIP", "containsCIDR"), _network_contains),
    **dict.fromkeys(("startsWith", "endsWith"), _prefix_or_suffix),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _order),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _set_comparison(1)),
    "sets.equivalent": _set_comparison(2),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "ip": _ip,
    "ip.isCanonical": _double_string_scan,
    "validate": _format_validation,
    "bytes": _to_bytes,
    "string": _to_string,
    "strings.quote": _quote,
    "@in": _list_membership,
    "matches": _regex_match,
    "contains": _substring_search,
    "_+_": _add,
    "_==_": _equal,
    "_!=_": _compare,
}


def estimate_call(call: OverloadCall) -> CallEstimate:
    """Return the maximum cost of a call, without its arguments, and the size of its result if it is known."""
    return _ESTIMATES.get(call.name, _constant_cost)(call)
