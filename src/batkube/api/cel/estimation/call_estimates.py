"""Upper bounds for the cost of a call of a function or an operator, and for the size of its result.

The numbers are those of cel-go (checker/cost.go, functionCost; ext/sets.go) and of Kubernetes' own functions
(apiserver/pkg/cel/library/cost.go, EstimateCallCost). They decide which rules a definition may have. Oddities are
therefore imitated, such as the unlimited cost of an inequality of quantities.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from batkube.api.cel.estimation.sizes import ITEMS, SizeLimits, capped, scaled, size_or_max
from batkube.api.cel.syntax.nodes import Constant, Node
from batkube.api.cel.types import CelType

_TEXT_FACTOR, _REGEX_FACTOR = 0.1, 0.25
#: The number of bytes of an IPv6 address.
_ADDRESS_SIZE = 16
_FORMAT_SIZE = 64
_FORMAT_REGEX_SIZE = 128


class ElementSizes(NamedTuple):
    """The maximum sizes of the elements of a list or a map."""

    is_list: bool
    key: int
    value: int

    def union(self, other: ElementSizes | None) -> ElementSizes | None:
        """Return sizes that cover the elements of both; None if one is unknown."""
        if other is None:
            return None
        return ElementSizes(self.is_list, max(self.key, other.key), max(self.value, other.value))


class EstimatedNode(NamedTuple):
    """The estimate of a node."""

    node: Node
    type: CelType
    cost: int
    #: The maximum size; None if it is unknown.
    size: int | None = None
    element_sizes: ElementSizes | None = None
    #: The path in the variables from which the value comes; () if it is computed.
    path: tuple[str, ...] = ()

    @property
    def size_or_max(self) -> int:
        """The maximum size, or the largest possible one if it is unknown."""
        return size_or_max(self.size)


class OverloadCall(NamedTuple):
    """A call of one overload of a function; a method's receiver is its first argument."""

    name: str
    parameters: tuple[CelType, ...]
    arguments: list[EstimatedNode]
    variable_sizes: SizeLimits

    def size(self, index: int) -> int:
        """Return the maximum size of an argument."""
        return self.arguments[index].size_or_max

    def item_size(self) -> int:
        """Return the maximum size of the items of the first argument, which is a list."""
        path = self.arguments[0].path
        return size_or_max(self.variable_sizes.size_at((*path, ITEMS)) if path else None)


class CallEstimate(NamedTuple):
    """The cost of a call, without that of its arguments."""

    cost: int
    #: The maximum size of the result; None if the call does not determine it.
    size: int | None = None


EstimateCall = Callable[[OverloadCall], CallEstimate]


def _constant_cost(call: OverloadCall) -> CallEstimate:
    return CallEstimate(1)


def _scan(argument: int = 0, *, passes: int = 1, growth: int | None = None) -> EstimateCall:
    """Return the estimate of a function that reads a string; its result is at most `growth` times as long."""

    def estimate(call: OverloadCall) -> CallEstimate:
        size = call.size(argument)
        return CallEstimate(scaled(size, passes * _TEXT_FACTOR), None if growth is None else capped(size * growth))

    return estimate


_scan_string = _scan()


def _list_traversal(call: OverloadCall) -> CallEstimate:
    """Estimate a function that visits every element of a list, or every character of a string."""
    items = call.arguments[0].type.parameters
    if not items:
        return _scan_string(call)
    each = 1 + (scaled(call.item_size(), _TEXT_FACTOR) if items[0].name in ("string", "bytes") else 0)
    return CallEstimate(capped(call.size(0) * each))


