"""Finds vertices by their bookings and attributes.

A vertex is written if it or a descendant meets the criteria. A vertex inherits from its ancestors
that it is down, allocated or reserved.

Imitates `dfu_impl_t::find` (flux-sched resource/traversers/dfu_impl.cpp).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from batkube.graph.accounting.ledger import Ledger, LedgerEntry
from batkube.graph.accounting.planner import MultiPlanner
from batkube.graph.formats.match_writers import MatchedVertex, MatchWriter
from batkube.graph.idsets import decode_hostlist
from batkube.graph.query.criteria import Criterion, JoinedCriteria, parse_criteria
from batkube.graph.traversal.subsystem_view import SubsystemView

_NO_BOOKINGS = LedgerEntry(0)


class InheritedStatus(NamedTuple):
    """The part of a vertex's status that its descendants inherit."""

    is_down: bool = False
    is_allocated: bool = False
    is_reserved: bool = False


def find(view: SubsystemView, ledger: Ledger, text: str, writer: MatchWriter) -> None:
    """Pass the vertices that meet the criteria to a writer. Raises ValueError for invalid criteria."""
    _FindWalk(view, ledger, parse_criteria(text), writer).visit(view.root, 1, InheritedStatus())
    writer.set_times(0, 0)


class _FindWalk:
    def __init__(self, view: SubsystemView, ledger: Ledger, criteria: JoinedCriteria, writer: MatchWriter) -> None:
        self._view = view
        self._graph = view.graph
        self._ledger = ledger
        self._criteria = criteria
        self._writer = writer
        self._visited: set[int] = set()
        jobs = [int(criterion.value) for criterion in criteria.criteria() if criterion.key.startswith("jobid-")]
        filters = [criterion.value for criterion in criteria.criteria() if criterion.key == "agfilter"]
        self._job = jobs[-1] if jobs else 0
        self._shows_filters = bool(filters) and filters[-1] in ("true", "t")

    def visit(self, vertex: int, level: int, status: InheritedStatus) -> int:
        """Write the vertices of a subtree that meet the criteria, or have a descendant that does.

        Returns the number of vertices written.
        """
        self._visited.add(vertex)
        entry = self._ledger.entries.get(vertex, _NO_BOOKINGS)
        status = InheritedStatus(
            status.is_down or not self._graph.is_up[vertex],
            status.is_allocated or bool(entry.allocations),
            status.is_reserved or bool(entry.reservations),
        )
        count = 0
        for edge in self._view.edges_down(vertex):
            child = self._graph.edge_target[edge]
            child_count = self.visit(child, level + 1, status) if child not in self._visited else 0
            if child_count:
                self._writer.add_edge(self._graph, edge, False)
                count += child_count
        if not count and not self._criteria.evaluate(lambda criterion: self._test(criterion, vertex, entry, status)):
            return 0
        extras = {}
        if self._shows_filters:
            usage = self._filter_usage(vertex, entry)
            if usage is None:
                return 0
            extras = {"agfilter": usage}
        units = self._graph.size[vertex]
        self._writer.add_vertex(MatchedVertex(self._graph, vertex, level, units, True, False, extras))
        return count + 1

    def _test(self, criterion: Criterion, vertex: int, entry: LedgerEntry, status: InheritedStatus) -> bool:
        match criterion.key:
            case "status":
                return status.is_down is (criterion.value == "down")
            case "sched-now":
                return status.is_allocated is (criterion.value == "allocated")
            case "sched-future":
                return status.is_reserved is (criterion.value == "reserved")
            case "agfilter":
                return criterion.value in ("true", "t")
            case "names":
                return self._graph.name[vertex] in decode_hostlist(criterion.value)
            case "property":
                return criterion.value in self._graph.properties.get(vertex, {})
        table: Collection[int] = {
            "jobid-alloc": entry.allocations.keys(),
            "jobid-reserved": entry.reservations.keys(),
            "jobid-span": entry.filter_spans.keys(),
            "jobid-tag": entry.tags.keys(),
        }[criterion.key]
        return int(criterion.value) in table

    def _filter_usage(self, vertex: int, entry: LedgerEntry) -> dict[str, str] | None:
        """Return the used units of each tracked type below a vertex, by all jobs or by one; None if unknown."""
        planner = self._ledger.filters.planner(vertex)
        if planner is None or (self._job and self._job not in entry.filter_spans):
            return None
        return {
            type: f"used:{self._used_units(planner, entry, type)}, total:{planner.planners[type].total}"
            for type in sorted(planner.planners)
        }

    def _used_units(self, planner: MultiPlanner, entry: LedgerEntry, type: str) -> int:
        if self._job:
            return planner.planned(entry.filter_spans[self._job], type)
        return planner.planners[type].total - planner.planners[type].free_at(0)
