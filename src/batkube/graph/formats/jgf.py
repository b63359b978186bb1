"""JGF: a resource graph as JSON (JSON Graph Format with Fluxion's metadata), read and written.

    {"graph": {"nodes": [{"id": "0", "metadata": {"type": "cluster", "paths": {"containment": "/tiny0"}}}, …],
               "edges": [{"source": "0", "target": "1", "metadata": {"subsystem": "containment"}}, …]}}

Of the metadata only `type` and `paths` are required. `uniq_id` is the outer id unless given, `id` is `uniq_id` (for
nodes: the digits at the end of their name), `basename` the type, `name` both together, `size` 1, `rank` −1. An edge
without metadata is of the containment subsystem. Fluxion: resource/readers/resource_reader_jgf.cpp.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from batkube.graph.resources import CONTAINMENT, ResourceGraph, Vertex
from batkube.kernel.errors import InputError

_SIZE_MAX = 2**31 - 1


class JgfMetadata(msgspec.Struct, frozen=True):
    """What a node of the file says of a vertex."""

    type: str
    paths: dict[str, str]
    basename: str | None = None
    name: str | None = None
    id: int | None = None
    uniq_id: int | None = None
    rank: int = -1
    status: int = 0
    exclusive: bool = False
    unit: str = ""
    size: int = 1
    properties: dict[str, str] | None = None


class JgfNode(msgspec.Struct, frozen=True):
    """A node of the file."""

    id: str
    metadata: JgfMetadata


class JgfEdge(msgspec.Struct, frozen=True):
    """An edge of the file."""

    source: str
    target: str
    metadata: dict[str, Any] | None = None

    @property
    def subsystem(self) -> str:
        """Older files name it in a mapping from subsystems to relations."""
        metadata = self.metadata or {}
        names = metadata.get("name")
        return str(
            metadata.get("subsystem") or (next(iter(names)) if isinstance(names, dict) and names else CONTAINMENT)
        )

    @property
    def leads_up(self) -> bool:
        """Fluence's files have every edge in both directions; the ones up say `in`."""
        names = (self.metadata or {}).get("name")
        return isinstance(names, dict) and "in" in names.values()


class JgfBody(msgspec.Struct, frozen=True):
    """The `graph` of the file."""

    nodes: list[JgfNode]
    edges: list[JgfEdge] = []


class JgfFile(msgspec.Struct, frozen=True):
    """The whole file; `free_ranks` are those of which a part of an allocation was freed already."""

    graph: JgfBody
    free_ranks: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class JgfVertex:
    """A vertex of the file, defaults filled in."""

    key: str
    vertex: Vertex
    is_exclusive: bool


def parse_jgf(path: Path, content: bytes) -> JgfFile:
    """Return what a file says, its parts of the right types. Raises InputError with the place."""
    try:
        return msgspec.json.decode(content, type=JgfFile)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `")
        at = place.rstrip("`").removeprefix("$.") or None
        raise InputError(path, at=at, problem=problem, remedy="see the reference page of resource graphs") from None
    except msgspec.DecodeError as error:
        raise InputError(path, problem=f"is not JSON: {error}", remedy="for another format use -f") from None


def vertices_of(path: Path, file: JgfFile) -> Iterator[JgfVertex]:
    """Yield the vertices of a file, defaults filled in and checked."""
    for index, node in enumerate(file.graph.nodes):
        at = f"graph.nodes[{index}] (id {node.id})"
        if not 0 <= node.metadata.size <= _SIZE_MAX:
            problem = f"the size {node.metadata.size}"
            raise InputError(path, at=at, problem=problem, remedy="sizes are from 0 to 2147483647")
        if not node.metadata.paths:
            raise InputError(path, at=at, problem="no path", remedy='give "paths": {"containment": "/…"}')
        yield JgfVertex(node.id, _vertex(path, at, node), node.metadata.exclusive)


