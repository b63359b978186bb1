"""Pruning filters: the free units below a vertex, so that walks skip subtrees with too few of them.

With the filter `ALL:core`, every vertex with children has a planner for the cores in its subtree;
with `rack:node`, every rack has one for its nodes. Leaf types without a filter are tracked at
vertices of type `cluster`, as in Fluxion: reservations are searched along the points of the root's
planners, which must therefore include all types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from batkube.graph.accounting.planner import MultiPlanner
from batkube.graph.resources import ResourceGraph
from batkube.kernel.errors import InputError

#: The default of Fluxion's resource-query.
DEFAULT_FILTERS = "ALL:core,ALL:node"
_ALL = "*"
_CLUSTER = "cluster"


class PruningTypes:
    """The tracked types by the type of the vertex that tracks them."""

    def __init__(self, text: str = DEFAULT_FILTERS) -> None:
        self._anchors: dict[str, set[str]] = {}
        #: All types that any vertex tracks.
        self.tracked: set[str] = set()
        for pair in text.split(","):
            anchor, colon, type = (part.strip() for part in pair.partition(":"))
            if not (anchor and colon and type):
                problem = f"{pair!r} is not of the form TYPE:TYPE"
                raise InputError("--prune-filters", problem=problem, remedy="write ALL:core,rack:node")
            self.track(_ALL if anchor == "ALL" else anchor, type)

    def track(self, anchor: str, type: str) -> None:
        """Track a type at the vertices of type `anchor`. `*` means all vertices and replaces single ones."""
        if anchor == _ALL:
            for types in self._anchors.values():
                types.discard(type)
        if anchor == _ALL or type not in self._anchors.get(_ALL, ()):
            self._anchors.setdefault(anchor, set()).add(type)
        self.tracked.add(type)

    def track_leaf(self, type: str) -> None:
        """Track a leaf type that no filter names at clusters."""
        self.track(_CLUSTER, type)

    def types_at(self, anchor: str, order: Mapping[str, int]) -> list[str]:
        """Return the types tracked at vertices of a type: its own, then those tracked everywhere."""
        own = sorted(self._anchors.get(anchor, ()), key=order.__getitem__)
        everywhere = sorted(self._anchors.get(_ALL, ()), key=lambda type: order.get(type, len(order)))
        return own + [type for type in everywhere if type != anchor]


class SubtreeFilters:
    """The filters of a graph's vertices in one subsystem. Planners are created on first use."""

    def __init__(self, graph: ResourceGraph, subsystem: str, types: PruningTypes) -> None:
        self._graph = graph
        self._subsystem = subsystem
        self.types = types
        #: By vertex with children, the total below it of each type that it tracks.
        self.totals: dict[int, dict[str, int]] = {}
        self._planners: dict[int, MultiPlanner] = {}
        self.recount()

    def recount(self) -> None:
        """Recompute the totals after a change of the graph."""
        self.totals = {}
        root = self._graph.roots[self._subsystem]
        for vertex, below in self._sums(root).items():
            types = self.types.types_at(self._graph.type[vertex], self._graph.type_order)
            if types and self._graph.out_edges.get(vertex):
                self.totals[vertex] = {type: below.get(type, 0) for type in types}
        for vertex, planner in self._planners.items():
            if vertex in self.totals:
                planner.resize(self.totals[vertex])

    def _sums(self, root: int) -> dict[int, dict[str, int]]:
        """Return the tracked totals below each vertex with children, by type."""
        graph = self._graph
        for type in self._leaf_types(root):
            if type not in self.types.tracked:
                self.types.track_leaf(type)
        sums: dict[int, dict[str, int]] = {}
        for vertex, parent in reversed(list(self._walk(root))):
            below = sums.get(vertex, {})
            if parent >= 0:
                below_parent = sums.setdefault(parent, {})
                type = graph.type[vertex]
                if type in self.types.tracked:
                    below_parent[type] = below_parent.get(type, 0) + graph.size[vertex]
                for tracked, count in below.items():
                    below_parent[tracked] = below_parent.get(tracked, 0) + count
            if graph.out_edges.get(vertex):
                sums.setdefault(vertex, below)
        return sums

    def _leaf_types(self, root: int) -> list[str]:
        graph = self._graph
        leaves = (vertex for vertex, _ in self._walk(root) if not graph.out_edges.get(vertex))
        return list(dict.fromkeys(graph.type[vertex] for vertex in leaves))

    def _walk(self, root: int) -> Iterator[tuple[int, int]]:
        """Yield vertices, each once and before its children, with the parent from which it was first reached."""
        visited = {root}
        stack = [(root, -1)]
        while stack:
            vertex, parent = stack.pop()
            yield vertex, parent
            for child in self._graph.children(vertex, self._subsystem):
                if child not in visited:
                    visited.add(child)
                    stack.append((child, vertex))

    def planner(self, vertex: int) -> MultiPlanner | None:
        """Return the planner of a vertex's subtree, created on first use; None if it tracks nothing."""
        planner = self._planners.get(vertex)
        if planner is None and vertex in self.totals:
            planner = self._planners[vertex] = MultiPlanner(self.totals[vertex])
        return planner

    def may_fit(self, vertex: int, start: int, duration: int, demand: Mapping[str, int]) -> bool:
        """Return whether a subtree may have enough free units throughout a window."""
        totals = self.totals.get(vertex)
        if totals is None or not demand:
            return True
        planner = self._planners.get(vertex)
        if planner is None or not planner.spans:
            return all(totals.get(type, count) >= count for type, count in demand.items())
        return planner.fits(start, duration, demand)
