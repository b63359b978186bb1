"""The ledger: who has which vertex, and when. One page per vertex that any job ever touched.

A job that has a vertex for itself holds units of it in the vertex's planner. Every vertex it touches, shared ones on
the way down too, counts the job in a second planner, by which "nobody else here" is checked at once; and what it takes
in all below a vertex is planned in that subtree's filter. Fluxion: `schedule`, `idata.x_checker`, `idata.subplans`.

Every change is noted at all vertices from the root down to what it is about, so where nothing was noted since a walk
came by, nothing changed in the whole subtree: what the walk learned of it holds still.
"""

from __future__ import annotations

from collections.abc import Mapping

from batkube.graph.accounting.planner import Planner
from batkube.graph.accounting.pruning import SubtreeFilters
from batkube.graph.resources import ResourceGraph

#: How many jobs may share a vertex, as in Fluxion.
JOBS_MAX = 0x40000000


class LedgerEntry:
    """What is booked on one vertex."""

    __slots__ = ("allocations", "filter_spans", "has_uncounted_jobs", "jobs", "plan", "reservations", "tags")

    def __init__(self, size: int) -> None:
        #: Units, of those who hold some of the vertex for themselves.
        self.plan = Planner(size)
        #: One for every job that touches the vertex.
        self.jobs = Planner(JOBS_MAX)
        #: The spans in `plan`, by job: of those who have it now, and of those who will.
        self.allocations: dict[int, int] = {}
        self.reservations: dict[int, int] = {}
        #: The spans in `jobs`, by job; None for one whose span is gone while the job is not.
        self.tags: dict[int, int | None] = {}
        #: The spans in the filter of the vertex's subtree, by job.
        self.filter_spans: dict[int, int] = {}
        #: Whether a job has something below that is not counted in `jobs`.
        self.has_uncounted_jobs = False


class Ledger:
    """The pages of all vertices, and the stamps that tell what changed."""

    def __init__(self, graph: ResourceGraph, filters: SubtreeFilters, subsystem: str) -> None:
        self.graph = graph
        self.filters = filters
        self.subsystem = subsystem
        self.entries: dict[int, LedgerEntry] = {}
        #: The vertices that each job touches, children before their parents.
        self.vertices_of_job: dict[int, list[int]] = {}
        #: For each vertex that somebody asked for: the edges down from it behind which something changed, with the
        #: number of the last change there. The latest is the last one.
        self._changes: dict[int, dict[int, int]] = {}
        self._last_change = 0

    def track_changes_below(self, vertex: int) -> dict[int, int]:
        """Return what changes behind the edges down from a vertex, from now on; it is kept up to date."""
        return self._changes.setdefault(vertex, {})

    def stop_tracking(self) -> None:
        """Forget who asked for changes."""
        self._changes.clear()

    def mark_changed(self, vertex: int) -> None:
        """Say that something about a vertex changed, and so about all around it."""
        self._last_change += 1
        reached = {vertex: None}
        stack = [vertex]
        while stack:
            current = stack.pop()
            self._record_change(current)
            for edge in self.graph.in_edges.get(current, ()):
                parent = self.graph.edge_source[edge]
                if parent not in reached:
                    reached[parent] = None
                    stack.append(parent)

    def _record_change(self, vertex: int) -> None:
        """Note at the edges to a vertex that something changed behind them."""
        for edge in self.graph.in_edges.get(vertex, ()):
            changes = self._changes.get(self.graph.edge_source[edge])
            if changes is not None:
                changes.pop(edge, None)
                changes[edge] = self._last_change

    def entry(self, vertex: int) -> LedgerEntry:
        """Return the page of a vertex, a new one if it has none."""
        page = self.entries.get(vertex)
        if page is None:
            page = self.entries[vertex] = LedgerEntry(self.graph.size[vertex])
        return page

    def free(self, vertex: int, start: int, duration: int) -> int:
        """Return how many units of a vertex are free all through a window."""
        page = self.entries.get(vertex)
        return self.graph.size[vertex] if page is None else page.plan.free_during(start, duration)

    def allocate(self, vertex: int, job: int, start: int, duration: int, units: int, *, is_reservation: bool) -> bool:
        """Give a job units of a vertex for itself; False if there are not so many free."""
        page = self.entry(vertex)
        span = page.plan.add(start, duration, units)
        if span is not None:
            (page.reservations if is_reservation else page.allocations)[job] = span
        return span is not None

    def tag(self, vertex: int, job: int, start: int, duration: int, below: Mapping[str, int]) -> None:
        """Note that a job touches a vertex and takes so much below it, by type that is tracked."""
        page = self.entry(vertex)
        page.tags[job] = page.jobs.add(start, duration, 1)
        planner = self.filters.planner(vertex) if below else None
        if planner is not None:
            span = planner.add(start, duration, below)
            if span is not None:
                page.filter_spans[job] = span
        self.vertices_of_job.setdefault(job, []).append(vertex)
        # What is around it is tagged as well, one vertex after the other.
        self._last_change += 1
        self._record_change(vertex)

    def release(self, vertex: int, job: int) -> int:
        """Take a vertex from a job and return how many units it held."""
        page = self.entries[vertex]
        self.untag(vertex, job)
        filter_span = page.filter_spans.pop(job, None)
        planner = self.filters.planner(vertex)
        if filter_span is not None and planner is not None and filter_span in planner.spans:
            planner.remove(filter_span)
        return self.release_units(vertex, job)

    def untag(self, vertex: int, job: int) -> None:
        """Forget that a job touches a vertex."""
        page = self.entries[vertex]
        span = page.tags.pop(job, None)
        if span is not None:
            page.jobs.remove(span)
        self.mark_changed(vertex)

    def uncount(self, vertex: int, job: int) -> None:
        """Count a job no more among those that touch a vertex."""
        page = self.entries[vertex]
        span = page.tags.get(job)
        if span is not None:
            page.jobs.remove(span)
            page.tags[job] = None
            page.has_uncounted_jobs = True
        self.mark_changed(vertex)

    def mark_uncounted(self, vertex: int) -> None:
        """Say that a job has something of a vertex without being counted at it and around it."""
        for current in (vertex, *self.graph.ancestors(vertex, self.subsystem)):
            self.entry(current).has_uncounted_jobs = True
        self.mark_changed(vertex)

    def release_units(self, vertex: int, job: int) -> int:
        """Free the units that a job holds of a vertex, and return how many they were."""
        page = self.entries.get(vertex)
        if page is None:
            return 0
        span = page.allocations.pop(job, None)
        if span is None:
            span = page.reservations.pop(job, None)
        if span is None:
            return 0
        units = page.plan.spans[span].units
        page.plan.remove(span)
        self.mark_changed(vertex)
        return units
