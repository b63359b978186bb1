"""Match writers: a match as an indented list or as a graph in JGF. R is in `r_writers.py`.

A writer receives the vertices and edges of a match while it is booked, children before parents, and
returns them as text at the end. Imitates flux-sched resource/writers/match_writers.cpp.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from batkube.graph.resources import CONTAINMENT, ResourceGraph

_SHORTHAND_WRITER = "fluxion:jgf_shorthand"


class MatchWriteError(Exception):
    """The match cannot be written. Like Fluxion's, a JGF writer keeps it and fails from then on."""

    def __init__(self, reason: str, *, is_satisfiable: bool) -> None:
        """`is_satisfiable` is false if resource-query reports an unsatisfiable request in this case."""
        super().__init__(reason)
        self.is_satisfiable = is_satisfiable


class MatchedVertex(NamedTuple):
    """A vertex of a match."""

    graph: ResourceGraph
    vertex: int
    #: The depth in the graph; the root is at level 1.
    level: int
    units: int
    is_exclusive: bool
    is_parent_exclusive: bool
    #: More JGF metadata, by key.
    extras: Mapping[str, Mapping[str, str]]


class MatchWriter:
    """Collects matches and returns them as text. The base class ignores everything."""

    def add_vertex(self, matched: MatchedVertex) -> None:
        """Add a vertex."""

    def add_edge(self, graph: ResourceGraph, edge: int, parent_exclusive: bool) -> None:
        """Add an edge; the vertex below it was added before."""

    def set_times(self, start: int, end: int) -> None:
        """Set the window of the match."""

    def set_queue(self, name: str) -> None:
        """Set the job's queue."""

    def text(self) -> str:
        """Return the text of what was added since the last call. Raises MatchWriteError."""
        return ""


class SimpleWriter(MatchWriter):
    """One line per vertex, indented by its level."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add_vertex(self, matched: MatchedVertex) -> None:
        """Add a line for a vertex."""
        name, mode = matched.graph.name[matched.vertex], self._mode(matched.is_exclusive)
        self._lines.append(f"      {'---' * matched.level}{name}[{matched.units}:{mode}]\n")

    def _mode(self, exclusive: bool) -> str:
        return "x" if exclusive else "s"

    def text(self) -> str:
        """Return the lines added since the last call."""
        lines, self._lines = self._lines, []
        return "".join(lines)


class PrettySimpleWriter(SimpleWriter):
    """Like SimpleWriter, with whole words and parents before their children."""

    def _mode(self, exclusive: bool) -> str:
        return "exclusive" if exclusive else "shared"

    def text(self) -> str:
        """Return the lines added since the last call, in reverse order."""
        self._lines.reverse()
        return super().text()


class JgfWriter(MatchWriter):
    """The matched part of the graph as JGF."""

    def __init__(self) -> None:
        self._nodes: list[dict[str, Any]] = []
        self._edges: list[dict[str, Any]] = []

    def add_vertex(self, matched: MatchedVertex) -> None:
        """Add a vertex with its metadata."""
        graph, vertex = matched.graph, matched.vertex
        metadata = vertex_metadata(graph, vertex, matched.units, matched.is_exclusive)
        metadata["paths"] = graph.paths_of(vertex)
        metadata.update((key, dict(value)) for key, value in matched.extras.items() if value)
        self._nodes.append({"id": str(graph.uniq_id[vertex]), "metadata": metadata})

    def add_edge(self, graph: ResourceGraph, edge: int, parent_exclusive: bool) -> None:
        """Add an edge."""
        source, target = graph.uniq_id[graph.edge_source[edge]], graph.uniq_id[graph.edge_target[edge]]
        entry: dict[str, Any] = {"source": str(source), "target": str(target)}
        if graph.edge_subsystem[edge] != CONTAINMENT:
            entry["metadata"] = {"subsystem": graph.edge_subsystem[edge]}
        self._edges.append(entry)

    def document(self) -> dict[str, Any]:
        """Return the graph as a document, empty without vertices.

        Raises MatchWriteError for vertices without edges.
        """
        if not self._nodes and not self._edges:
            return {}
        if not self._nodes or not self._edges:
            raise MatchWriteError("No such file or directory", is_satisfiable=False)
        body = {"nodes": self._nodes, "edges": self._edges}
        self._nodes, self._edges = [], []
        return {"graph": body}

    def text(self) -> str:
        """Return the graph added since the last call, in one line."""
        document = self.document()
        return json.dumps(document, ensure_ascii=False) + "\n" if document else ""


class JgfShorthandWriter(JgfWriter):
    """Like JgfWriter, without the descendants of exclusive vertices: the job has all of them."""

    def __init__(self) -> None:
        super().__init__()
        self._is_complete = True

    def add_vertex(self, matched: MatchedVertex) -> None:
        """Add a vertex unless its parent is exclusive."""
        if matched.is_parent_exclusive:
            self._is_complete = False
        else:
            super().add_vertex(matched)

    def add_edge(self, graph: ResourceGraph, edge: int, parent_exclusive: bool) -> None:
        """Add an edge unless its source is exclusive."""
        if parent_exclusive:
            self._is_complete = False
        else:
            super().add_edge(graph, edge, parent_exclusive)

    def document(self) -> dict[str, Any]:
        """Return the graph as a document, which names the writer if vertices were left out."""
        document = super().document()
        if document and not self._is_complete:
            document["writer"] = _SHORTHAND_WRITER
        return document


def vertex_metadata(graph: ResourceGraph, vertex: int, units: int, exclusive: bool) -> dict[str, Any]:
    """Return a vertex's JGF metadata without its paths. Values equal to a reader's default are left out."""
    metadata: dict[str, Any] = {"type": graph.type[vertex]}
    if graph.basename[vertex] != graph.type[vertex]:
        metadata["basename"] = graph.basename[vertex]
    if graph.name[vertex] != f"{graph.basename[vertex]}{graph.id[vertex]}":
        metadata["name"] = graph.name[vertex]
    metadata["id"] = graph.id[vertex]
    metadata["rank"] = graph.rank[vertex]
    if graph.properties.get(vertex):
        metadata["properties"] = dict(sorted(graph.properties[vertex].items()))
    if graph.unit[vertex] and graph.shows_units:
        metadata["unit"] = graph.unit[vertex]
    if exclusive:
        metadata["exclusive"] = True
    if units != 1:
        metadata["size"] = units
    return metadata
