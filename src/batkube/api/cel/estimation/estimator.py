"""Static cost estimates: an upper bound for the cost of evaluating an expression.

The estimator walks the syntax tree once, with a maximum size for each node: constants have their own size, values from
the object have the maximum size that their schema allows, and a macro costs its body times the maximum number of
elements. cel-go also computes a lower bound, which Kubernetes does not use; it is left out.

cel-go: checker/cost.go; expansions of macros: parser/macro.go, ext/comprehensions.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from batkube.api.cel.checker import NodeTypes, matching_overloads
from batkube.api.cel.estimation.call_estimates import ElementSizes, EstimatedNode, OverloadCall, estimate_call
from batkube.api.cel.estimation.sizes import (
    INDICES,
    ITEMS,
    KEYS,
    VALUES,
    SizeLimits,
    capped,
    size_or_max,
)
from batkube.api.cel.evaluation.costs import LIST_COST, MAP_COST
from batkube.api.cel.functions.overloads import resolve_call
from batkube.api.cel.syntax.lexer import Value
from batkube.api.cel.syntax.nodes import (
    Constant,
    FunctionCall,
    Identifier,
    Index,
    ListLiteral,
    MacroCall,
    MapLiteral,
    Node,
    Select,
)
from batkube.api.cel.types import DYN, CelType

_SCALARS = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))
#: The cost of a macro per element, apart from its expressions, and once for its result: `all` expands to a test of its
#: accumulator (2) and a read of it (1), and so on.
_QUANTIFIERS = {"all": (3, 1), "exists": (4, 1), "exists_one": (2, 2), "existsOne": (2, 2)}
#: Read the accumulated list, create a list of one item, and join them.
_APPEND_COST = 2 + LIST_COST
#: Read the accumulated map, with or without the key, and insert an entry.
_INSERT_COSTS = {"transformMap": 3, "transformMapEntry": 2}


class MacroVariable(NamedTuple):
    """An iteration variable of a macro."""

    path: tuple[str, ...]
    size: int | None


MacroVariables = dict[str, MacroVariable]


def estimate_cost(tree: Node, types: NodeTypes, root: SizeLimits) -> int:
    """Return the maximum cost of an expression, for variables within size limits."""
    return _Estimator(types, root).estimate(tree, {}).cost


def _is_scalar(kind: CelType) -> bool:
    if kind.name == "optional_type" and kind.parameters:
        return _is_scalar(kind.parameters[0])
    return kind.name in _SCALARS


def _constant_size(value: Value) -> int:
    return len(value) if isinstance(value, str | bytes) else 1


class _Estimator:
    """The estimation of one expression."""

    def __init__(self, types: NodeTypes, root: SizeLimits) -> None:
        self._types = types
        self._root = root
        self._by_node: dict[type[Node], Callable[[Any, MacroVariables], EstimatedNode]] = {
            Constant: self._literal,
            Identifier: self._identifier,
            Select: self._select,
            Index: self._index,
            ListLiteral: self._list,
            MapLiteral: self._map,
            MacroCall: self._macro,
            FunctionCall: self._call,
        }

    def estimate(self, node: Node, variables: MacroVariables) -> EstimatedNode:
        """Return the estimate of a node."""
        return self._by_node[type(node)](node, variables)

    def _type(self, node: Node) -> CelType:
        return self._types.get(id(node), DYN)

    def _size(self, kind: CelType, path: tuple[str, ...] = (), other: int | None = None) -> int | None:
        """Return the maximum size of a value by its path in the object, by its type, or else the given fallback."""
        size = self._root.size_at(path)
        if size is not None:
            return size
        return 1 if _is_scalar(kind) else other

    def _literal(self, node: Constant, variables: MacroVariables) -> EstimatedNode:
        return EstimatedNode(node, self._type(node), 0, _constant_size(node.value))

    def _identifier(self, node: Identifier, variables: MacroVariables) -> EstimatedNode:
        kind = self._type(node)
        local = variables.get(node.name) or MacroVariable((node.name,), None)
        return EstimatedNode(node, kind, 1, self._size(kind, local.path, local.size), path=local.path)

    def _select(self, node: Select, variables: MacroVariables) -> EstimatedNode:
        kind, operand = self._type(node), self.estimate(node.operand, variables)
        if node.test_only:
            # Testing for a field is free (apiserver/pkg/cel/environment/base.go, PresenceTestHasCost).
            return EstimatedNode(node, kind, operand.cost, 1)
        if node.optional:
            return EstimatedNode(node, kind, capped(operand.cost + 1), self._size(kind))
        is_paid_for = operand.type.name == "map" or operand.type.fields is not None
        path = (*operand.path, node.field)
        return EstimatedNode(node, kind, capped(operand.cost + is_paid_for), self._size(kind, path), path=path)

    def _index(self, node: Index, variables: MacroVariables) -> EstimatedNode:
        kind, operand = self._type(node), self.estimate(node.operand, variables)
        index = self.estimate(node.index, variables)
        cost = capped(operand.cost + index.cost + 1)
        if node.optional or operand.type.name == "optional_type":
            return EstimatedNode(node, kind, cost, self._size(kind))
        path = (*operand.path, ITEMS if operand.type.name == "list" else VALUES)
        size = operand.element_sizes.value if operand.element_sizes is not None else self._size(kind, path)
        return EstimatedNode(node, kind, cost, size, path=path)

    def _list(self, node: ListLiteral, variables: MacroVariables) -> EstimatedNode:
        items = [self.estimate(item, variables) for item in node.items]
        cost = capped(sum(item.cost for item in items) + LIST_COST)
        return EstimatedNode(node, self._type(node), cost, len(items), ElementSizes(True, 1, _largest(items)))

    def _map(self, node: MapLiteral, variables: MacroVariables) -> EstimatedNode:
        keys = [self.estimate(key, variables) for key, _ in node.entries]
        values = [self.estimate(value, variables) for _, value in node.entries]
        cost = capped(sum(part.cost for part in keys + values) + MAP_COST)
        sizes = ElementSizes(False, _largest(keys), _largest(values))
        return EstimatedNode(node, self._type(node), cost, len(keys), sizes)

    # Functions and operators

    def _call(self, node: FunctionCall, variables: MacroVariables) -> EstimatedNode:
        name, target = resolve_call(node)
        kind = self._type(node)
        parts = [*node.arguments] if target is None else [target, *node.arguments]
        arguments = [self.estimate(part, variables) for part in parts]
        if name == "dyn":
            return arguments[0]._replace(node=node, type=kind, cost=capped(arguments[0].cost + 1), path=())
        if name in ("_&&_", "_||_"):
            return EstimatedNode(node, kind, capped(sum(argument.cost for argument in arguments)), 1)
        if name == "_?_:_":
            return self._conditional(node, kind, arguments)
        size, cost = None, 0
        for signature in matching_overloads(name, target is not None, [argument.type for argument in arguments]):
            estimate = estimate_call(OverloadCall(name, signature.parameters, arguments, self._root))
            cost = max(cost, estimate.cost)
            if estimate.size is not None:
                size = estimate.size if size is None else max(size, estimate.size)
            if size is None:
                size = self._size(kind)
        entry = arguments[0].element_sizes if name == "_+_" else None
        if entry is not None:
            entry = entry.union(arguments[1].element_sizes)
        cost = capped(sum(argument.cost for argument in arguments) + cost)
        return EstimatedNode(node, kind, cost, size, entry)

    def _conditional(self, node: Node, kind: CelType, arguments: list[EstimatedNode]) -> EstimatedNode:
        condition, first, second = arguments
        cost = capped(condition.cost + max(first.cost, second.cost))
        entry = first.element_sizes.union(second.element_sizes) if first.element_sizes is not None else None
        return EstimatedNode(node, kind, cost, max(first.size_or_max, second.size_or_max), entry)

    # Macros

    def _macro(self, node: MacroCall, variables: MacroVariables) -> EstimatedNode:
        kind, target = self._type(node), self.estimate(node.target, variables)
        if node.name in ("optMap", "optFlatMap"):
            return self._optional_macro(node, kind, target, variables)
        inner = {**variables, **_macro_variables(node, target)}
        bodies = [self.estimate(body, inner) for body in node.bodies]
        tested = bodies[0].cost if len(bodies) == 2 else 0
        size, entry = target.size_or_max, None
        if node.name in _QUANTIFIERS:
            each, once = _QUANTIFIERS[node.name]
            each += bodies[0].cost
            size = 1
        elif node.name in _INSERT_COSTS:
            each, once = tested + _INSERT_COSTS[node.name] + bodies[-1].cost, MAP_COST + 1
        elif node.name == "filter":
            each, once = bodies[0].cost + _APPEND_COST + 1, LIST_COST + 1
            entry = ElementSizes(True, 1, self._element_size(node, target))
        else:
            each, once = tested + _APPEND_COST + bodies[-1].cost, LIST_COST + 1
            entry = ElementSizes(True, 1, bodies[-1].size_or_max)
        cost = capped(target.cost + once + capped(target.size_or_max * capped(each)))
        return EstimatedNode(node, kind, cost, size, entry)

    def _element_size(self, node: MacroCall, target: EstimatedNode) -> int:
        """Return the maximum size of an element of the result of `filter`."""
        local = _macro_variables(node, target)[node.variables[0]]
        kind = target.type.parameters[0] if target.type.parameters else DYN
        return size_or_max(self._size(kind, local.path, local.size))

    def _optional_macro(
        self, node: MacroCall, kind: CelType, target: EstimatedNode, variables: MacroVariables
    ) -> EstimatedNode:
        """Return the cost of `optMap`: it reads the optional twice and binds its value to a variable."""
        inner = target.type.parameters[0] if target.type.name == "optional_type" else DYN
        body = self.estimate(node.bodies[0], {**variables, node.variables[0]: MacroVariable((), self._size(inner))})
        bound = LIST_COST + target.cost + 1 + body.cost + (node.name == "optMap")
        size = size_or_max(self._size(kind))
        if node.name == "optFlatMap":
            size = max(size, body.size_or_max)
        return EstimatedNode(node, kind, capped(target.cost + 1 + bound), size)


def _largest(parts: list[EstimatedNode]) -> int:
    """Return the maximum size of the parts; 0 if there are none."""
    return max((part.size_or_max for part in parts), default=0)


def _macro_variables(node: MacroCall, target: EstimatedNode) -> MacroVariables:
    """Return the variables of a macro: an item or a key, or index and item, or key and value."""
    is_list = target.element_sizes.is_list if target.element_sizes is not None else target.type.name == "list"
    key = MacroVariable(
        (*target.path, INDICES if is_list else KEYS), target.element_sizes.key if target.element_sizes else None
    )
    value = MacroVariable(
        (*target.path, ITEMS if is_list else VALUES), target.element_sizes.value if target.element_sizes else None
    )
    if len(node.variables) == 2:
        return {node.variables[0]: key, node.variables[1]: value}
    return {node.variables[0]: value if is_list else key}
