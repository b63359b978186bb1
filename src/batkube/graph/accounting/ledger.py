"""The ledger: which job uses which vertex, and when. It has an entry for every vertex ever used.

A job that uses a vertex exclusively holds units in the planner of its entry. A second planner
counts all jobs that use the vertex, including those that share it on the way down, so that
exclusive use is checked in one step. The job's use of the whole subtree is planned in the vertex's
filter. Imitates `schedule`, `idata.x_checker` and `idata.subplans` of Fluxion (flux-sched
resource/schema/sched_data.hpp, infra_data.hpp).

A change is recorded for the vertex and all its ancestors. If nothing is recorded for a vertex since
a walk visited it, its whole subtree is unchanged, and the walk's result is still valid.
"""

from __future__ import annotations

from collections.abc import Mapping

from batkube.graph.accounting.planner import Planner
from batkube.graph.accounting.pruning import SubtreeFilters
from batkube.graph.resources import ResourceGraph

#: The maximum number of jobs that share a vertex, as in Fluxion (X_CHECKER_NJOBS).
JOBS_MAX = 0x40000000


class LedgerEntry:
    """The bookings of one vertex."""

    __slots__ = ("allocations", "filter_spans", "has_uncounted_jobs", "jobs", "reservations", "tags", "units")

    def __init__(self, size: int) -> None:
        #: Units held by jobs that use the vertex exclusively.
        self.units = Planner(size)
        #: One unit for every job that uses the vertex, exclusively or not.
        self.jobs = Planner(JOBS_MAX)
        #: The spans in `units` by job, for allocations now and reservations in the future.
        self.allocations: dict[int, int] = {}
        self.reservations: dict[int, int] = {}
        #: The spans in `jobs` by job; None after `uncount`.
        self.tags: dict[int, int | None] = {}
        #: The spans in the filter of the vertex's subtree by job.
        self.filter_spans: dict[int, int] = {}
        #: Whether a job uses something in the subtree without a unit in `jobs`.
        self.has_uncounted_jobs = False


class Ledger:
    """The entries of all vertices, and the changes since walks visited them."""

    def __init__(self, graph: ResourceGraph, filters: SubtreeFilters, subsystem: str) -> None:
        self.graph = graph
        self.filters = filters
        self.subsystem = subsystem
        self.entries: dict[int, LedgerEntry] = {}
        #: The vertices that each job uses, children before their parents.
        self.vertices_of_job: dict[int, list[int]] = {}
        #: For each tracked vertex: the edges down from it with changes below them, and the number of
        #: the last change there. The edge with the latest change comes last.
        self._changes: dict[int, dict[int, int]] = {}
        self._last_change = 0

    def track_changes_below(self, vertex: int) -> dict[int, int]:
        """Return the changes below the edges down from a vertex. The mapping is updated from now on."""
        return self._changes.setdefault(vertex, {})

    def stop_tracking(self) -> None:
        """Stop updating the mappings that `track_changes_below` returned."""
        self._changes.clear()

    def mark_changed(self, vertex: int) -> None:
        """Record a change of a vertex, for it and all its ancestors."""
        self._last_change += 1
        visited = {vertex}
        stack = [vertex]
        while stack:
            current = stack.pop()
            self._record_change(current)
            for edge in self.graph.in_edges.get(current, ()):
                parent = self.graph.edge_source[edge]
                if parent not in visited:
                    visited.add(parent)
                    stack.append(parent)

    def _record_change(self, vertex: int) -> None:
        """Record the latest change at the tracked edges into a vertex."""
        for edge in self.graph.in_edges.get(vertex, ()):
            changes = self._changes.get(self.graph.edge_source[edge])
            if changes is not None:
                changes.pop(edge, None)
                changes[edge] = self._last_change

    def entry(self, vertex: int) -> LedgerEntry:
        """Return the entry of a vertex, created on first use."""
        entry = self.entries.get(vertex)
        if entry is None:
            entry = self.entries[vertex] = LedgerEntry(self.graph.size[vertex])
        return entry

    def free(self, vertex: int, start: int, duration: int) -> int:
        """Return the units of a vertex that are free throughout a window."""
        entry = self.entries.get(vertex)
        return self.graph.size[vertex] if entry is None else entry.units.free_during(start, duration)

    def allocate(self, vertex: int, job: int, start: int, duration: int, units: int, *, is_reservation: bool) -> bool:
        """Allocate units of a vertex to a job exclusively; return False if too few are free."""
        entry = self.entry(vertex)
        span = entry.units.add(start, duration, units)
        if span is not None:
            (entry.reservations if is_reservation else entry.allocations)[job] = span
        return span is not None

    def tag(self, vertex: int, job: int, start: int, duration: int, below: Mapping[str, int]) -> None:
        """Record that a job uses a vertex, and the tracked amounts that it uses below it."""
        entry = self.entry(vertex)
        entry.tags[job] = entry.jobs.add(start, duration, 1)
        planner = self.filters.planner(vertex) if below else None
        if planner is not None:
            span = planner.add(start, duration, below)
            if span is not None:
                entry.filter_spans[job] = span
        self.vertices_of_job.setdefault(job, []).append(vertex)
        # The caller tags the ancestors too, so the change is recorded for this vertex only.
        self._last_change += 1
        self._record_change(vertex)

    def release(self, vertex: int, job: int) -> int:
        """Release a vertex from a job and return the number of units that it held."""
        entry = self.entries[vertex]
        self.untag(vertex, job)
        filter_span = entry.filter_spans.pop(job, None)
        planner = self.filters.planner(vertex)
        if filter_span is not None and planner is not None and filter_span in planner.spans:
            planner.remove(filter_span)
        return self.release_units(vertex, job)

    def untag(self, vertex: int, job: int) -> None:
        """Record that a job no longer uses a vertex."""
        entry = self.entries[vertex]
        span = entry.tags.pop(job, None)
        if span is not None:
            entry.jobs.remove(span)
        self.mark_changed(vertex)

    def uncount(self, vertex: int, job: int) -> None:
        """Remove a job from the count of jobs on a vertex, but keep its tag."""
        entry = self.entries[vertex]
        span = entry.tags.get(job)
        if span is not None:
            entry.jobs.remove(span)
            entry.tags[job] = None
            entry.has_uncounted_jobs = True
        self.mark_changed(vertex)

    def mark_uncounted(self, vertex: int) -> None:
        """Record that a job uses a vertex without being counted there and at its ancestors."""
        for current in (vertex, *self.graph.ancestors(vertex, self.subsystem)):
            self.entry(current).has_uncounted_jobs = True
        self.mark_changed(vertex)

    def release_units(self, vertex: int, job: int) -> int:
        """Release the units that a job holds of a vertex, and return their number."""
        entry = self.entries.get(vertex)
        if entry is None:
            return 0
        span = entry.allocations.pop(job, None)
        if span is None:
            span = entry.reservations.pop(job, None)
        if span is None:
            return 0
        units = entry.units.spans[span].units
        entry.units.remove(span)
        self.mark_changed(vertex)
        return units
