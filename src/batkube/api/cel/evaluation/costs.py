"""Runtime cost of CEL expressions, with a limit on what one evaluation may cost.

Unit and costs are those of cel-go (interpreter/runtimecost.go) and of Kubernetes' own functions
(apiserver/pkg/cel/library/cost.go). The limit per call corresponds to about a tenth of a second in kube-apiserver
(apiserver/pkg/apis/cel/config.go). In one respect we charge more: where cel-go charges one step for an operation on a
whole structure (comparing nested values, joining lists), we charge by the structure's size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batkube.api.cel.syntax.lexer import Value
from batkube.api.cel.values import CelOptional

CALL_LIMIT = 1_000_000
"""The maximum cost of one evaluation of one expression (PerCallLimit)."""

OBJECT_BUDGET = 10_000_000
"""The maximum cost of all rules for one object (RuntimeCELCostBudget)."""

LIST_COST, MAP_COST, MESSAGE_COST = 10, 30, 40
"""The costs of creating a list, a map and a message (cel-go: common/cost.go)."""

#: The cost of a macro per element, apart from its expressions: the call, the variables and the accumulator.
MACRO_ELEMENT_COSTS = {"all": 3, "exists": 4, "exists_one": 2, "existsOne": 2, "filter": 13}
MACRO_ELEMENT_COST_DEFAULT = 12

#: How many parts of a value are counted before its size is considered unlimited.
_PARTS_MAX = CALL_LIMIT
_TEXT_FACTOR, _REGEX_FACTOR = 0.1, 0.25


class CostExceeded(Exception):
    """The evaluation exceeded its cost limit; unlike CelError, no operator absorbs this."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class CostMeter:
    """Counts the cost of one evaluation."""

    def __init__(self) -> None:
        self.spent = 0

    def charge(self, cost: int) -> None:
        """Add the cost of a step; raises CostExceeded."""
        self.spent += cost
        if self.spent > CALL_LIMIT:
            raise CostExceeded


def size(value: Value) -> int:
    """Return the length of a string, a list or a map; 1 for all other values."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    return size(value.value) if isinstance(value, CelOptional) and value.has_value else 1


def total_size(value: Value) -> int:
    """Return the size of a nested value; parts that occur several times are counted each time, up to the limit."""
    total, count, pending = 0, 0, [value]
    while pending:
        part = pending.pop()
        total, count = total + size(part), count + 1
        if count > _PARTS_MAX:
            return CALL_LIMIT * 100
        if isinstance(part, list):
            pending += part
        elif isinstance(part, dict):
            pending += part.values()
        elif isinstance(part, CelOptional) and part.has_value:
            pending.append(part.value)
    return total


def _scaled(number: float, factor: float = _TEXT_FACTOR) -> int:
    return -int(-number * factor // 1)


def _traversal(arguments: list[Any]) -> int:
    first = arguments[0]
    return total_size(first) if isinstance(first, list) else _scaled(size(first))


def _string_scan(arguments: list[Any]) -> int:
    return _scaled(size(arguments[0]))


def _double_string_scan(arguments: list[Any]) -> int:
    return _scaled(2 * size(arguments[0]))


def _join(arguments: list[Any]) -> int:
    separator = size(arguments[1]) if len(arguments) > 1 else 0
    return _scaled(2 * sum(size(item) + separator for item in arguments[0]))


def _format(arguments: list[Any]) -> int:
    return _scaled(size(arguments[0])) + _scaled(total_size(arguments[1]))


def _regex_match(arguments: list[Any]) -> int:
    return _scaled(1 + size(arguments[0])) * _scaled(size(arguments[1]), _REGEX_FACTOR)


def _substring_search(arguments: list[Any]) -> int:
    return _scaled(size(arguments[0])) * _scaled(size(arguments[1]))


def _compare(arguments: list[Any]) -> int:
    left, right = arguments
    if isinstance(left, list | dict) and isinstance(right, list | dict):
        return _scaled(min(total_size(left), total_size(right)))
    return _scaled(min(size(left), size(right)))


def _add(arguments: list[Any]) -> int:
    left, right = arguments
    return _scaled(size(left) + size(right)) if isinstance(left, str | bytes | list) else 1


def _list_membership(arguments: list[Any]) -> int:
    item, whole = arguments
    if not isinstance(whole, list):
        return 1
    return len(whole) if not isinstance(item, list | dict) else _scaled(len(whole) * total_size(item))


def _set_comparison(arguments: list[Any]) -> int:
    left, right = arguments
    return 1 + size(left) * size(right)


def _set_equivalence(arguments: list[Any]) -> int:
    return 2 * _set_comparison(arguments)


CallCost = Callable[[list[Any]], int]
_CALL_COSTS: dict[str, CallCost] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversal),
    **dict.fromkeys(("url", "isURL", "lowerAscii", "upperAscii", "substring", "trim", "strings.quote"), _string_scan),
    **dict.fromkeys(("startsWith", "endsWith", "bytes", "string", "int", "uint", "double"), _string_scan),
    **dict.fromkeys(("ip", "isIP", "cidr", "isCIDR", "quantity", "isQuantity", "duration", "timestamp"), _string_scan),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _double_string_scan),
    **dict.fromkeys(("find", "findAll", "matches"), _regex_match),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"), _compare),
    "join": _join,
    "format": _format,
    "contains": _substring_search,
    "_+_": _add,
    "@in": _list_membership,
    "sets.contains": _set_comparison,
    "sets.intersects": _set_comparison,
    "sets.equivalent": _set_equivalence,
}


def _constant_cost(_arguments: list[Any]) -> int:
    return 1


def call_cost(function: str) -> CallCost:
    """Return the cost of a function or an operator, as a function of its arguments."""
    return _CALL_COSTS.get(function, _constant_cost)
