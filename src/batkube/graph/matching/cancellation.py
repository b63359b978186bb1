"""Cancelling: taking back all or a part of what a job has. Fluxion: dfu_impl_update.cpp, "remove".

A part of an allocation is named by ranks (R) or by vertices (JGF). Their subtrees are freed, and what all vertices
around them have planned for the job is reduced by what was freed; when nothing remains at the root, the job is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from batkube.graph.accounting.ledger import Ledger
from batkube.graph.traversal.subsystem_view import SubsystemView


class CancelError(Exception):
    """What was to be cancelled is not as it was said to be."""


class FreedRanks(NamedTuple):
    """What was freed of each rank, by type, and the outermost vertex of each."""

    counts: dict[int, dict[str, int]]
    tops: dict[int, int]


class CancelVisits(NamedTuple):
    """How many vertices a walk for a job's vertices looks at, and how many of them are the job's.

    The walk goes down from the root as long as it is in vertices that the job touches (Fluxion: mod_dfv).
    """

    preorder: int
    postorder: int


def cancel(outline: SubsystemView, ledger: Ledger, job: int) -> CancelVisits:
    """Take everything from a job. Raises CancelError if the root knows nothing of it."""
    vertices = ledger.vertices_of_job.pop(job, [])
    root_page = ledger.entries.get(outline.root)
    if root_page is None or job not in root_page.tags:
        for vertex in list(ledger.entries):
            ledger.release_units(vertex, job)
        raise CancelError(f"the root is not tagged with job {job}")
    reached = {outline.root}
    looked_at = 1
    for vertex in reversed(vertices):
        # Where a part was cancelled before, what is below a vertex without a tag is out of reach.
        parents = {outline.graph.edge_source[edge] for edge in outline.graph.in_edges.get(vertex, ())}
        if (vertex == outline.root or parents & reached) and job in ledger.entries[vertex].tags:
            reached.add(vertex)
            looked_at += len(outline.edges_down(vertex))
            ledger.release(vertex, job)
    return CancelVisits(looked_at, len(reached))


def cancel_ranks(outline: SubsystemView, ledger: Ledger, job: int, ranks: Iterable[int]) -> bool:
    """Take some ranks from a job; tell whether nothing remains. Raises CancelError."""
    graph = outline.graph
    counts: dict[int, dict[str, int]] = {}
    tops: dict[int, int] = {}
    places = graph.paths[outline.subsystem]
    for rank in ranks:
        if rank not in graph.by_rank:
            raise CancelError(f"there is no rank {rank}")
        for vertex in graph.by_rank[rank]:
            page = ledger.entries.get(vertex)
            if page is not None and job in page.tags:
                units = ledger.release(vertex, job)
                if units:
                    freed = counts.setdefault(rank, {})
                    freed[graph.type[vertex]] = freed.get(graph.type[vertex], 0) + units
            if rank not in tops or len(places[vertex]) < len(places[tops[rank]]):
                tops[rank] = vertex
    return reduce_ancestors(outline, ledger, job, FreedRanks(counts, tops))


def reduce_ancestors(outline: SubsystemView, ledger: Ledger, job: int, ranks: FreedRanks) -> bool:
    """Let the vertices around freed ones know; tell whether nothing remains of a job. Raises CancelError."""
    if not ranks.tops:
        raise CancelError("no rank was named")
    above: dict[int, dict[str, int]] = {}
    for rank, top in ranks.tops.items():
        if rank not in ranks.counts:
            raise CancelError(f"job {job} has nothing on rank {rank}")
        for vertex in outline.graph.ancestors(top, outline.subsystem):
            sums = above.setdefault(vertex, {})
            for type, count in ranks.counts[rank].items():
                sums[type] = sums.get(type, 0) + count
    root_page = ledger.entries.get(outline.root)
    if root_page is None or job not in root_page.tags:
        raise CancelError(f"the root is not tagged with job {job}")
    for vertex, sums in above.items():
        _reduce_planned(ledger, job, vertex, sums)
    return job not in root_page.tags


def _reduce_planned(ledger: Ledger, job: int, vertex: int, counts: Mapping[str, int]) -> None:
    """Reduce what a vertex around freed ones has planned for a job below it."""
    page = ledger.entries.get(vertex)
    planner = ledger.filters.planner(vertex)
    if page is None or planner is None or job not in page.filter_spans or job not in page.tags:
        return
    try:
        is_over = planner.reduce(page.filter_spans[job], counts)
    except ValueError as error:
        raise CancelError(str(error)) from None
    # From now on the vertex is not counted as touched by the job, whatever remains of it: so does Fluxion.
    ledger.uncount(vertex, job)
    if is_over:
        del page.filter_spans[job]
        ledger.untag(vertex, job)
