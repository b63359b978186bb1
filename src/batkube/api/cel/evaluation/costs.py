"""Runtime cost of CEL expressions, with a limit on what one evaluation may cost.

Unit and costs are those of cel-go (interpreter/runtimecost.go) and of Kubernetes' own functions
(apiserver/pkg/cel/library/cost.go). The limit per call corresponds to about a tenth of a second in kube-apiserver
(apiserver/pkg/apis/cel/config.go). In one respect we charge more: where Kubernetes charges one step for an operation on
a whole structure (comparing nested values, joining lists), or by the size of an argument for a result that may be far
larger (`replace`, `findAll`), we charge by the size. Operations are charged before they allocate their result.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from batkube.api.cel.syntax.lexer import Value
from batkube.api.cel.values import CelOptional

CALL_LIMIT = 1_000_000
"""The maximum cost of one evaluation of one expression (PerCallLimit)."""

OBJECT_BUDGET = 10_000_000
"""The maximum cost of all rules for one object, or of one policy with one binding (RuntimeCELCostBudget)."""

LIST_COST, MAP_COST, MESSAGE_COST = 10, 30, 40
"""The costs of creating a list, a map and a message (cel-go: common/cost.go)."""

#: The cost of a macro per element, apart from its expressions: the call, the variables and the accumulator.
MACRO_ELEMENT_COSTS = {"all": 3, "exists": 4, "exists_one": 2, "existsOne": 2, "filter": 13}
MACRO_ELEMENT_COST_DEFAULT = 12

#: How many parts of a value are counted before its size is considered unlimited.
_PARTS_MAX = CALL_LIMIT
#: The precisions in a format template; larger ones are rejected.
_find_precisions = re.compile(r"%\.(\d{1,4})").findall
#: The last ones are ours: Kubernetes charges one step for a part of a URL of any length, and nothing for the matches of
#: `findAll`, which take most of its time.
_TEXT_FACTOR, _REGEX_FACTOR, _URL_FACTOR, _MATCH_FACTOR = 0.1, 0.25, 0.01, 4


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


def _replace(arguments: list[Any]) -> int:
    text, old, new, *limit = arguments
    count = text.count(old) if not limit or limit[0] < 0 else min(limit[0], text.count(old))
    return max(_double_string_scan(arguments), _scaled(len(text) + count * (len(new) - len(old))))


def _double_string_scan(arguments: list[Any]) -> int:
    return _scaled(2 * size(arguments[0]))


def _join(arguments: list[Any]) -> int:
    separator = size(arguments[1]) if len(arguments) > 1 else 0
    return _scaled(2 * sum(size(item) + separator for item in arguments[0]))


def _format(arguments: list[Any]) -> int:
    template, values = arguments
    digits = sum(int(precision) for precision in _find_precisions(template))
    return max(_scaled(size(template)) + _scaled(total_size(values)), _scaled(digits))


def _regex_match(arguments: list[Any]) -> int:
    return _scaled(1 + size(arguments[0])) * _scaled(size(arguments[1]), _REGEX_FACTOR)


def _find_all(arguments: list[Any]) -> int:
    text, pattern, *limit = arguments
    matches_max = len(text) + 1 if not limit or limit[0] < 0 else min(limit[0], len(text) + 1)
    return max(_regex_match([text, pattern]), _scaled(matches_max, _MATCH_FACTOR))


def _format_validation(arguments: list[Any]) -> int:
    form, text = arguments
    return _scaled(1 + size(text)) * _scaled(form.regex_size, _REGEX_FACTOR)


def _url_part(arguments: list[Any]) -> int:
    return max(1, _scaled(sum(map(len, arguments[0])), _URL_FACTOR))


def _contains_address(arguments: list[Any]) -> int:
    network, other = arguments
    return _scaled(2 * _prefix_bytes(network)) + (_string_scan([other]) if isinstance(other, str) else 0)


def _contains_network(arguments: list[Any]) -> int:
    return _contains_address(arguments) + _scaled(_prefix_bytes(arguments[0])) + 1


def _prefix_bytes(network: Any) -> int:  # noqa: ANN401 - an interface of either version
    return _scaled(network.network.prefixlen, 1 / 8)


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
    **dict.fromkeys(("split", "ip.isCanonical"), _double_string_scan),
    "jsonpatch.escapeKey": _string_scan,
    "replace": _replace,
    **dict.fromkeys(("find", "matches"), _regex_match),
    "findAll": _find_all,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"), _compare),
    **dict.fromkeys(("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery"), _url_part),
    "containsIP": _contains_address,
    "containsCIDR": _contains_network,
    "validate": _format_validation,
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
