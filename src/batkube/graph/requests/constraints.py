"""Constraints of a jobspec on its nodes (RFC 31).

    {"properties": ["gpu", "^slow"]}     has the property gpu and not slow
    {"hostlist": ["node[0-3]"]}          is one of these hosts
    {"ranks": ["0-3"]}                   has one of these ranks
    {"and": […]}, {"or": […]}, {"not": […]}

They apply to vertices of the types `node` and `storage_node` only. Imitates flux-sched
resource/libjobspec/constraint.cpp and `by_constraint` in resource/traversers/dfu_impl.cpp.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from batkube.graph.idsets import decode_hostlist, decode_idset
from batkube.graph.requests.yaml_nodes import SpecNode
from batkube.graph.resources import ResourceGraph

#: The types of vertices that constraints apply to.
CONSTRAINED_TYPES = ("node", "storage_node")
_FORBIDDEN_CHARACTERS = frozenset("!&'\"^`|()")


class Constraint(Protocol):
    """A condition on the vertices that a job may use."""

    def allows(self, graph: ResourceGraph, vertex: int) -> bool:
        """Return whether a job may use a vertex."""
        ...


class _Properties:
    def __init__(self, names: Collection[str]) -> None:
        self._required = [name for name in names if not name.startswith("^")]
        self._excluded = [name[1:] for name in names if name.startswith("^")]

    def allows(self, graph: ResourceGraph, vertex: int) -> bool:
        properties = graph.properties.get(vertex, {})
        return all(name in properties for name in self._required) and not any(
            name in properties for name in self._excluded
        )


class _Hosts:
    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)

    def allows(self, graph: ResourceGraph, vertex: int) -> bool:
        return graph.name[vertex] in self._names


class _Ranks:
    def __init__(self, ranks: Collection[int]) -> None:
        self._ranks = frozenset(ranks)

    def allows(self, graph: ResourceGraph, vertex: int) -> bool:
        return graph.rank[vertex] in self._ranks


class _AllOf:
    def __init__(self, operands: Collection[Constraint], *, is_positive: bool = True) -> None:
        self._operands = operands
        self._is_positive = is_positive

    def allows(self, graph: ResourceGraph, vertex: int) -> bool:
        return all(operand.allows(graph, vertex) for operand in self._operands) is self._is_positive


class _AnyOf:
    def __init__(self, operands: Collection[Constraint]) -> None:
        self._operands = operands

    def allows(self, graph: ResourceGraph, vertex: int) -> bool:
        return any(operand.allows(graph, vertex) for operand in self._operands)


def parse_constraint(node: SpecNode) -> Constraint | None:
    """Return the constraint in a jobspec, or None for an empty one, which allows everything."""
    entries = node.mapping("a constraint")
    if not entries:
        return None
    if len(entries) > 1:
        raise node.error("the constraint has more than one operator", "combine them with `and` or `or`")
    [(operator, value)] = entries.items()
    values = value.sequence(f"the value of the constraint operator {operator!r}")
    if operator in ("and", "or", "not"):
        return _combination(operator, values)
    if operator == "properties":
        return _Properties([_property(node) for node in values])
    if operator == "hostlist":
        return _Hosts([host for node in values for host in node.decode(decode_hostlist)])
    if operator == "ranks":
        return _Ranks([rank for node in values for rank in node.decode(decode_idset)])
    remedy = "use one of properties, hostlist, ranks, and, or, not"
    raise value.error(f"the constraint operator {operator!r} is unknown", remedy)


def _combination(operator: str, values: list[SpecNode]) -> Constraint:
    operands = [operand for value in values if (operand := parse_constraint(value)) is not None]
    if operator == "or":
        # An empty constraint allows everything, and so does an `or` with an empty operand.
        return _AnyOf(operands) if len(operands) == len(values) else _AllOf([])
    return _AllOf(operands, is_positive=operator == "and")


def _property(value: SpecNode) -> str:
    name = value.string("a property")
    if not value.is_quoted:
        raise value.error(f"the property {name} is not a string", "quote it")
    if not _FORBIDDEN_CHARACTERS.isdisjoint(name.removeprefix("^")):
        raise value.error(f"the property {name!r} contains one of !&'\"^`|()", "remove the character")
    return name
