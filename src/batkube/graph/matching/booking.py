"""Booking: from a selection to entries in the ledger and lines for a writer. Fluxion: dfu_impl_update.cpp.

The selected part of the graph is walked over once more, children before their parents. What the job has for itself is
held; every vertex with anything held in it is tagged and written. Vertices of an exclusive type, by policy or because
the jobspec says so, are taken with all below them.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Collection

from batkube.graph.accounting.ledger import Ledger
from batkube.graph.formats.match_writers import MatchWriter
from batkube.graph.traversal.selection import VertexSelection
from batkube.graph.traversal.subsystem_view import SubsystemView


class BookingKind(enum.Enum):
    """What becomes of a selection."""

    ALLOCATION = "allocation"
    RESERVATION = "reservation"
    #: Nothing is booked: it was only asked what would be taken.
    DRY_RUN = "question"
    #: The vertices are held already; the rest of the books follows.
    UPDATE = "update"


@dataclasses.dataclass(frozen=True, slots=True)
class JobWindow:
    """Which job, and from when on for how long; `now` is when it is decided."""

    job: int
    start: int
    duration: int
    now: int


class Booking:
    """Books one selection."""

    def __init__(
        self,
        outline: SubsystemView,
        ledger: Ledger,
        selection: VertexSelection,
        window: JobWindow,
        claim: BookingKind,
        exclusive_types: Collection[str],
        writer: MatchWriter,
        *,
        weighs: bool = False,
    ) -> None:
        self._view = outline
        self._graph = outline.graph
        self._ledger = ledger
        self._window = window
        self._kind = claim
        self._exclusive_types = exclusive_types
        self._writer = writer
        self._updates_weights = weighs
        self._selection = selection
        self._tracked = ledger.filters.types.tracked
        self._seen: set[int] = set()
        self._down: dict[int, list[int]] = {}
        for edge in sorted(selection.edges):
            self._down.setdefault(self._graph.edge_source[edge], []).append(edge)

    def run(self) -> bool:
        """Book everything; False if nothing at all was held."""
        root = self._view.root
        is_whole = self._graph.type[root] in self._exclusive_types
        held, _ = self._book(root, 1, self._selection.root_units, self._selection.is_root_exclusive, is_whole, False)
        return held > 0

    def _book(
        self, vertex: int, level: int, units: int, exclusive: bool, is_whole: bool, parent_exclusive: bool
    ) -> tuple[int, dict[str, int]]:
        """Book a vertex and what was selected below it; return how much is held there and what is taken, by type."""
        self._seen.add(vertex)
        is_whole = is_whole or self._graph.type[vertex] in self._exclusive_types
        exclusive = exclusive or is_whole
        held = 0
        below: dict[str, int] = {}
        for edge in self._view.edges_down(vertex) if is_whole else self._down.get(vertex, ()):
            child = self._graph.edge_target[edge]
            if child in self._seen:
                continue
            child_units, child_exclusive = self._selection.edges.get(edge, (0, False))
            if is_whole:
                child_units, child_exclusive = self._graph.size[child], True
            count, taken = self._book(child, level + 1, child_units, child_exclusive, is_whole, exclusive)
            for type, amount in taken.items():
                below[type] = below.get(type, 0) + amount
            if count:
                held += count
                if self._updates_weights:
                    self._update_weight(edge)
                self._writer.edge(self._graph, edge, exclusive)
        return self._finish_vertex(vertex, level, units, exclusive, parent_exclusive, held, below)

    def _finish_vertex(
        self,
        vertex: int,
        level: int,
        units: int,
        exclusive: bool,
        parent_exclusive: bool,
        held: int,
        below: dict[str, int],
    ) -> tuple[int, dict[str, int]]:
        held += exclusive
        taken: dict[str, int] = {}
        if self._kind is not BookingKind.DRY_RUN:
            self._record(vertex, units, exclusive, held, below)
        if held:
            if self._kind is not BookingKind.DRY_RUN:
                taken = self._subtree_use(vertex, units, exclusive, below)
            self._writer.vertex(self._graph, vertex, level, units, exclusive, parent_exclusive)
        return held, taken

    def _record(self, vertex: int, units: int, exclusive: bool, held: int, below: dict[str, int]) -> None:
        window = self._window
        if exclusive and self._kind is not BookingKind.UPDATE:
            is_reservation = self._kind is BookingKind.RESERVATION
            self._ledger.allocate(
                vertex, window.job, window.start, window.duration, units, is_reservation=is_reservation
            )
        if held:
            self._ledger.tag(vertex, window.job, window.start, window.duration, below)

    def _subtree_use(self, vertex: int, units: int, exclusive: bool, below: dict[str, int]) -> dict[str, int]:
        """Return what the subtree of a vertex takes, as its parent's filter counts it."""
        taken = dict(below)
        type, size = self._graph.type[vertex], self._graph.size[vertex]
        if type in self._tracked:
            taken[type] = taken.get(type, 0) + (size if exclusive else size - units)
        return taken

    def _update_weight(self, edge: int) -> None:
        """Note for first matches how much of the last type that is tracked is free behind an edge now."""
        planner = self._ledger.filters.planner(self._graph.edge_target[edge])
        if planner is None:
            return
        last = list(planner.planners.values())[-1]
        free = last.free_at(self._window.now) if self._window.now >= 0 else 0
        if free or planner.spans:
            self._view.set_weight(edge, free)
            self._ledger.mark_changed(self._graph.edge_target[edge])
