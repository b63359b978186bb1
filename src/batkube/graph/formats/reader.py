"""Reads a resource graph from a file in any of the formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from batkube.graph.formats.grug import read_grug
from batkube.graph.formats.hwloc import read_hwloc
from batkube.graph.formats.jgf import read_jgf
from batkube.graph.formats.rv1 import read_rv1
from batkube.graph.resources import ResourceGraph
from batkube.kernel.errors import InputError

_READERS: dict[str, Callable[[Path, bytes], ResourceGraph]] = {
    "grug": read_grug,
    "jgf": read_jgf,
    "jgf_shorthand": read_jgf,
    "rv1exec": read_rv1,
    # The graph in the part `scheduling` of R is ignored in both cases.
    "rv1exec_force": read_rv1,
}
_HWLOC = "hwloc"
GRAPH_FORMATS = (*_READERS, _HWLOC)
#: Deeper than any machine. Walks are recursive.
_DEPTH_MAX = 100


def read_graph(path: Path, format: str = "grug", allowed: tuple[str, ...] = ()) -> ResourceGraph:
    """Return the graph in a file. Raises InputError with the place.

    `allowed` are the types of vertices to read from an hwloc file; empty for all.
    """
    if format not in GRAPH_FORMATS:
        problem = f"{format!r} is unknown"
        raise InputError("the graph's format", problem=problem, remedy=f"use one of {', '.join(GRAPH_FORMATS)}")
    content = read_bytes(path)
    graph = read_hwloc(path, content, allowed) if format == _HWLOC else _READERS[format](path, content)
    check_depth(graph, path)
    return graph


def read_bytes(path: Path) -> bytes:
    """Return the content of a file. Raises InputError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, problem=f"cannot be read: {error.strerror}", remedy="check the path") from error


def check_depth(graph: ResourceGraph, path: Path) -> None:
    """Reject a graph that is nested too deeply to be walked."""
    for subsystem, root in graph.roots.items():
        level = [root]
        depth = 0
        while level:
            depth += 1
            if depth > _DEPTH_MAX:
                problem = f"the {subsystem} subsystem is nested more than {_DEPTH_MAX} levels deep"
                raise InputError(path, problem=problem, remedy="leave out levels")
            level = list(dict.fromkeys(child for vertex in level for child in graph.children(vertex, subsystem)))