def _vertex(path: Path, at: str, node: JgfNode) -> Vertex:
    data = node.metadata
    uniq_id = data.uniq_id
    if uniq_id is None:
        if not node.id.lstrip("-").isdecimal():
            problem = f"uniq_id is missing, and {node.id!r} is no number to take its place"
            raise InputError(path, at=at, problem=problem, remedy="give uniq_id")
        uniq_id = int(node.id)
    basename = data.basename or data.type
    id = data.id if data.id is not None else _id(data, uniq_id)
    return Vertex(
        type=data.type,
        basename=basename,
        name=data.name if data.name is not None else f"{basename}{id}",
        id=id,
        paths=data.paths,
        size=data.size,
        unit=data.unit,
        rank=data.rank,
        is_up=data.status == 0,
        uniq_id=uniq_id,
        properties=data.properties or {},
    )


def _id(data: JgfMetadata, uniq_id: int) -> int:
    if data.type == "node" and data.name is not None:
        digits = data.name[len(data.name.rstrip("0123456789")) :]
        if digits:
            return int(digits)
    return uniq_id


def read_jgf(path: Path, content: bytes) -> ResourceGraph:
    """Return the graph in a file."""
    graph = ResourceGraph()
    graph.shows_units = False
    extend_from_jgf(graph, path, content)
    if CONTAINMENT not in graph.roots:
        problem = "no root: no vertex has a containment path of one name"
        raise InputError(
            path, at="graph.nodes", problem=problem, remedy='give the outermost one a path like "/cluster0"'
        )
    return graph


def extend_from_jgf(graph: ResourceGraph, path: Path, content: bytes) -> None:
    """Add to a graph what it does not have of the one in a file; vertices are the same by path and rank."""
    file = parse_jgf(path, content)
    numbers: dict[str, int] = {}
    added: set[int] = set()
    for entry in vertices_of(path, file):
        if entry.key in numbers:
            raise InputError(
                path, at=f"graph.nodes, id {entry.key}", problem="is there twice", remedy="keep one of them"
            )
        number = same_vertex(graph, entry.vertex)
        if number is None:
            _check_root(graph, path, entry)
            number = graph.add_vertex(entry.vertex)
            added.add(number)
        numbers[entry.key] = number
    _add_edges(graph, path, file, numbers, added)


def same_vertex(graph: ResourceGraph, vertex: Vertex) -> int | None:
    """Return the vertex of a graph with one of the same paths and the same rank."""
    for path in vertex.paths.values():
        for number in graph.at_path(path):
            if graph.rank[number] == vertex.rank:
                return number
    return None


def _check_root(graph: ResourceGraph, path: Path, entry: JgfVertex) -> None:
    for subsystem, place in entry.vertex.paths.items():
        if place.count("/") == 1 and subsystem in graph.roots:
            problem = f"{place} would be a second root of the {subsystem} subsystem"
            raise InputError(
                path, at=f"graph.nodes, id {entry.key}", problem=problem, remedy="give it a path below the root"
            )


def _add_edges(graph: ResourceGraph, path: Path, file: JgfFile, numbers: Mapping[str, int], added: set[int]) -> None:
    for index, edge in enumerate(file.graph.edges):
        ends = []
        for end in (edge.source, edge.target):
            if end not in numbers:
                problem = f"the vertex {end!r} is not among the nodes"
                raise InputError(path, at=f"graph.edges[{index}]", problem=problem, remedy="add the node")
            ends.append(numbers[end])
        if not edge.leads_up and not added.isdisjoint(ends):
            graph.add_edge(ends[0], ends[1], edge.subsystem)
    _check_cycles(graph, path, added)


def _check_cycles(graph: ResourceGraph, path: Path, added: set[int]) -> None:
    """Refuse a graph in which a walk would come back to where it was (Kahn: what never runs out of edges into it)."""
    for subsystem in graph.paths:
        waiting = {
            vertex: sum(graph.edge_subsystem[edge] == subsystem for edge in graph.in_edges.get(vertex, ()))
            for vertex in graph.paths[subsystem]
        }
        ready = [vertex for vertex, count in waiting.items() if not count]
        while ready:
            vertex = ready.pop()
            del waiting[vertex]
            for child in graph.children(vertex, subsystem):
                if child in waiting:
                    waiting[child] -= 1
                    if not waiting[child]:
                        ready.append(child)
        if waiting:
            names = ", ".join(graph.paths[subsystem][vertex] for vertex in list(waiting)[:3])
            problem = f"a cycle in the {subsystem} subsystem through {names}"
            raise InputError(
                path, at="graph.edges", problem=problem, remedy="edges lead from what contains to what is inside"
            )
