"""The view of a walk on a graph: the edges of one subsystem down from each vertex, by type."""

from __future__ import annotations

from collections.abc import Iterable

from batkube.graph.resources import ResourceGraph

#: The weight of an edge that was never used, more than any other (flux-sched: relation_infra_t in
#: resource/schema/infra_data.hpp).
_UNWEIGHED = 2**64 - 1
#: The order of the edges out of a vertex for first-match policies: negated weight, negated unique id
#: of the target, edge.
EdgeSortKey = tuple[int, int, int]


class SubsystemView:
    """The edges down in one subsystem, computed on first use and cached until the graph changes."""

    def __init__(self, graph: ResourceGraph, subsystem: str) -> None:
        self.graph = graph
        self.subsystem = subsystem
        self.root = graph.roots[subsystem]
        #: Whether every vertex has one parent. Otherwise walks must record which ones they visited.
        self.is_tree = graph.is_tree(subsystem)
        #: The edges by source and by the type of the target; "" stands for all types.
        self._down: dict[int, dict[str, list[int]]] = {}
        self._types_below: dict[int, frozenset[str]] = {}
        #: By edge, the units that were free below it when it was last used, for first-match policies.
        self._weights: dict[int, int] = {}

    def reset(self) -> None:
        """Clear the caches after a change of the graph. Weights are kept."""
        self.is_tree = self.graph.is_tree(self.subsystem)
        self._down.clear()
        self._types_below.clear()

    def edges_down(self, vertex: int, type: str = "") -> list[int]:
        """Return the edges down from a vertex, to vertices of one type unless `type` is empty."""
        edges_by_type = self._down.get(vertex)
        if edges_by_type is None:
            edges_by_type = self._down[vertex] = {"": list(self.graph.edges_from(vertex, self.subsystem))}
        edges = edges_by_type.get(type)
        if edges is None:
            types, targets = self.graph.type, self.graph.edge_target
            edges = edges_by_type[type] = [edge for edge in edges_by_type[""] if types[targets[edge]] == type]
        return edges

    def has_types_below(self, vertex: int, types: Iterable[str]) -> bool:
        """Return whether a vertex has direct children of all types, in any subsystem."""
        below = self._types_below.get(vertex)
        if below is None:
            graph = self.graph
            below = frozenset(graph.type[graph.edge_target[edge]] for edge in graph.out_edges.get(vertex, ()))
            self._types_below[vertex] = below
        return below.issuperset(types)

    def sort_key(self, edge: int) -> EdgeSortKey:
        """Return the sort key of an edge for first matches: most free units first, then the highest id."""
        return -self._weights.get(edge, _UNWEIGHED), -self.graph.uniq_id[self.graph.edge_target[edge]], edge

    def set_weight(self, edge: int, weight: int) -> None:
        """Set the weight of an edge: the free units below it."""
        self._weights[edge] = weight
