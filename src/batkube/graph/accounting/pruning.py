"""Pruning filters: what is free below a vertex, added up, so that a walk need not go down where too little is left.

A filter `ALL:core` lets every vertex with something below keep a planner of the cores in its subtree; `rack:node` lets
racks keep one of their nodes. Types without children that no filter names are tracked at vertices of the type
`cluster`, as in Fluxion: reservations are sought along the root's planners, so it has to know of everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from batkube.graph.accounting.planner import MultiPlanner
from batkube.graph.resources import ResourceGraph
from batkube.kernel.errors import InputError

#: What Fluxion's resource-query tracks unless told otherwise.
DEFAULT_FILTERS = "ALL:core,ALL:node"
_ALL = "*"
_CLUSTER = "cluster"


class PruningTypes:
    """Which types are tracked at vertices of which type."""

    def __init__(self, text: str = DEFAULT_FILTERS) -> None:
        self._anchors: dict[str, set[str]] = {}
        #: All types that are tracked anywhere.
        self.tracked: set[str] = set()
        for pair in text.split(","):
            anchor, colon, type = (part.strip() for part in pair.partition(":"))
            if not (anchor and colon and type):
                problem = f"{pair!r} is not a pair of types"
                raise InputError("--prune-filters", problem=problem, remedy="write ALL:core,rack:node")
            self.track(_ALL if anchor == "ALL" else anchor, type)

    def track(self, anchor: str, type: str) -> None:
        """Track a type at the vertices of another one; once tracked at all of them, it is so at each."""
        if anchor == _ALL:
            for types in self._anchors.values():
                types.discard(type)
        if anchor == _ALL or type not in self._anchors.get(_ALL, ()):
            self._anchors.setdefault(anchor, set()).add(type)
        self.tracked.add(type)

    def track_leaf(self, type: str) -> None:
        """Track a type without children, which no filter names, at clusters."""
        self.track(_CLUSTER, type)

    def types_at(self, anchor: str, order: Mapping[str, int]) -> list[str]:
        """Return the types that are tracked at vertices of a type: its own, then those tracked everywhere."""
        own = sorted(self._anchors.get(anchor, ()), key=order.__getitem__)
        everywhere = sorted(self._anchors.get(_ALL, ()), key=lambda type: order.get(type, len(order)))
        return own + [type for type in everywhere if type != anchor]


class SubtreeFilters:
    """The filters of a graph's vertices in one subsystem. Planners are made when something is planned."""

    def __init__(self, graph: ResourceGraph, subsystem: str, types: PruningTypes) -> None:
        self._graph = graph
        self._subsystem = subsystem
        self.types = types
        #: How much there is below each vertex with something below it, of the types it tracks, in their order.
        self.totals: dict[int, dict[str, int]] = {}
        self._planners: dict[int, MultiPlanner] = {}
        self.recount()

    def recount(self) -> None:
        """Count what is below every vertex, anew after the graph changed."""
        self.totals = {}
        root = self._graph.roots[self._subsystem]
        sums = self._sums(root)
        for vertex, below in sums.items():
            types = self.types.types_at(self._graph.type[vertex], self._graph.type_order)
            if types and self._graph.out_edges.get(vertex):
                self.totals[vertex] = {type: below.get(type, 0) for type in types}
        for vertex, planner in self._planners.items():
            if vertex in self.totals:
                planner.resize(self.totals[vertex])

    def _sums(self, root: int) -> dict[int, dict[str, int]]:
        """Return for each vertex with something below it how much there is, by type, of all that is tracked."""
        graph, subsystem = self._graph, self._subsystem
        for type in self._leaf_types(root):
            if type not in self.types.tracked:
                self.types.track_leaf(type)
        sums: dict[int, dict[str, int]] = {}
        for vertex, parent in reversed(list(self._walk(root))):
            below = sums.get(vertex, {})
            if parent >= 0:
                above = sums.setdefault(parent, {})
                type = graph.type[vertex]
                if type in self.types.tracked:
                    above[type] = above.get(type, 0) + graph.size[vertex]
                for tracked, count in below.items():
                    above[tracked] = above.get(tracked, 0) + count
            if graph.out_edges.get(vertex):
                sums.setdefault(vertex, below)
        del subsystem
        return sums

    def _leaf_types(self, root: int) -> list[str]:
        graph = self._graph
        leaves = (vertex for vertex, _ in self._walk(root) if not graph.out_edges.get(vertex))
        return list(dict.fromkeys(graph.type[vertex] for vertex in leaves))

    def _walk(self, root: int) -> Iterator[tuple[int, int]]:
        """Yield vertices with the parents they are reached from first, parents before children."""
        seen = {root}
        stack = [(root, -1)]
        while stack:
            vertex, parent = stack.pop()
            yield vertex, parent
            for child in self._graph.children(vertex, self._subsystem):
                if child not in seen:
                    seen.add(child)
                    stack.append((child, vertex))

    def planner(self, vertex: int) -> MultiPlanner | None:
        """Return the planner of a vertex's subtree, made if need be; None where nothing is tracked."""
        planner = self._planners.get(vertex)
        if planner is None and vertex in self.totals:
            planner = self._planners[vertex] = MultiPlanner(self.totals[vertex])
        return planner

    def may_fit(self, vertex: int, start: int, duration: int, demand: Mapping[str, int]) -> bool:
        """Tell whether enough may be free below a vertex all through a window."""
        totals = self.totals.get(vertex)
        if totals is None or not demand:
            return True
        planner = self._planners.get(vertex)
        if planner is None or not planner.spans:
            return all(totals.get(type, count) >= count for type, count in demand.items())
        return planner.fits(start, duration, demand)
