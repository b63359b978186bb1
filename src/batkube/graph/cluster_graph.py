"""The graph of a cluster's nodes and the jobspecs of pods, as fluence (flux-k8s) makes them.

    k8scluster0 → subnet (a zone) → [rack] → node → [socket] → core, memory (1024 MB each), gpu, …

Only whole units count: a node has a core vertex per whole core, and a pod that requests a fraction
of a core takes a whole one. Racks and sockets are left out if no node names any. The subnet level
always exists. Imitates flux-k8s src/fluence/jgf and src/fluence/jobspec.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from batkube.graph.formats.match_writers import MatchedVertex, MatchWriter
from batkube.graph.matching.booking import Booking, BookingKind, JobWindow
from batkube.graph.matching.matcher import Matcher
from batkube.graph.requests.jobspec import SLOT, CountRange, Jobspec, VertexRequest
from batkube.graph.resources import CONTAINMENT, ResourceGraph, Vertex
from batkube.graph.traversal.selection import VertexSelection
from batkube.kernel.errors import InputError
from batkube.kernel.quantities import CPU, MEMORY

CORE, MEMORY_TYPE, NODE_TYPE, GPU_TYPE = "core", "memory", "node", "gpu"
#: The size of a memory vertex, as in fluence.
MEMORY_MB = 1024
_MIB = 1 << 20
_BASENAMES = {GPU_TYPE: "nvidiagpu"}
#: The maximum number of vertices of one type in a node. A resource with more is a quantity, such as
#: bytes, and not a number of devices.
_COUNT_MAX = 65_536
#: Pruning filters: every vertex with children counts the cores and nodes below it.
FILTERS = "ALL:core,ALL:node"


@dataclasses.dataclass(frozen=True, slots=True)
class NodeResources:
    """The resources of a node as numbers of vertices by type, and its location."""

    name: str
    #: The node's id. Match policies prefer low or high ids.
    number: int
    counts: Mapping[str, int]
    zone: str = ""
    rack: str = ""
    sockets: int = 0


def vertex_counts(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of whole vertices for amounts of resources (cpu in millicores)."""
    counts = {}
    for resource, amount in amounts.items():
        type, unit = _vertex_type(resource)
        if type:
            counts[type] = min(max(amount, 0) // unit, _COUNT_MAX)
    return counts


def vertex_demand(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of vertices that a pod with these requests takes; at least one core."""
    counts = {CORE: 1}
    for resource, amount in amounts.items():
        type, unit = _vertex_type(resource)
        if type and amount > 0:
            counts[type] = max(-(-amount // unit), 1)
    return counts


def _vertex_type(resource: str) -> tuple[str, int]:
    """Return the vertex type of a resource and the amount per vertex; an empty type if none."""
    if resource == CPU:
        return CORE, 1000
    if resource == MEMORY:
        return MEMORY_TYPE, MEMORY_MB * _MIB
    if resource.endswith("/gpu"):
        return GPU_TYPE, 1
    return (resource, 1) if "/" in resource else ("", 1)


class ClusterGraph:
    """A graph of nodes that can be added and removed, with the vertices of each node."""

    def __init__(self, nodes: Iterable[NodeResources] = (), *, has_racks: bool = False) -> None:
        self.graph = ResourceGraph()
        self._has_racks = has_racks
        self.root = self.graph.add_vertex(
            Vertex("cluster", "k8scluster", "k8scluster0", 0, {CONTAINMENT: "/k8scluster0"})
        )
        self._zones: dict[str, int] = {}
        self._racks: dict[tuple[str, str], int] = {}
        self.node_vertices: dict[str, int] = {}
        self._leaves: dict[int, dict[str, list[int]]] = {}
        for resources in nodes:
            self.add_node(resources)

    def add_node(self, resources: NodeResources) -> int:
        """Add a node and return its vertex."""
        name, number = resources.name, resources.number
        node = self._add_child(self._parent_of(resources), NODE_TYPE, "node", name, number, rank=number)
        self.node_vertices[name] = node
        parents = [
            self._add_child(node, "socket", "socket", f"socket{socket}", socket, rank=number)
            for socket in range(resources.sockets)
        ] or [node]
        leaves = self._leaves[node] = {}
        for type, count in resources.counts.items():
            basename, size = _BASENAMES.get(type, type.rpartition("/")[2]), MEMORY_MB if type == MEMORY_TYPE else 1
            for index in range(count):
                parent = parents[index * len(parents) // count]
                leaf = self._add_child(parent, type, basename, f"{basename}{index}", index, rank=number, size=size)
                leaves.setdefault(type, []).append(leaf)
        return node

    def pop_node(self, name: str) -> int:
        """Forget a node and return its vertex. The caller removes the vertex from the graph."""
        vertex = self.node_vertices.pop(name)
        self._leaves.pop(vertex, None)
        return vertex

    def leaves(self, name: str, type: str) -> list[int]:
        """Return the vertices of a type in a node."""
        return self._leaves[self.node_vertices[name]].get(type, [])

    def path(self, name: str) -> str:
        """Return the containment path of a node."""
        return self.graph.paths[CONTAINMENT][self.node_vertices[name]]

    def _parent_of(self, resources: NodeResources) -> int:
        zone = self._zones.get(resources.zone)
        if zone is None:
            number = len(self._zones)
            name = resources.zone or f"subnet{number}"
            zone = self._zones[resources.zone] = self._add_child(self.root, "subnet", "subnet", name, number)
        if not self._has_racks:
            return zone
        key = resources.zone, resources.rack
        rack = self._racks.get(key)
        if rack is None:
            number = len(self._racks)
            name = resources.rack or f"rack{number}"
            rack = self._racks[key] = self._add_child(zone, "rack", "rack", name, number)
        return rack

    def _add_child(
        self, parent: int, type: str, basename: str, name: str, number: int, *, rank: int = -1, size: int = 1
    ) -> int:
        path = f"{self.graph.paths[CONTAINMENT][parent]}/{name}"
        unit = "MB" if type == MEMORY_TYPE else ""
        vertex = Vertex(type, basename, name, number, {CONTAINMENT: path}, size=size, unit=unit, rank=rank)
        child = self.graph.add_vertex(vertex)
        self.graph.add_edge(parent, child)
        return child


def pods_jobspec(
    count: int, demand: Mapping[str, int], duration: int, *, nodes: NodeNameConstraint | None = None
) -> Jobspec:
    """Return the jobspec of `count` equal pods: one slot per pod, as fluence writes it."""
    inside = tuple(
        VertexRequest(type, _exactly(amount * (MEMORY_MB if type == MEMORY_TYPE else 1)))
        for type, amount in sorted(demand.items())
        if amount
    )
    slot = VertexRequest(SLOT, _exactly(count), inside, label="default")
    return Jobspec((slot,), duration=duration, constraint=nodes)


def nodes_jobspec(count: int, duration: int, *, nodes: NodeNameConstraint | None = None) -> Jobspec:
    """Return the jobspec of a job that takes whole nodes."""
    return Jobspec((VertexRequest(NODE_TYPE, _exactly(count), exclusive=True),), duration=duration, constraint=nodes)


def _exactly(count: int) -> CountRange:
    return CountRange(count, count)


@dataclasses.dataclass(frozen=True, slots=True)
class NodeNameConstraint:
    """Constraint that allows the nodes with these names."""

    names: frozenset[str]

    def allows(self, graph: ResourceGraph, vertex: int) -> bool:
        """Return whether a vertex is one of the nodes."""
        return graph.name[vertex] in self.names


class NodeCounter(MatchWriter):
    """Match writer that counts the exclusive vertices of a match by node and type."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}

    def add_vertex(self, matched: MatchedVertex) -> None:
        """Count an exclusive vertex for its node, which may be the vertex itself."""
        if not matched.is_exclusive:
            return
        graph, type = matched.graph, matched.graph.type[matched.vertex]
        node = _enclosing_node(graph, matched.vertex)
        if node is not None:
            counts = self._counts.setdefault(graph.name[node], {})
            counts[type] = counts.get(type, 0) + 1

    def pop_counts(self) -> dict[str, dict[str, int]]:
        """Return the counts by node and type since the last call, and reset them."""
        counts, self._counts = self._counts, {}
        return counts


def _enclosing_node(graph: ResourceGraph, vertex: int) -> int | None:
    while graph.type[vertex] != NODE_TYPE:
        edge = graph.parent_edge(vertex)
        if edge is None:
            return None
        vertex = graph.edge_source[edge]
    return vertex


def allocate_vertices(matcher: Matcher, vertices: Iterable[int], window: JobWindow) -> None:
    """Allocate free vertices to a job, bypassing the match policy. Their ancestors are shared."""
    graph = matcher.graph
    selection = VertexSelection(1, False)
    for vertex in vertices:
        edge = graph.parent_edge(vertex)
        units, is_exclusive = graph.size[vertex], True
        while edge is not None and edge not in selection.edges:
            selection.edges[edge] = (units, is_exclusive)
            parent = graph.edge_source[edge]
            edge, units, is_exclusive = graph.parent_edge(parent), graph.size[parent], False
    if selection.edges:
        Booking(matcher.view, matcher.ledger, selection, window, BookingKind.ALLOCATION, (), MatchWriter()).run()


def leaves_of_node(graph: ResourceGraph, node: int) -> Iterator[int]:
    """Yield the vertices below a node that have no children."""
    return (vertex for vertex in graph.subtree(node) if not graph.children(vertex))


def node_vertices(graph: ResourceGraph, names: list[str], source: Path) -> dict[str, int]:
    """Return the node vertices of a user's graph by node name: matched by name, or else by order.

    Raises InputError if the graph has neither nodes with these names nor the same number of nodes.
    """
    vertices = graph.by_type.get(NODE_TYPE, [])
    by_name = {graph.name[vertex]: vertex for vertex in vertices}
    if all(name in by_name for name in names):
        return {name: by_name[name] for name in names}
    if len(vertices) == len(names):
        return dict(zip(names, vertices, strict=True))
    raise InputError(
        source,
        problem=f"has {len(vertices)} nodes, the platform has {len(names)}, and their names differ",
        remedy="name the nodes like the platform's machines, or the same number of nodes",
    )
