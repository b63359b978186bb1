"""Booking: enters a selection into the ledger and passes it to a writer.

The selected part of the graph is walked once more, children before their parents. Exclusive
vertices are allocated; every vertex with an exclusive one in its subtree is tagged and written.
Vertices of an exclusive type, by policy or by jobspec, are taken with their whole subtree.

Imitates flux-sched resource/traversers/dfu_impl_update.cpp.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Collection

from batkube.graph.accounting.ledger import Ledger
from batkube.graph.formats.match_writers import MatchedVertex, MatchWriter
from batkube.graph.traversal.selection import VertexSelection
from batkube.graph.traversal.subsystem_view import SubsystemView


class BookingKind(enum.Enum):
    """What is entered into the ledger."""

    ALLOCATION = "allocation"
    RESERVATION = "reservation"
    #: Nothing: the selection is only passed to the writer.
    DRY_RUN = "dry run"
    #: Tags and filters; the units of the vertices are allocated already.
    UPDATE = "update"


@dataclasses.dataclass(frozen=True, slots=True)
class JobWindow:
    """A job, and the window of time that is booked for it. `now` is the time of the decision."""

    job: int
    start: int
    duration: int
    now: int


class Booking:
    """Books one selection."""

    def __init__(
        self,
        view: SubsystemView,
        ledger: Ledger,
        selection: VertexSelection,
        window: JobWindow,
        kind: BookingKind,
        exclusive_types: Collection[str],
        writer: MatchWriter,
        *,
        updates_weights: bool = False,
    ) -> None:
        self._view = view
        self._graph = view.graph
        self._ledger = ledger
        self._window = window
        self._kind = kind
        self._exclusive_types = exclusive_types
        self._writer = writer
        self._updates_weights = updates_weights
        self._selection = selection
        self._tracked = ledger.filters.types.tracked
        self._visited: set[int] = set()
        self._edges_down: dict[int, list[int]] = {}
        for edge in sorted(selection.edges):
            self._edges_down.setdefault(self._graph.edge_source[edge], []).append(edge)

    def run(self) -> bool:
        """Book the selection; return False if it has no exclusive vertex."""
        root, selection = self._view.root, self._selection
        is_whole = self._graph.type[root] in self._exclusive_types
        count, _ = self._book(root, 1, selection.root_units, selection.is_root_exclusive, is_whole, False)
        return count > 0

    def _book(
        self, vertex: int, level: int, units: int, exclusive: bool, is_whole: bool, parent_exclusive: bool
    ) -> tuple[int, dict[str, int]]:
        """Book a vertex and its selected subtree.

        Returns the number of exclusive vertices in the subtree and the amounts it uses, by type.
        """
        self._visited.add(vertex)
        is_whole = is_whole or self._graph.type[vertex] in self._exclusive_types
        exclusive = exclusive or is_whole
        exclusive_count = 0
        used_below: dict[str, int] = {}
        for edge in self._view.edges_down(vertex) if is_whole else self._edges_down.get(vertex, ()):
            child = self._graph.edge_target[edge]
            if child in self._visited:
                continue
            child_units, child_exclusive = self._selection.edges.get(edge, (0, False))
            if is_whole:
                child_units, child_exclusive = self._graph.size[child], True
            count, used = self._book(child, level + 1, child_units, child_exclusive, is_whole, exclusive)
            for type, amount in used.items():
                used_below[type] = used_below.get(type, 0) + amount
            if count:
                exclusive_count += count
                if self._updates_weights:
                    self._update_weight(edge)
                self._writer.add_edge(self._graph, edge, exclusive)
        exclusive_count += exclusive
        if self._kind is not BookingKind.DRY_RUN:
            self._record(vertex, units, exclusive, exclusive_count, used_below)
        if not exclusive_count:
            return 0, {}
        self._writer.add_vertex(MatchedVertex(self._graph, vertex, level, units, exclusive, parent_exclusive, {}))
        if self._kind is BookingKind.DRY_RUN:
            return exclusive_count, {}
        return exclusive_count, self._subtree_use(vertex, units, exclusive, used_below)

    def _record(
        self, vertex: int, units: int, exclusive: bool, exclusive_count: int, used_below: dict[str, int]
    ) -> None:
        window = self._window
        if exclusive and self._kind is not BookingKind.UPDATE:
            is_reservation = self._kind is BookingKind.RESERVATION
            self._ledger.allocate(
                vertex, window.job, window.start, window.duration, units, is_reservation=is_reservation
            )
        if exclusive_count:
            self._ledger.tag(vertex, window.job, window.start, window.duration, used_below)

    def _subtree_use(self, vertex: int, units: int, exclusive: bool, used_below: dict[str, int]) -> dict[str, int]:
        """Return the amounts that a subtree uses, as the filter of its parent counts them."""
        used = dict(used_below)
        type, size = self._graph.type[vertex], self._graph.size[vertex]
        if type in self._tracked:
            used[type] = used.get(type, 0) + (size if exclusive else size - units)
        return used

    def _update_weight(self, edge: int) -> None:
        """Set the weight of an edge to the free units below it, of the last tracked type.

        First-match policies visit heavy edges first (flux-sched: dfu_impl_t::upd_by_outedges).
        """
        planner = self._ledger.filters.planner(self._graph.edge_target[edge])
        if planner is None:
            return
        last = list(planner.planners.values())[-1]
        free = last.free_at(self._window.now) if self._window.now >= 0 else 0
        if free or planner.spans:
            self._view.set_weight(edge, free)
            self._ledger.mark_changed(self._graph.edge_target[edge])
