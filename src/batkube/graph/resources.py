"""The resource graph: clusters, racks, nodes, sockets, cores and everything else a job can request.

Vertices are consecutive numbers, and their attributes are stored in columns: `graph.type[v]`,
`graph.size[v]`. A graph of ten thousand nodes with 64 cores has 650,000 vertices; one object per
vertex would cost more memory and time than all the rest. Edges are numbers too. Every walk follows
them in the order in which they were added.

An edge belongs to a *subsystem*. The subsystem `containment` always exists and says which vertex
contains which. Others (`power`, `ibnet`, …) connect some of the same vertices differently. Imitates
flux-sched resource/schema; see Flux RFC 4.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping

CONTAINMENT = "containment"

#: The types that Fluxion registers at start, in its order (flux-sched resource/schema/data_std.cpp).
#: Other types follow in the order in which they appear in the input. Sets of types are iterated in
#: this order, which decides along which planner's points a reservation is searched.
_STANDARD_TYPES = (
    "cluster",
    "core",
    "socket",
    "gpu",
    "node",
    "rack",
    "slot",
    "xor_slot",
    "ssd",
    "storage_node",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Vertex:
    """The attributes of a new vertex. `paths` has its path in each subsystem it belongs to."""

    type: str
    basename: str
    name: str
    id: int
    paths: Mapping[str, str]
    size: int = 1
    unit: str = ""
    rank: int = -1
    is_up: bool = True
    uniq_id: int | None = None
    properties: Mapping[str, str] = dataclasses.field(default_factory=dict)


class ResourceGraph:
    """Vertices and edges, stored in columns."""

    def __init__(self) -> None:
        self.type: list[str] = []
        self.basename: list[str] = []
        self.name: list[str] = []
        self.id: list[int] = []
        self.uniq_id: list[int] = []
        self.rank: list[int] = []
        self.size: list[int] = []
        self.unit: list[str] = []
        self.is_up: list[bool] = []
        #: Vertices without properties have no entry.
        self.properties: dict[int, dict[str, str]] = {}
        #: By subsystem, the paths of its vertices. The root is the vertex whose path has one name.
        self.paths: dict[str, dict[int, str]] = {}
        self.roots: dict[str, int] = {}
        self.edge_source: list[int] = []
        self.edge_target: list[int] = []
        self.edge_subsystem: list[str] = []
        #: The edges out of and into each vertex, of all subsystems; no entry if there are none.
        self.out_edges: dict[int, list[int]] = {}
        self.in_edges: dict[int, list[int]] = {}
        self.by_type: dict[str, list[int]] = {}
        self.by_rank: dict[int, list[int]] = {}
        self.type_order: dict[str, int] = {type: index for index, type in enumerate(_STANDARD_TYPES)}
        #: Whether matches are written with units. False for JGF files, whose units Fluxion drops.
        self.shows_units = True
        self._by_path: dict[str, list[int]] | None = None
        #: The number of `node` vertices marked up. Counted as in Fluxion: a change of a vertex's
        #: status adds or subtracts all nodes below it.
        self.nodes_up = 0

    def add_vertex(self, vertex: Vertex) -> int:
        """Add a vertex and return its number."""
        number = len(self.type)
        type = sys.intern(vertex.type)
        self.type_order.setdefault(type, len(self.type_order))
        self.type.append(type)
        self.basename.append(sys.intern(vertex.basename))
        self.name.append(sys.intern(vertex.name))
        self.id.append(vertex.id)
        self.uniq_id.append(number if vertex.uniq_id is None else vertex.uniq_id)
        self.rank.append(vertex.rank)
        self.size.append(vertex.size)
        self.unit.append(sys.intern(vertex.unit))
        self.is_up.append(vertex.is_up)
        if vertex.properties:
            self.properties[number] = dict(vertex.properties)
        self.by_type.setdefault(type, []).append(number)
        self.by_rank.setdefault(vertex.rank, []).append(number)
        self.nodes_up += type == "node" and vertex.is_up
        for subsystem, path in vertex.paths.items():
            self.add_path(number, subsystem, path)
        return number

    def add_path(self, vertex: int, subsystem: str, path: str) -> None:
        """Set the path of a vertex in a subsystem; a path of one name makes it the root."""
        self.paths.setdefault(subsystem, {})[vertex] = path
        if path.count("/") == 1:
            self.roots.setdefault(subsystem, vertex)
        if self._by_path is not None:
            self._by_path.setdefault(path, []).append(vertex)

    def add_edge(self, source: int, target: int, subsystem: str = CONTAINMENT) -> int:
        """Add an edge and return its number."""
        edge = len(self.edge_source)
        self.edge_source.append(source)
        self.edge_target.append(target)
        self.edge_subsystem.append(subsystem)
        self.out_edges.setdefault(source, []).append(edge)
        self.in_edges.setdefault(target, []).append(edge)
        return edge

    def edge_between(self, source: int, target: int) -> int | None:
        """Return the edge from one vertex to another, or None."""
        return next((edge for edge in self.in_edges.get(target, ()) if self.edge_source[edge] == source), None)

    def edges_from(self, vertex: int, subsystem: str) -> Iterator[int]:
        """Yield the edges out of a vertex in a subsystem, in order."""
        return (edge for edge in self.out_edges.get(vertex, ()) if self.edge_subsystem[edge] == subsystem)

    def children(self, vertex: int, subsystem: str = CONTAINMENT) -> list[int]:
        """Return the direct children of a vertex in a subsystem."""
        return [self.edge_target[edge] for edge in self.edges_from(vertex, subsystem)]

    def parent_edge(self, vertex: int, subsystem: str = CONTAINMENT) -> int | None:
        """Return the first edge into a vertex in a subsystem; None for a root."""
        return next((edge for edge in self.in_edges.get(vertex, ()) if self.edge_subsystem[edge] == subsystem), None)

    def ancestors(self, vertex: int, subsystem: str = CONTAINMENT) -> Iterator[int]:
        """Yield the ancestors of a vertex in a subsystem, the nearest first."""
        while (edge := self.parent_edge(vertex, subsystem)) is not None:
            vertex = self.edge_source[edge]
            yield vertex

    def subtree(self, vertex: int, subsystem: str = CONTAINMENT) -> Iterator[int]:
        """Yield a vertex and all its descendants in a subsystem, parents first, each once."""
        visited = {vertex}
        stack = [vertex]
        while stack:
            current = stack.pop()
            yield current
            for child in reversed(self.children(current, subsystem)):
                if child not in visited:
                    visited.add(child)
                    stack.append(child)

    def at_path(self, path: str) -> list[int]:
        """Return the vertices with this path in any subsystem."""
        if self._by_path is None:
            self._by_path = {}
            for vertex in range(len(self.type)):
                for paths in self.paths.values():
                    if vertex in paths:
                        self._by_path.setdefault(paths[vertex], []).append(vertex)
        return self._by_path.get(path, [])

    def paths_of(self, vertex: int) -> dict[str, str]:
        """Return the paths of a vertex by subsystem."""
        return {subsystem: paths[vertex] for subsystem, paths in self.paths.items() if vertex in paths}

    def is_tree(self, subsystem: str) -> bool:
        """Return whether every vertex has at most one edge into it in a subsystem."""
        targets = [
            target
            for target, name in zip(self.edge_target, self.edge_subsystem, strict=True)
            if name == subsystem and target >= 0
        ]
        return len(targets) == len(set(targets))

    def remove_vertices(self, vertices: set[int]) -> None:
        """Remove vertices with their edges. Their numbers are not used again."""
        for vertex in sorted(vertices):
            for edge in [*self.out_edges.pop(vertex, ()), *self.in_edges.pop(vertex, ())]:
                self._drop_edge(edge)
            self.by_type[self.type[vertex]].remove(vertex)
            self.by_rank[self.rank[vertex]].remove(vertex)
            for paths in self.paths.values():
                path = paths.pop(vertex, None)
                if path is not None and self._by_path is not None:
                    self._by_path.pop(path, None)

    def _drop_edge(self, edge: int) -> None:
        for edges, end in ((self.out_edges, self.edge_source[edge]), (self.in_edges, self.edge_target[edge])):
            if edge in edges.get(end, ()):
                edges[end].remove(edge)
        self.edge_target[edge] = -1
