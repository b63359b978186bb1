"""How a graph looks to a walk along one subsystem: the ways down from each vertex, in order and by type."""

from __future__ import annotations

from collections.abc import Iterable

from batkube.graph.resources import ResourceGraph

#: What an edge weighs that was never used: more than any other (Fluxion: relation_infra_t).
_UNWEIGHED = 2**64 - 1
#: Where an edge stands among those out of one vertex for first matches: by weight and by unique id, both negative.
EdgeSortKey = tuple[int, int, int]


class SubsystemView:
    """The ways down, worked out where a walk comes by and kept until the graph changes."""

    def __init__(self, graph: ResourceGraph, subsystem: str) -> None:
        self.graph = graph
        self.subsystem = subsystem
        self.root = graph.roots[subsystem]
        #: Whether no vertex is reached twice; otherwise walks have to remember where they were.
        self.is_tree = graph.is_tree(subsystem)
        #: By vertex, and by the type of where they lead; those of all types are under the empty one.
        self._down: dict[int, dict[str, list[int]]] = {}
        self._types_below: dict[int, frozenset[str]] = {}
        #: What first-match policies know of an edge: how much was free behind it when it was last used.
        self._weights: dict[int, int] = {}

    def reset(self) -> None:
        """Look at the graph anew, which has changed; weights stay."""
        self.is_tree = self.graph.is_tree(self.subsystem)
        self._down.clear()
        self._types_below.clear()

    def edges_down(self, vertex: int, type: str = "") -> list[int]:
        """Return the edges down from a vertex, to vertices of one type if it is said."""
        ways = self._down.get(vertex)
        if ways is None:
            ways = self._down[vertex] = {"": list(self.graph.edges_from(vertex, self.subsystem))}
        edges = ways.get(type)
        if edges is None:
            types, targets = self.graph.type, self.graph.edge_target
            edges = ways[type] = [edge for edge in ways[""] if types[targets[edge]] == type]
        return edges

    def has_types_below(self, vertex: int, types: Iterable[str]) -> bool:
        """Tell whether a vertex has all of some types right below it, in any subsystem."""
        below = self._types_below.get(vertex)
        if below is None:
            graph = self.graph
            below = frozenset(graph.type[graph.edge_target[edge]] for edge in graph.out_edges.get(vertex, ()))
            self._types_below[vertex] = below
        return below.issuperset(types)

    def sort_key(self, edge: int) -> EdgeSortKey:
        """Return where first matches look behind an edge: where most was free first, then by the greatest unique id."""
        return -self._weights.get(edge, _UNWEIGHED), -self.graph.uniq_id[self.graph.edge_target[edge]], edge

    def set_weight(self, edge: int, weight: int) -> None:
        """Note how much is free behind an edge."""
        self._weights[edge] = weight
