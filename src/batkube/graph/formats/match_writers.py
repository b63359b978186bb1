"""How a match is written: as an indented list, or as a graph of its own (JGF). R is in `r_writers.py`.

A writer is handed vertices and edges as they are booked, children before their parents, and keeps them until asked.
Fluxion: resource/writers/match_writers.cpp.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from batkube.graph.resources import CONTAINMENT, ResourceGraph

_SHORTHAND_WRITER = "fluxion:jgf_shorthand"


class MatchWriteError(Exception):
    """What was taken cannot be written. A writer of graphs keeps it, as Fluxion's does, and fails from then on."""

    def __init__(self, reason: str, *, is_satisfiable: bool) -> None:
        """`is_satisfiable` is false where resource-query takes it for a request that could never be met."""
        super().__init__(reason)
        self.is_satisfiable = is_satisfiable


class MatchWriter(Protocol):
    """Takes what is matched, and gives it back as text."""

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
        """Take a vertex with how many of its units are meant; `extras` are further mappings for its metadata."""
        ...

    def edge(self, graph: ResourceGraph, edge: int, parent_exclusive: bool) -> None:
        """Take an edge between two vertices; the lower one was handed over before."""
        ...

    def times(self, start: int, end: int) -> None:
        """Take from when to when the match is."""
        ...

    def queue(self, name: str) -> None:
        """Take the queue of the job."""
        ...

    def text(self) -> str:
        """Return all that was taken, and forget it. Raises MatchWriteError."""
        ...


class SimpleWriter:
    """A line for each vertex, indented by its level."""

    def __init__(self) -> None:
        self._lines: list[str] = []

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
        """Take a vertex."""
        self._lines.append(f"      {'---' * level}{graph.name[vertex]}[{units}:{self._mode(exclusive)}]\n")

    def _mode(self, exclusive: bool) -> str:
        return "x" if exclusive else "s"

    def edge(self, graph: ResourceGraph, edge: int, parent_exclusive: bool) -> None:
        """Edges are not shown."""

    def times(self, start: int, end: int) -> None:
        """Times are not shown."""

    def queue(self, name: str) -> None:
        """Queues are not shown."""

    def text(self) -> str:
        """Return the lines."""
        lines, self._lines = self._lines, []
        return "".join(lines)


class PrettySimpleWriter(SimpleWriter):
    """The same in whole words and with parents before their children."""

    def _mode(self, exclusive: bool) -> str:
        return "exclusive" if exclusive else "shared"

    def text(self) -> str:
        """Return the lines, the last one first."""
        self._lines.reverse()
        return super().text()


class JgfWriter:
    """The matched part of the graph as JSON."""

    def __init__(self) -> None:
        self._nodes: list[dict[str, Any]] = []
        self._edges: list[dict[str, Any]] = []

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
        """Take a vertex."""
        metadata = vertex_metadata(graph, vertex, units, exclusive)
        metadata["paths"] = graph.paths_of(vertex)
        metadata.update((key, dict(value)) for key, value in (extras or {}).items() if value)
        self._nodes.append({"id": str(graph.uniq_id[vertex]), "metadata": metadata})

    def edge(self, graph: ResourceGraph, edge: int, parent_exclusive: bool) -> None:
        """Take an edge."""
        ends = (graph.edge_source[edge], graph.edge_target[edge])
        entry: dict[str, Any] = {"source": str(graph.uniq_id[ends[0]]), "target": str(graph.uniq_id[ends[1]])}
        if graph.edge_subsystem[edge] != CONTAINMENT:
            entry["metadata"] = {"subsystem": graph.edge_subsystem[edge]}
        self._edges.append(entry)

    def times(self, start: int, end: int) -> None:
        """Times are not in a graph."""

    def queue(self, name: str) -> None:
        """Queues are not in a graph."""

    def document(self) -> dict[str, Any]:
        """Return the graph, empty if nothing was taken. Raises MatchWriteError for vertices without edges."""
        if not self._nodes and not self._edges:
            return {}
        if not self._nodes or not self._edges:
            raise MatchWriteError("No such file or directory", is_satisfiable=False)
        body = {"nodes": self._nodes, "edges": self._edges}
        self._nodes, self._edges = [], []
        return {"graph": body}

    def text(self) -> str:
        """Return the graph in one line."""
        document = self.document()
        return json.dumps(document, ensure_ascii=False) + "\n" if document else ""


class JgfShorthandWriter(JgfWriter):
    """The same without what is below vertices that a job has for itself: all of it belongs to the job anyway."""

    def __init__(self) -> None:
        super().__init__()
        self._is_complete = True

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
        """Take a vertex, unless what is around it is exclusive."""
        if parent_exclusive:
            self._is_complete = False
        else:
            super().vertex(graph, vertex, level, units, exclusive, parent_exclusive, extras)

    def edge(self, graph: ResourceGraph, edge: int, parent_exclusive: bool) -> None:
        """Take an edge, unless it is inside of something exclusive."""
        if parent_exclusive:
            self._is_complete = False
        else:
            super().edge(graph, edge, parent_exclusive)

    def document(self) -> dict[str, Any]:
        """Return the graph, and who wrote it if something was left out."""
        document = super().document()
        if document and not self._is_complete:
            document["writer"] = _SHORTHAND_WRITER
        return document


def vertex_metadata(graph: ResourceGraph, vertex: int, units: int, exclusive: bool) -> dict[str, Any]:
    """Return what JGF says of a vertex, but for its paths; what a reader would fill in itself is left out."""
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
