"""Cancellation: releases all or a part of a job's resources.

A part is named by ranks (R) or by vertices (JGF). Their units are released, and the filters of all
their ancestors are reduced by the same amounts. The job ends when nothing remains at the root.
Imitates `remove` in flux-sched resource/traversers/dfu_impl_update.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from batkube.graph.accounting.ledger import Ledger
from batkube.graph.traversal.subsystem_view import SubsystemView


class CancelError(Exception):
    """The resources to cancel do not belong to the job, or do not exist."""


class ReleasedRanks:
    """The units released on each rank, by type, and the topmost vertex of each rank."""

    def __init__(self, view: SubsystemView) -> None:
        self._graph = view.graph
        self._paths = view.graph.paths[view.subsystem]
        self.units: dict[int, dict[str, int]] = {}
        self.tops: dict[int, int] = {}

    def add_units(self, vertex: int, units: int) -> None:
        """Add units that were released of a vertex."""
        type = self._graph.type[vertex]
        by_type = self.units.setdefault(self._graph.rank[vertex], {})
        by_type[type] = by_type.get(type, 0) + units

    def add_vertex(self, vertex: int) -> None:
        """Add a vertex of a rank, which may be the topmost one."""
        rank = self._graph.rank[vertex]
        top = self.tops.get(rank)
        if top is None or len(self._paths[vertex]) < len(self._paths[top]):
            self.tops[rank] = vertex


class CancelVisits(NamedTuple):
    """The number of vertices that a search for a job's vertices visits, and the number of those that belong to the job.

    The search goes down from the root through vertices that the job uses (flux-sched: `mod_dfv` in
    resource/traversers/dfu_impl_update.cpp).
    """

    preorder: int
    postorder: int


def cancel(view: SubsystemView, ledger: Ledger, job: int) -> CancelVisits:
    """Release all resources of a job. Raises CancelError if the root is not tagged with it."""
    vertices = ledger.vertices_of_job.pop(job, [])
    root_entry = ledger.entries.get(view.root)
    if root_entry is None or job not in root_entry.tags:
        for vertex in list(ledger.entries):
            ledger.release_units(vertex, job)
        raise CancelError(f"the root is not tagged with job {job}")
    visited = {view.root}
    preorder = 1
    for vertex in reversed(vertices):
        # After a partial cancellation, vertices below an untagged one are unreachable.
        parents = {view.graph.edge_source[edge] for edge in view.graph.in_edges.get(vertex, ())}
        if (vertex == view.root or parents & visited) and job in ledger.entries[vertex].tags:
            visited.add(vertex)
            preorder += len(view.edges_down(vertex))
            ledger.release(vertex, job)
    return CancelVisits(preorder, len(visited))


def cancel_ranks(view: SubsystemView, ledger: Ledger, job: int, ranks: Iterable[int]) -> bool:
    """Release a job's resources on some ranks; return whether nothing remains. Raises CancelError."""
    graph, released = view.graph, ReleasedRanks(view)
    for rank in ranks:
        if rank not in graph.by_rank:
            raise CancelError(f"there is no rank {rank}")
        for vertex in graph.by_rank[rank]:
            entry = ledger.entries.get(vertex)
            if entry is not None and job in entry.tags:
                units = ledger.release(vertex, job)
                if units:
                    released.add_units(vertex, units)
            released.add_vertex(vertex)
    return reduce_ancestors(view, ledger, job, released)


def reduce_ancestors(view: SubsystemView, ledger: Ledger, job: int, released: ReleasedRanks) -> bool:
    """Reduce the filters of the ancestors of released vertices; return whether nothing of a job remains.

    Raises CancelError.
    """
    if not released.tops:
        raise CancelError("no rank is named")
    totals: dict[int, dict[str, int]] = {}
    for rank, top in released.tops.items():
        if rank not in released.units:
            raise CancelError(f"job {job} has nothing on rank {rank}")
        for vertex in view.graph.ancestors(top, view.subsystem):
            sums = totals.setdefault(vertex, {})
            for type, count in released.units[rank].items():
                sums[type] = sums.get(type, 0) + count
    root_entry = ledger.entries.get(view.root)
    if root_entry is None or job not in root_entry.tags:
        raise CancelError(f"the root is not tagged with job {job}")
    for vertex, sums in totals.items():
        _reduce_planned(ledger, job, vertex, sums)
    return job not in root_entry.tags


def _reduce_planned(ledger: Ledger, job: int, vertex: int, counts: Mapping[str, int]) -> None:
    """Release units of a job in the filter of a vertex."""
    entry = ledger.entries.get(vertex)
    planner = ledger.filters.planner(vertex)
    if entry is None or planner is None or job not in entry.filter_spans or job not in entry.tags:
        return
    try:
        is_released = planner.reduce(entry.filter_spans[job], counts)
    except ValueError as error:
        raise CancelError(str(error)) from None
    # As in Fluxion, the job is no longer counted at the vertex, even if it still uses a part of it.
    ledger.uncount(vertex, job)
    if is_released:
        del entry.filter_spans[job]
        ledger.untag(vertex, job)
