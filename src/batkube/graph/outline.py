"""How a graph looks to a walk along one subsystem: the ways down from each vertex, in order and by type."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable

from batkube.graph.resources import ResourceGraph

#: What an edge weighs that was never used: more than any other (Fluxion: relation_infra_t).
_UNWEIGHED = 2**64 - 1


class Outline:
    """The ways down, worked out where a walk comes by and kept until the graph changes."""

    def __init__(self, graph: ResourceGraph, subsystem: str) -> None:
        self.graph = graph
        self.subsystem = subsystem
        self.root = graph.roots[subsystem]
        #: Whether no vertex is reached twice; otherwise walks have to remember where they were.
        self.is_tree = graph.is_tree(subsystem)
        self._down: dict[int, list[int]] = {}
        self._by_type: dict[int, dict[str, list[int]]] = {}
        self._types_below: dict[int, frozenset[str]] = {}
        #: What first-match policies know of an edge: how much was free behind it when it was last used.
        self._weights: dict[int, int] = {}
        self._weighed: dict[int, list[tuple[int, int, int]]] = {}

    def forget(self) -> None:
        """Look at the graph anew, which has changed; weights stay."""
        self.is_tree = self.graph.is_tree(self.subsystem)
        self._down.clear()
        self._by_type.clear()
        self._types_below.clear()
        self._weighed.clear()

    def down(self, vertex: int) -> list[int]:
        """Return the edges down from a vertex."""
        edges = self._down.get(vertex)
        if edges is None:
            edges = self._down[vertex] = list(self.graph.edges_from(vertex, self.subsystem))
        return edges

    def down_by_type(self, vertex: int) -> dict[str, list[int]]:
        """Return the edges down from a vertex, by the type of where they lead."""
        groups = self._by_type.get(vertex)
        if groups is None:
            groups = self._by_type[vertex] = {}
            for edge in self.down(vertex):
                groups.setdefault(self.graph.type[self.graph.edge_target[edge]], []).append(edge)
        return groups

    def has_types(self, vertex: int, types: Iterable[str]) -> bool:
        """Tell whether a vertex has all of some types right below it, in any subsystem."""
        below = self._types_below.get(vertex)
        if below is None:
            graph = self.graph
            below = frozenset(graph.type[graph.edge_target[edge]] for edge in graph.out_edges.get(vertex, ()))
            self._types_below[vertex] = below
        return below.issuperset(types)

    def down_by_weight(self, vertex: int) -> list[int]:
        """Return the edges down from a vertex, where most was free first, then by unique ids, the greatest first."""
        return [edge for _, _, edge in self._order(vertex)]

    def weigh(self, vertex: int, edge: int, weight: int) -> None:
        """Note how much is free behind an edge down from a vertex."""
        order = self._order(vertex)
        order.remove(self._key(edge))
        self._weights[edge] = weight
        insort(order, self._key(edge))

    def _order(self, vertex: int) -> list[tuple[int, int, int]]:
        order = self._weighed.get(vertex)
        if order is None:
            order = self._weighed[vertex] = sorted(self._key(edge) for edge in self.down(vertex))
        return order

    def _key(self, edge: int) -> tuple[int, int, int]:
        return -self._weights.get(edge, _UNWEIGHED), -self.graph.uniq_id[self.graph.edge_target[edge]], edge
