"""Graphs that change: parts are attached and removed while jobs run. Fluxion: add_subgraph, remove_subgraph."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from batkube.graph.formats.jgf import extend_from_jgf
from batkube.graph.matching.cancellation import CancelError, FreedRanks, reduce_ancestors
from batkube.graph.matching.matcher import Matcher


def attach(matcher: Matcher, path: Path, content: bytes) -> None:
    """Add what a JGF file has and the graph has not."""
    extend_from_jgf(matcher.graph, path, content)
    matcher.on_graph_changed()


def remove_path(matcher: Matcher, path: str) -> bool:
    """Remove the vertex with a path and all below it; False if there is none."""
    vertices = matcher.graph.at_path(path)
    if not vertices or vertices[-1] == matcher.view.root:
        return False
    _detach(matcher, [vertices[-1]])
    return True


def remove_vertex(matcher: Matcher, vertex: int) -> None:
    """Take a vertex and all below it out of the graph; the caller says when the graph is to be looked at anew."""
    vertices = set(matcher.graph.subtree(vertex, matcher.view.subsystem))
    matcher.ledger.mark_changed(vertex)
    matcher.graph.remove_vertices(vertices)
    for each in vertices:
        matcher.ledger.entries.pop(each, None)


def remove_ranks(matcher: Matcher, ranks: Iterable[int]) -> None:
    """Remove all vertices of some ranks, and what jobs had of them. Raises CancelError for a rank there is not."""
    graph, ledger, subsystem = matcher.graph, matcher.ledger, matcher.view.subsystem
    ranks = list(ranks)
    jobs: dict[int, None] = {}
    counts: dict[int, dict[str, int]] = {}
    tops: dict[int, int] = {}
    for rank in ranks:
        if not graph.by_rank.get(rank):
            raise CancelError(f"there is no rank {rank}")
        tops[rank] = min(graph.by_rank[rank], key=lambda vertex: len(graph.paths[subsystem][vertex]))
        counts[rank] = {}
        for vertex in graph.by_rank[rank]:
            page = ledger.entries.get(vertex)
            if page is None:
                counts[rank].setdefault(graph.type[vertex], 0)
                continue
            jobs.update(dict.fromkeys(page.tags))
            units = sum(page.plan.spans[span].units for span in page.allocations.values())
            counts[rank][graph.type[vertex]] = counts[rank].get(graph.type[vertex], 0) + units
            for job in list(page.tags):
                ledger.release(vertex, job)
    for job in jobs:
        reduce_ancestors(matcher.view, ledger, job, FreedRanks(counts, tops))
    vertices = {vertex for rank in ranks for vertex in graph.by_rank[rank]}
    graph.remove_vertices(vertices)
    _drop_entries(matcher, vertices)


def _detach(matcher: Matcher, tops: Iterable[int]) -> None:
    graph = matcher.graph
    vertices = {vertex for top in tops for vertex in graph.subtree(top, matcher.view.subsystem)}
    for top in tops:
        matcher.ledger.mark_changed(top)
    graph.remove_vertices(vertices)
    _drop_entries(matcher, vertices)


def _drop_entries(matcher: Matcher, vertices: set[int]) -> None:
    for vertex in sorted(vertices):
        matcher.ledger.entries.pop(vertex, None)
    for touched in matcher.ledger.vertices_of_job.values():
        touched[:] = [vertex for vertex in touched if vertex not in vertices]
    matcher.on_graph_changed()
