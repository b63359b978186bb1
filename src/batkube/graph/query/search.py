"""Finding vertices by what is booked on them and what they are. Fluxion: dfu_impl_t::find.

A vertex is shown if it meets the criteria or something below it does. Being down, allocated or reserved is passed on to
all below.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from batkube.graph.accounting.ledger import Ledger, LedgerEntry
from batkube.graph.accounting.planner import MultiPlanner
from batkube.graph.formats.match_writers import MatchWriter
from batkube.graph.idsets import decode_hostlist
from batkube.graph.query.criteria import Criterion, JoinedCriteria, parse_criteria
from batkube.graph.traversal.subsystem_view import SubsystemView

_NO_PAGE = LedgerEntry(0)


class InheritedStatus(NamedTuple):
    """What a vertex shares with all below it."""

    is_down: bool = False
    is_allocated: bool = False
    is_reserved: bool = False


def find(outline: SubsystemView, ledger: Ledger, text: str, writer: MatchWriter) -> None:
    """Hand the vertices that meet criteria to a writer. Raises ValueError for criteria that are none."""
    _FindWalk(outline, ledger, parse_criteria(text), writer).visit(outline.root, 1, InheritedStatus())
    writer.times(0, 0)


class _FindWalk:
    def __init__(self, outline: SubsystemView, ledger: Ledger, criteria: JoinedCriteria, writer: MatchWriter) -> None:
        self._view = outline
        self._graph = outline.graph
        self._ledger = ledger
        self._criteria = criteria
        self._writer = writer
        self._seen: set[int] = set()
        jobs = [int(one.value) for one in criteria.criteria() if one.key.startswith("jobid-")]
        filters = [one.value for one in criteria.criteria() if one.key == "agfilter"]
        self._job = jobs[-1] if jobs else 0
        self._shows_filters = bool(filters) and filters[-1] in ("true", "t")

    def visit(self, vertex: int, level: int, plight: InheritedStatus) -> int:
        """Write a vertex and what is below it, if anything of it meets the criteria; return how many were written."""
        self._seen.add(vertex)
        page = self._ledger.entries.get(vertex, _NO_PAGE)
        plight = InheritedStatus(
            plight.is_down or not self._graph.is_up[vertex],
            plight.is_allocated or bool(page.allocations),
            plight.is_reserved or bool(page.reservations),
        )
        count = 0
        for edge in self._view.edges_down(vertex):
            child = self._graph.edge_target[edge]
            below = self.visit(child, level + 1, plight) if child not in self._seen else 0
            if below:
                self._writer.edge(self._graph, edge, False)
                count += below
        if not count and not self._criteria.evaluate(lambda one: self._test(one, vertex, page, plight)):
            return 0
        extras = {}
        if self._shows_filters:
            use = self._filter_usage(vertex, page)
            if use is None:
                return 0
            extras = {"agfilter": use}
        self._writer.vertex(self._graph, vertex, level, self._graph.size[vertex], True, False, extras)
        return count + 1

    def _test(self, criterion: Criterion, vertex: int, page: LedgerEntry, plight: InheritedStatus) -> bool:
        match criterion.key:
            case "status":
                return plight.is_down is (criterion.value == "down")
            case "sched-now":
                return plight.is_allocated is (criterion.value == "allocated")
            case "sched-future":
                return plight.is_reserved is (criterion.value == "reserved")
            case "agfilter":
                return criterion.value in ("true", "t")
            case "names":
                return self._graph.name[vertex] in decode_hostlist(criterion.value)
            case "property":
                return criterion.value in self._graph.properties.get(vertex, {})
        table: Collection[int] = {
            "jobid-alloc": page.allocations.keys(),
            "jobid-reserved": page.reservations.keys(),
            "jobid-span": page.filter_spans.keys(),
            "jobid-tag": page.tags.keys(),
        }[criterion.key]
        return int(criterion.value) in table

    def _filter_usage(self, vertex: int, page: LedgerEntry) -> dict[str, str] | None:
        """Return how much of each tracked type is used below a vertex, by all or by one job; None where unknown."""
        planner = self._ledger.filters.planner(vertex)
        if planner is None or (self._job and self._job not in page.filter_spans):
            return None
        return {
            type: f"used:{self._used_units(planner, page, type)}, total:{planner.planners[type].total}"
            for type in sorted(planner.planners)
        }

    def _used_units(self, planner: MultiPlanner, page: LedgerEntry, type: str) -> int:
        if self._job:
            return planner.planned(page.filter_spans[self._job], type)
        return planner.planners[type].total - planner.planners[type].free_at(0)