def _replace(call: OverloadCall) -> CallEstimate:
    size, new, old = call.size(0), call.size(2), call.arguments[1].node
    length = len(old.value) if isinstance(old, Constant) and isinstance(old.value, str) else 0
    if not length:
        result = (size + 1) * new + size
    elif new <= length:
        result = size
    else:
        result = -(-size // length) * new
    return CallEstimate(scaled(size, 2 * _TEXT_FACTOR), capped(result))


def _split(call: OverloadCall) -> CallEstimate:
    count = call.size(0)
    limit = call.arguments[2].node if len(call.arguments) > 2 else None
    if isinstance(limit, Constant) and isinstance(limit.value, int):
        count = limit.value % 2**64
    return CallEstimate(scaled(call.size(0), 2 * _TEXT_FACTOR), count)


def _join(call: OverloadCall) -> CallEstimate:
    count = call.size(0)
    size = count * call.item_size()
    if len(call.arguments) > 1:
        size += call.size(1) * max(0, count - 1)
    return CallEstimate(scaled(capped(size), _TEXT_FACTOR), capped(size))


def _regex_match(call: OverloadCall) -> CallEstimate:
    text = scaled(capped(call.size(0) + 1), _TEXT_FACTOR)
    return CallEstimate(capped(text * scaled(call.size(1), _REGEX_FACTOR)))


def _regex_find_all(call: OverloadCall) -> CallEstimate:
    return CallEstimate(_regex_match(call).cost, call.size(0))


def _substring_search(call: OverloadCall) -> CallEstimate:
    return CallEstimate(capped(scaled(call.size(0), _TEXT_FACTOR) * scaled(call.size(1), _TEXT_FACTOR)))


def _ip(call: OverloadCall) -> CallEstimate:
    """Estimate `ip(x)`: reading the address of a CIDR is one step, a string has to be parsed."""
    return _scan_string(call) if call.parameters[0].name == "string" else CallEstimate(1)


def _network_contains(call: OverloadCall) -> CallEstimate:
    cost = scaled(2 * _ADDRESS_SIZE, _TEXT_FACTOR)
    if call.name == "containsCIDR":
        cost += scaled(_ADDRESS_SIZE, _TEXT_FACTOR) + 1
    if call.parameters[1].name == "string":
        cost += scaled(call.size(1), _TEXT_FACTOR)
    return CallEstimate(capped(cost))


def _format_validation(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(scaled(call.size(1), _TEXT_FACTOR), _FORMAT_REGEX_SIZE * _REGEX_FACTOR))


def _set_comparison(factor: int) -> EstimateCall:
    return lambda call: CallEstimate(capped(factor * call.size(0) * call.size(1) + 1))


def _conversion(source: str, growth: int) -> EstimateCall:
    """Return the estimate of a conversion that reads values of type `source` only."""
    scan = _scan(growth=growth)
    return lambda call: scan(call) if call.parameters[0].name == source else CallEstimate(1)


def _quote(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(call.size(0), _TEXT_FACTOR), capped(call.size(0) * 2 + 2))


def _list_membership(call: OverloadCall) -> CallEstimate:
    return CallEstimate(call.size(1) if call.parameters[1].name == "list" else 1)


def _add(call: OverloadCall) -> CallEstimate:
    kind = call.parameters[0].name
    if kind not in ("string", "bytes", "list"):
        return CallEstimate(1)
    size = capped(call.size(0) + call.size(1))
    return CallEstimate(1 if kind == "list" else scaled(size, _TEXT_FACTOR), size)


def _compare(call: OverloadCall) -> CallEstimate:
    return CallEstimate(scaled(min(call.size(0), call.size(1)), _TEXT_FACTOR))


def _order(call: OverloadCall) -> CallEstimate:
    return _compare(call) if call.parameters[0].name in ("string", "bytes") else CallEstimate(1)


def _equal(call: OverloadCall) -> CallEstimate:
    first, second = call.arguments
    if first.type == second.type:
        if first.type.name in ("net.IP", "net.CIDR", "kubernetes.Quantity"):
            return CallEstimate(1)
        if first.type.name == "kubernetes.NamedFormat":
            return CallEstimate(scaled(_FORMAT_SIZE, _TEXT_FACTOR))
        if first.type.name == "kubernetes.URL":
            return CallEstimate(scaled(1 if second.size is None else second.size, _TEXT_FACTOR))
    return _compare(call)


_ESTIMATES: dict[str, EstimateCall] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _list_traversal),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _scan(growth=1)),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "format"), _scan_string),
    **dict.fromkeys(("find", "findAll"), _regex_find_all),
    **dict.fromkeys(("containsIP", "containsCIDR"), _network_contains),
    **dict.fromkeys(("startsWith", "endsWith"), _scan(1)),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _order),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _set_comparison(1)),
    "sets.equivalent": _set_comparison(2),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "ip": _ip,
    "ip.isCanonical": _scan(passes=2),
    "validate": _format_validation,
    "bytes": _conversion("string", 4),
    "string": _conversion("bytes", 1),
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
