"""Constraints of a jobspec: which nodes it may have (RFC 31).

    {"properties": ["gpu", "^slow"]}     has the property gpu and not slow
    {"hostlist": ["node[0-3]"]}          is one of these hosts
    {"ranks": ["0-3"]}                   has one of these ranks
    {"and": […]}, {"or": […]}, {"not": […]}

They are tested on vertices of the types `node` and `storage_node` only (Fluxion: by_constraint).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from batkube.graph.idsets import decode_hostlist, decode_idset
from batkube.graph.requests.yaml_nodes import SpecNode
from batkube.graph.resources import ResourceGraph

#: The types whose vertices constraints are tested on.
CONSTRAINED_TYPES = ("node", "storage_node")
_FORBIDDEN_CHARACTERS = frozenset("!&'\"^`|()")


class Constraint(Protocol):
    """Says of a vertex whether a job may have it."""

    def allows(self, graph: ResourceGraph, vertex: int) -> bool:
        """Tell whether a job may have a vertex."""
        ...


class _Properties:
    def __init__(self, names: Collection[str]) -> None:
        self._wanted = [name for name in names if not name.startswith("^")]
        self._unwanted = [name[1:] for name in names if name.startswith("^")]

    def allows(self, graph: ResourceGraph, vertex: int) -> bool:
        properties = graph.properties.get(vertex, {})
        return all(name in properties for name in self._wanted) and not any(
            name in properties for name in self._unwanted
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
    def __init__(self, parts: Collection[Constraint], *, verdict: bool = True) -> None:
        self._parts = parts
        self._verdict = verdict

    def allows(self, graph: ResourceGraph, vertex: int) -> bool:
        return all(part.allows(graph, vertex) for part in self._parts) is self._verdict


class _AnyOf:
    def __init__(self, parts: Collection[Constraint]) -> None:
        self._parts = parts

    def allows(self, graph: ResourceGraph, vertex: int) -> bool:
        return any(part.allows(graph, vertex) for part in self._parts)


def parse_constraint(node: SpecNode) -> Constraint | None:
    """Return the constraint that a part of a jobspec stands for; None for an empty one, which allows everything."""
    entries = node.mapping("a constraint")
    if not entries:
        return None
    if len(entries) > 1:
        raise node.error("a constraint has more than one operator", "combine them with `and` or `or`")
    [(operator, operands)] = entries.items()
    values = operands.sequence(f"the value of the constraint operator {operator!r}")
    if operator in ("and", "or", "not"):
        return _combination(operator, values)
    if operator == "properties":
        return _Properties([_property(value) for value in values])
    if operator == "hostlist":
        return _Hosts([host for value in values for host in value.decode(decode_hostlist)])
    if operator == "ranks":
        return _Ranks([rank for value in values for rank in value.decode(decode_idset)])
    remedy = "it is one of properties, hostlist, ranks, and, or, not"
    raise operands.error(f"the unknown constraint operator {operator!r}", remedy)


def _combination(operator: str, values: list[SpecNode]) -> Constraint:
    parts = [part for value in values if (part := parse_constraint(value)) is not None]
    if operator == "or":
        # An empty constraint allows everything, and so does what it is one choice of.
        return _AnyOf(parts) if len(parts) == len(values) else _AllOf([])
    return _AllOf(parts, verdict=operator == "and")


def _property(value: SpecNode) -> str:
    name = value.string("a property")
    if not value.is_quoted:
        raise value.error(f"the property {name} is not a string", "put it in quotes")
    if not _FORBIDDEN_CHARACTERS.isdisjoint(name.removeprefix("^")):
        raise value.error(f"the property {name!r} has a character that none may have", "leave out !&'\"^`|()")
    return name
