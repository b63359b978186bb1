"""Reading a resource graph from a file of any of the formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from batkube.graph.grug import read_grug
from batkube.graph.jgf import read_jgf
from batkube.graph.resources import ResourceGraph
from batkube.graph.rv1 import read_rv1
from batkube.kernel.errors import InputError

_READERS: dict[str, Callable[[Path, bytes], ResourceGraph]] = {
    "grug": read_grug,
    "jgf": read_jgf,
    "rv1exec": read_rv1,
}
GRAPH_FORMATS = tuple(_READERS)
#: Deeper than any machine; walks go down by recursion.
_DEPTH_MAX = 100


def read_graph(path: Path, format: str = "grug") -> ResourceGraph:
    """Return the graph in a file. Raises InputError with the place of what is wrong in it."""
    if format not in _READERS:
        problem = f"is {format!r}, which cannot be read"
        raise InputError("the graph's format", problem=problem, remedy=f"it is one of {', '.join(GRAPH_FORMATS)}")
    graph = _READERS[format](path, read_bytes(path))
    check_depth(graph, path)
    return graph


def read_bytes(path: Path) -> bytes:
    """Return a file's content. Raises InputError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, problem=f"cannot be read: {error.strerror}", remedy="check the path") from error


def check_depth(graph: ResourceGraph, path: Path) -> None:
    """Refuse a graph that is nested too deep to be walked."""
    for subsystem, root in graph.roots.items():
        level = [root]
        depth = 0
        while level:
            depth += 1
            if depth > _DEPTH_MAX:
                problem = f"nested more than {_DEPTH_MAX} levels deep in the {subsystem} subsystem"
                raise InputError(path, problem=problem, remedy="leave out levels")
            level = list(dict.fromkeys(child for vertex in level for child in graph.children(vertex, subsystem)))
