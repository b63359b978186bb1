"""Reads JGF: a resource graph as JSON Graph Format with Fluxion's metadata.

    {"graph": {"nodes": [{"id": "0", "metadata": {"type": "cluster", "paths": {"containment": "/tiny0"}}}, …],
               "edges": [{"source": "0", "target": "1", "metadata": {"subsystem": "containment"}}, …]}}

Of the metadata, only `type` and `paths` are required. The defaults are:

* `uniq_id`: the id of the JGF node
* `id`: `uniq_id`; for nodes, the digits at the end of the name
* `basename`: the type
* `name`: `basename` followed by `id`
* `size`: 1; `rank`: −1
* an edge's subsystem: `containment`

Imitates flux-sched resource/readers/resource_reader_jgf.cpp.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from batkube.graph.formats.json_files import decode_json
from batkube.graph.resources import CONTAINMENT, ResourceGraph, Vertex
from batkube.kernel.errors import InputError

_SIZE_MAX = 2**31 - 1


class JgfMetadata(msgspec.Struct, frozen=True):
    """The metadata of a node of the file."""

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
        """The subsystem of the edge. Older files name it as a key of the mapping `name`."""
        metadata = self.metadata or {}
        names = metadata.get("name")
        return str(
            metadata.get("subsystem") or (next(iter(names)) if isinstance(names, dict) and names else CONTAINMENT)
        )

    @property
    def leads_up(self) -> bool:
        """Whether the edge leads from child to parent. Fluence writes both directions, this one as `in`."""
        names = (self.metadata or {}).get("name")
        return isinstance(names, dict) and "in" in names.values()


class JgfBody(msgspec.Struct, frozen=True):
    """The value of `graph` in the file."""

    nodes: list[JgfNode]
    edges: list[JgfEdge] = []


class JgfFile(msgspec.Struct, frozen=True):
    """A file in the format JGF. `free_ranks` are ranks of an allocation that were released already."""

    graph: JgfBody
    free_ranks: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class JgfVertex:
    """A vertex of the file with defaults filled in."""

    key: str
    vertex: Vertex
    is_exclusive: bool


def parse_jgf(path: Path, content: bytes) -> JgfFile:
    """Parse a file and check its types. Raises InputError with the place."""
    remedy = "nodes need an id and the metadata type and paths; edges need a source and a target"
    return decode_json(path, content, JgfFile, remedy=remedy)


def vertices_of(path: Path, file: JgfFile) -> Iterator[JgfVertex]:
    """Yield the vertices of a file, checked, with defaults filled in."""
    for index, node in enumerate(file.graph.nodes):
        at = f"graph.nodes[{index}] (id {node.id})"
        if not 0 <= node.metadata.size <= _SIZE_MAX:
            problem = f"the size is {node.metadata.size}"
            raise InputError(path, at=at, problem=problem, remedy=f"use a size from 0 to {_SIZE_MAX}")
        if not node.metadata.paths:
            raise InputError(path, at=at, problem="has no path", remedy='add "paths": {"containment": "/…"}')
        yield JgfVertex(node.id, _vertex(path, at, node), node.metadata.exclusive)


def _vertex(path: Path, at: str, node: JgfNode) -> Vertex:
    data = node.metadata
    uniq_id = data.uniq_id
    if uniq_id is None:
        if not node.id.lstrip("-").isdecimal():
            problem = f"has no uniq_id, and the id {node.id!r} is not a number"
            raise InputError(path, at=at, problem=problem, remedy="add uniq_id")
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
        problem = "the containment subsystem has no root"
        raise InputError(
            path, at="graph.nodes", problem=problem, remedy='give the outermost vertex a path like "/cluster0"'
        )
    return graph


def extend_from_jgf(graph: ResourceGraph, path: Path, content: bytes) -> None:
    """Add the vertices and edges of a file that a graph does not have. Vertices are equal by path and rank."""
    file = parse_jgf(path, content)
    numbers: dict[str, int] = {}
    added: set[int] = set()
    for entry in vertices_of(path, file):
        if entry.key in numbers:
            raise InputError(
                path, at=f"graph.nodes, id {entry.key}", problem="appears twice", remedy="remove one of them"
            )
        number = same_vertex(graph, entry.vertex)
        if number is None:
            _check_root(graph, path, entry)
            number = graph.add_vertex(entry.vertex)
            added.add(number)
        numbers[entry.key] = number
    _add_edges(graph, path, file, numbers, added)


def same_vertex(graph: ResourceGraph, vertex: Vertex) -> int | None:
    """Return the vertex of a graph that has a path of the given vertex and its rank, or None."""
    for path in vertex.paths.values():
        for number in graph.at_path(path):
            if graph.rank[number] == vertex.rank:
                return number
    return None


def _check_root(graph: ResourceGraph, path: Path, entry: JgfVertex) -> None:
    for subsystem, vertex_path in entry.vertex.paths.items():
        if vertex_path.count("/") == 1 and subsystem in graph.roots:
            problem = f"{vertex_path} is a second root of the {subsystem} subsystem"
            raise InputError(
                path, at=f"graph.nodes, id {entry.key}", problem=problem, remedy="give it a path below the root"
            )


def _add_edges(graph: ResourceGraph, path: Path, file: JgfFile, numbers: Mapping[str, int], added: set[int]) -> None:
    for index, edge in enumerate(file.graph.edges):
        ends = []
        for end in (edge.source, edge.target):
            if end not in numbers:
                problem = f"the vertex {end!r} does not exist"
                raise InputError(path, at=f"graph.edges[{index}]", problem=problem, remedy="add it to graph.nodes")
            ends.append(numbers[end])
        if not edge.leads_up and not added.isdisjoint(ends):
            graph.add_edge(ends[0], ends[1], edge.subsystem)
    _check_cycles(graph, path, added)


def _check_cycles(graph: ResourceGraph, path: Path, added: set[int]) -> None:
    """Reject a graph with a cycle (Kahn's algorithm)."""
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
            problem = f"the {subsystem} subsystem has a cycle through {names}"
            raise InputError(path, at="graph.edges", problem=problem, remedy="direct edges from parent to child")
