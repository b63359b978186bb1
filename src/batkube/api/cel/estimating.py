"""What evaluating an expression can cost at most, told before it is ever evaluated.

An expression is gone through once, with the size that each part can have: constants have theirs, what comes from the
object has the one its schema allows, a macro costs what it does for one element times the elements there may be
(cel-go: checker/cost.go; what macros expand to: parser/macro.go, ext/comprehensions.go). Only the greatest cost counts
for anybody, so the least one, which cel-go has too, is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from batkube.api.cel.call_estimates import ElementSizes, OverloadCall, SizedPart, estimated
from batkube.api.cel.checking import Types, overloads
from batkube.api.cel.costs import LIST, MAP
from batkube.api.cel.extents import INDICES, ITEMS, KEYS, MOST, ONE, UNKNOWN, VALUES, Extent, Size, capped
from batkube.api.cel.functions import called
from batkube.api.cel.lexing import Value
from batkube.api.cel.trees import Constant, FunctionCall, Index, ListOf, Macro, MapOf, Name, Node, Select
from batkube.api.cel.types import DYN, CelType

_SCALARS = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))
#: What a macro costs for each element beside its expressions, and once for its result: `all` is made of a test of what
#: it has so far (2) and of reading it once more (1), and so on.
_QUANTIFIERS = {"all": (3, 1), "exists": (4, 1), "exists_one": (2, 2), "existsOne": (2, 2)}
#: Reading the list so far, making one of a single item, and joining them.
_ADDING_AN_ITEM = 2 + LIST
#: Reading the map so far, with or without the key, and putting an entry in.
_ADDING_AN_ENTRY = {"transformMap": 3, "transformMapEntry": 2}


class Local(NamedTuple):
    """A variable that a macro brings."""

    path: tuple[str, ...]
    size: Size | None


Locals = dict[str, Local]


def estimated_cost(tree: Node, types: Types, root: Extent) -> int:
    """Return what an expression costs at most, for variables of a known extent."""
    return _Estimator(types, root).part(tree, {}).cost


def _is_scalar(kind: CelType) -> bool:
    if kind.name == "optional_type" and kind.parts:
        return _is_scalar(kind.parts[0])
    return kind.name in _SCALARS


def _constant_size(value: Value) -> Size:
    size = len(value) if isinstance(value, str | bytes) else 1
    return Size(size, size)


class _Estimator:
    """One estimate of one expression."""

    def __init__(self, types: Types, root: Extent) -> None:
        self._types = types
        self._root = root
        self._by_node: dict[type[Node], Callable[[Any, Locals], SizedPart]] = {
            Constant: self._literal,
            Name: self._name,
            Select: self._select,
            Index: self._index,
            ListOf: self._list,
            MapOf: self._map,
            Macro: self._macro,
            FunctionCall: self._call,
        }

    def part(self, node: Node, variables: Locals) -> SizedPart:
        """Return what is known of a part of the expression."""
        return self._by_node[type(node)](node, variables)

    def _type(self, node: Node) -> CelType:
        return self._types.get(id(node), DYN)

    def _size(self, kind: CelType, path: tuple[str, ...] = (), other: Size | None = None) -> Size | None:
        """Return the size of what comes from the object, of what always has the same, or of the last resort."""
        size = self._root.at(path)
        if size is not None:
            return size
        return ONE if _is_scalar(kind) else other

    def _literal(self, node: Constant, variables: Locals) -> SizedPart:
        return SizedPart(node, self._type(node), 0, _constant_size(node.value))

    def _name(self, node: Name, variables: Locals) -> SizedPart:
        kind = self._type(node)
        local = variables.get(node.name) or Local((node.name,), None)
        return SizedPart(node, kind, 1, self._size(kind, local.path, local.size), path=local.path)

    def _select(self, node: Select, variables: Locals) -> SizedPart:
        kind, operand = self._type(node), self.part(node.operand, variables)
        if node.tests:
            # Asking whether a field is there is free (apiserver/pkg/cel/environment/base.go, PresenceTestHasCost).
            return SizedPart(node, kind, operand.cost, ONE)
        if node.optional:
            return SizedPart(node, kind, capped(operand.cost + 1), self._size(kind))
        is_paid_for = operand.type.name == "map" or operand.type.fields is not None
        path = (*operand.path, node.field)
        return SizedPart(node, kind, capped(operand.cost + is_paid_for), self._size(kind, path), path=path)

    def _index(self, node: Index, variables: Locals) -> SizedPart:
        kind, operand, index = self._type(node), self.part(node.operand, variables), self.part(node.index, variables)
        cost = capped(operand.cost + index.cost + 1)
        if node.optional or operand.type.name == "optional_type":
            return SizedPart(node, kind, cost, self._size(kind))
        path = (*operand.path, ITEMS if operand.type.name == "list" else VALUES)
        size = operand.entry.value if operand.entry is not None else self._size(kind, path)
        return SizedPart(node, kind, cost, size, path=path)

    def _list(self, node: ListOf, variables: Locals) -> SizedPart:
        items = [self.part(item, variables) for item in node.items]
        size = Size(len(items), len(items))
        cost = capped(sum(item.cost for item in items) + LIST)
        return SizedPart(node, self._type(node), cost, size, ElementSizes(True, ONE, _any_size(items)))

    def _map(self, node: MapOf, variables: Locals) -> SizedPart:
        keys = [self.part(key, variables) for key, _ in node.entries]
        values = [self.part(value, variables) for _, value in node.entries]
        size = Size(len(keys), len(keys))
        cost = capped(sum(part.cost for part in keys + values) + MAP)
        return SizedPart(node, self._type(node), cost, size, ElementSizes(False, _any_size(keys), _any_size(values)))

    # Functions and operators

    def _call(self, node: FunctionCall, variables: Locals) -> SizedPart:
        name, target_node = called(node)
        kind = self._type(node)
        arguments = [self.part(argument, variables) for argument in node.arguments]
        if name == "dyn":
            return arguments[0]._replace(node=node, type=kind, cost=capped(arguments[0].cost + 1), path=())
        if name in ("_&&_", "_||_"):
            return SizedPart(node, kind, capped(sum(argument.cost for argument in arguments)), ONE)
        if name == "_?_:_":
            return self._conditional(node, kind, arguments)
        target = self.part(target_node, variables) if target_node is not None else None
        parts = ([target] if target is not None else []) + arguments
        size, cost = None, 0
        for signature in overloads(name, target is not None, [part.type for part in parts]):
            estimate = estimated(OverloadCall(name, signature.parameters, target, arguments, self._root))
            cost = max(cost, estimate.cost)
            if estimate.size is not None:
                size = estimate.size if size is None else size.or_size(estimate.size)
            if size is None:
                size = self._size(kind)
        entry = arguments[0].entry if name == "_+_" else None
        if entry is not None:
            entry = entry.or_entry(arguments[1].entry)
        return SizedPart(node, kind, capped(sum(part.cost for part in parts) + cost), size, entry)

    def _conditional(self, node: Node, kind: CelType, arguments: list[SizedPart]) -> SizedPart:
        condition, first, second = arguments
        cost = capped(condition.cost + max(first.cost, second.cost))
        entry = first.entry.or_entry(second.entry) if first.entry is not None else None
        return SizedPart(node, kind, cost, first.extent.or_size(second.extent), entry)

    # Macros

    def _macro(self, node: Macro, variables: Locals) -> SizedPart:
        kind, target = self._type(node), self.part(node.target, variables)
        if node.name in ("optMap", "optFlatMap"):
            return self._optional(node, kind, target, variables)
        inner = {**variables, **_elements(node, target)}
        bodies = [self.part(body, inner) for body in node.bodies]
        tested = bodies[0].cost if len(bodies) == 2 else 0
        size, entry = target.extent, None
        if node.name in _QUANTIFIERS:
            each, once = _QUANTIFIERS[node.name]
            each += bodies[0].cost
            size = ONE
        elif node.name in _ADDING_AN_ENTRY:
            each, once = tested + _ADDING_AN_ENTRY[node.name] + bodies[-1].cost, MAP + 1
        elif node.name == "filter":
            element = self._element(node, target)
            each, once = bodies[0].cost + _ADDING_AN_ITEM + 1, LIST + 1
            entry = ElementSizes(True, ONE, Size(0, element.most))
        else:
            each, once = tested + _ADDING_AN_ITEM + bodies[-1].cost, LIST + 1
            entry = ElementSizes(True, ONE, Size(0, bodies[-1].extent.most))
        cost = capped(target.cost + once + capped(target.extent.most * capped(each)))
        return SizedPart(node, kind, cost, size, entry)

    def _element(self, node: Macro, target: SizedPart) -> Size:
        """Return the size of what `filter` keeps."""
        local = _elements(node, target)[node.variables[0]]
        kind = target.type.parts[0] if target.type.parts else DYN
        return self._size(kind, local.path, local.size) or UNKNOWN

    def _optional(self, node: Macro, kind: CelType, target: SizedPart, variables: Locals) -> SizedPart:
        """Return what `optMap` costs: the optional is asked twice, and its value bound to a name."""
        inner = target.type.parts[0] if target.type.name == "optional_type" else DYN
        body = self.part(node.bodies[0], {**variables, node.variables[0]: Local((), self._size(inner))})
        bound = LIST + target.cost + 1 + body.cost + (node.name == "optMap")
        nothing = self._size(kind) or UNKNOWN
        size = (body.extent if node.name == "optFlatMap" else nothing).or_size(nothing)
        return SizedPart(node, kind, capped(target.cost + 1 + bound), size)


def _any_size(parts: list[SizedPart]) -> Size:
    """Return the size of any of some parts."""
    if not parts:
        return Size(0, 0)
    return Size(min(MOST, *(part.extent.least for part in parts)), max(0, *(part.extent.most for part in parts)))


def _elements(node: Macro, target: SizedPart) -> Locals:
    """Return the variables of a macro: an item or a key, or index and item, or key and value."""
    is_list = target.entry.is_list if target.entry is not None else target.type.name == "list"
    key = Local((*target.path, INDICES if is_list else KEYS), target.entry.key if target.entry else None)
    value = Local((*target.path, ITEMS if is_list else VALUES), target.entry.value if target.entry else None)
    if len(node.variables) == 2:
        return {node.variables[0]: key, node.variables[1]: value}
    return {node.variables[0]: value if is_list else key}
