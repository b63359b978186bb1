"""Changes of the graph while jobs run: parts are attached and removed.

Imitates `run_add_subgraph` (flux-sched resource/modules/resource_match.cpp) and `remove_subgraph`
(resource/traversers/dfu_impl_update.cpp).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from batkube.graph.accounting.ledger import Ledger
from batkube.graph.formats.jgf import extend_from_jgf
from batkube.graph.matching.cancellation import CancelError, ReleasedRanks, reduce_ancestors
from batkube.graph.matching.matcher import Matcher


def attach(matcher: Matcher, path: Path, content: bytes) -> None:
    """Add the vertices and edges of a JGF file that the graph does not have yet."""
    extend_from_jgf(matcher.graph, path, content)
    matcher.on_graph_changed()


def remove_path(matcher: Matcher, path: str) -> bool:
    """Remove the vertex with this path and its subtree; return False if there is none."""
    vertices = matcher.graph.at_path(path)
    if not vertices or vertices[-1] == matcher.view.root:
        return False
    _remove(matcher, set(matcher.graph.subtree(vertices[-1], matcher.view.subsystem)))
    return True


def remove_vertex(matcher: Matcher, vertex: int) -> None:
    """Remove a vertex that no job uses, and its subtree.

    The caller must call `Matcher.on_graph_changed` before the next match.
    """
    vertices = set(matcher.graph.subtree(vertex, matcher.view.subsystem))
    matcher.graph.remove_vertices(vertices)
    for removed in sorted(vertices):
        matcher.ledger.entries.pop(removed, None)


def remove_ranks(matcher: Matcher, ranks: Iterable[int]) -> None:
    """Remove all vertices of some ranks, and release them from their jobs.

    Raises CancelError for an unknown rank.
    """
    graph, ledger, released = matcher.graph, matcher.ledger, ReleasedRanks(matcher.view)
    jobs: dict[int, None] = {}
    vertices: set[int] = set()
    for rank in ranks:
        if not graph.by_rank.get(rank):
            raise CancelError(f"there is no rank {rank}")
        for vertex in graph.by_rank[rank]:
            vertices.add(vertex)
            released.add_vertex(vertex)
            released.add_units(vertex, _release_allocations(ledger, vertex, jobs))
    for job in jobs:
        reduce_ancestors(matcher.view, ledger, job, released)
    _remove(matcher, vertices)


def _release_allocations(ledger: Ledger, vertex: int, jobs: dict[int, None]) -> int:
    """Release a vertex from all its jobs, add these to `jobs`, and return the allocated units."""
    entry = ledger.entries.get(vertex)
    if entry is None:
        return 0
    units = sum(entry.units.spans[span].units for span in entry.allocations.values())
    jobs.update(dict.fromkeys(entry.tags))
    for job in list(entry.tags):
        ledger.release(vertex, job)
    return units


def _remove(matcher: Matcher, vertices: set[int]) -> None:
    """Remove vertices from the graph, the ledger and the lists of jobs' vertices."""
    matcher.graph.remove_vertices(vertices)
    for vertex in sorted(vertices):
        matcher.ledger.entries.pop(vertex, None)
    for job_vertices in matcher.ledger.vertices_of_job.values():
        job_vertices[:] = [vertex for vertex in job_vertices if vertex not in vertices]
    matcher.on_graph_changed()
