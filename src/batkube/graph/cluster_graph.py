"""A graph of a cluster's nodes, and jobspecs for pods: how fluence sees a cluster (flux-k8s).

    k8scluster0 → subnet (a zone) → [rack] → node → [socket] → core, memory (1024 MB each), gpu, …

Only what is whole counts: a node has as many core vertices as it has whole cores, and a pod that asks for a part of one
takes a whole one. Levels that no node tells anything of are left out, but for the subnet, which fluence always has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from batkube.graph.formats.match_writers import SimpleWriter
from batkube.graph.matching.booking import Booking, BookingKind, JobWindow
from batkube.graph.matching.matcher import Matcher
from batkube.graph.requests.jobspec import SLOT, CountRange, Jobspec, VertexRequest
from batkube.graph.resources import CONTAINMENT, ResourceGraph, Vertex
from batkube.graph.traversal.selection import VertexSelection
from batkube.kernel.errors import InputError
from batkube.kernel.quantities import CPU, MEMORY

CORE, MEMORY_TYPE, NODE_TYPE, GPU_TYPE = "core", "memory", "node", "gpu"
#: A vertex of memory is so many MB, as in fluence.
MEMORY_MB = 1024
_MIB = 1 << 20
_BASENAMES = {GPU_TYPE: "nvidiagpu"}
#: More vertices of a type than any node has things to count; what has more is measured, not counted.
_COUNT_MAX = 65_536
#: Cores and nodes are counted at every vertex with something below.
FILTERS = "ALL:core,ALL:node"


@dataclasses.dataclass(frozen=True, slots=True)
class NodeResources:
    """What a node has for pods, in vertices by type, and where it stands."""

    name: str
    #: Its number, by which match policies know low nodes from high ones.
    number: int
    counts: Mapping[str, int]
    zone: str = ""
    rack: str = ""
    sockets: int = 0


def vertex_counts(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return how many whole vertices of each type there are in amounts of resources (cpu in millicores)."""
    counts = {}
    for resource, amount in amounts.items():
        type, unit = _vertex_type(resource)
        if type:
            counts[type] = min(max(amount, 0) // unit, _COUNT_MAX)
    return counts


def vertex_demand(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return how many vertices of each type a pod takes that asks for amounts of resources; a core at the least."""
    counts = {CORE: 1}
    for resource, amount in amounts.items():
        type, unit = _vertex_type(resource)
        if type and amount > 0:
            counts[type] = max(-(-amount // unit), 1)
    return counts


def _vertex_type(resource: str) -> tuple[str, int]:
    """Return the type of vertices that stand for a resource, and how much one stands for; no type if none does."""
    if resource == CPU:
        return CORE, 1000
    if resource == MEMORY:
        return MEMORY_TYPE, MEMORY_MB * _MIB
    if resource.endswith("/gpu"):
        return GPU_TYPE, 1
    return (resource, 1) if "/" in resource else ("", 1)


class ClusterGraph:
    """A graph of nodes that may come and go, and its vertices by the nodes' names."""

    def __init__(self, supplies: Iterable[NodeResources] = (), *, has_racks: bool = False) -> None:
        self.graph = ResourceGraph()
        self._has_racks = has_racks
        self.root = self.graph.add_vertex(
            Vertex("cluster", "k8scluster", "k8scluster0", 0, {CONTAINMENT: "/k8scluster0"})
        )
        self._zones: dict[str, int] = {}
        self._racks: dict[tuple[str, str], int] = {}
        self.node_vertices: dict[str, int] = {}
        self._leaves: dict[int, dict[str, list[int]]] = {}
        for supply in supplies:
            self.add_node(supply)

    def add_node(self, supply: NodeResources) -> int:
        """Add a node and return its vertex."""
        node = self._add_child(self._parent_of(supply), NODE_TYPE, "node", supply.name, supply.number, supply.number)
        self.node_vertices[supply.name] = node
        parents = [
            self._add_child(node, "socket", "socket", f"socket{number}", number, supply.number)
            for number in range(supply.sockets)
        ] or [node]
        leaves = self._leaves[node] = {}
        for type, count in supply.counts.items():
            basename, size = _BASENAMES.get(type, type.rpartition("/")[2]), MEMORY_MB if type == MEMORY_TYPE else 1
            for number in range(count):
                parent = parents[number * len(parents) // count]
                leaf = self._add_child(parent, type, basename, f"{basename}{number}", number, supply.number, size)
                leaves.setdefault(type, []).append(leaf)
        return node

    def pop_node(self, name: str) -> int:
        """Let go of a node's name and return its vertex, which is to be taken out of the graph."""
        vertex = self.node_vertices.pop(name)
        self._leaves.pop(vertex, None)
        return vertex

    def leaves(self, name: str, type: str) -> list[int]:
        """Return the vertices of a type that a node has."""
        return self._leaves[self.node_vertices[name]].get(type, [])

    def path(self, name: str) -> str:
        """Return the path of a node."""
        return self.graph.paths[CONTAINMENT][self.node_vertices[name]]

    def _parent_of(self, supply: NodeResources) -> int:
        zone = self._zones.get(supply.zone)
        if zone is None:
            number = len(self._zones)
            name = supply.zone or f"subnet{number}"
            zone = self._zones[supply.zone] = self._add_child(self.root, "subnet", "subnet", name, number, -1)
        if not self._has_racks:
            return zone
        key = supply.zone, supply.rack
        rack = self._racks.get(key)
        if rack is None:
            number = len(self._racks)
            rack = self._racks[key] = self._add_child(zone, "rack", "rack", supply.rack or f"rack{number}", number, -1)
        return rack

    def _add_child(
        self, parent: int, type: str, basename: str, name: str, number: int, rank: int, size: int = 1
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
    """Return the request of a group of equal pods: a slot for each, as fluence asks."""
    inside = tuple(
        VertexRequest(type, _exactly(amount * (MEMORY_MB if type == MEMORY_TYPE else 1)))
        for type, amount in sorted(demand.items())
        if amount
    )
    slot = VertexRequest(SLOT, _exactly(count), inside, label="default")
    return Jobspec((slot,), duration=duration, constraint=nodes)


def nodes_jobspec(count: int, duration: int, *, nodes: NodeNameConstraint | None = None) -> Jobspec:
    """Return the request of a job for whole nodes."""
    return Jobspec((VertexRequest(NODE_TYPE, _exactly(count), exclusive=True),), duration=duration, constraint=nodes)


def _exactly(count: int) -> CountRange:
    return CountRange(count, count)


@dataclasses.dataclass(frozen=True, slots=True)
class NodeNameConstraint:
    """A constraint: one of these nodes."""

    names: frozenset[str]

    def allows(self, graph: ResourceGraph, vertex: int) -> bool:
        """Tell whether a vertex is one of the nodes."""
        return graph.name[vertex] in self.names


class NodeCounter(SimpleWriter):
    """A writer that counts, by node, what a match has there for itself."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, dict[str, int]] = {}

    def vertex(
        self,
        graph: ResourceGraph,
        vertex: int,
        level: int,
        units: int,
        exclusive: bool,
        parent_exclusive: bool,
        extras: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Count a vertex for the node that it is in, or is."""
        if not exclusive:
            return
        node = _enclosing_node(graph, vertex)
        if node is not None:
            counts = self._counts.setdefault(graph.name[node], {})
            counts[graph.type[vertex]] = counts.get(graph.type[vertex], 0) + 1

    def pop_counts(self) -> dict[str, dict[str, int]]:
        """Return the counts of the last match by node and type, and forget them."""
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
    """Give a job vertices that are known to be free, whatever a policy would choose; what is around them is shared."""
    graph = matcher.graph
    selection = VertexSelection(1, False)
    for vertex in vertices:
        edge = graph.parent_edge(vertex)
        units, is_own = graph.size[vertex], True
        while edge is not None and edge not in selection.edges:
            selection.edges[edge] = (units, is_own)
            above = graph.edge_source[edge]
            edge, units, is_own = graph.parent_edge(above), graph.size[above], False
    booking = Booking(
        matcher.view, matcher.ledger, selection, window, BookingKind.ALLOCATION, (), SimpleWriter(), weighs=False
    )
    if selection.edges:
        booking.run()


def leaves_of_node(graph: ResourceGraph, node: int) -> Iterator[int]:
    """Yield the vertices in a node that have nothing below them."""
    return (vertex for vertex in graph.subtree(node) if not graph.children(vertex))


def node_vertices(graph: ResourceGraph, names: list[str], source: Path) -> dict[str, int]:
    """Return the vertices of nodes by name in a graph that somebody wrote: by their names, or else by their order.

    Raises InputError if the graph has neither these nodes nor as many.
    """
    vertices = graph.by_type.get(NODE_TYPE, [])
    by_name = {graph.name[vertex]: vertex for vertex in vertices}
    if all(name in by_name for name in names):
        return {name: by_name[name] for name in names}
    if len(vertices) == len(names):
        return dict(zip(names, vertices, strict=True))
    raise InputError(
        source,
        problem=f"has {len(vertices)} nodes, but not those of the platform, which has {len(names)}",
        remedy="name them as the platform does, or give as many",
    )
