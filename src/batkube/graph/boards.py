"""Boards: what the vertices below one vertex offered to walks with the same question, kept up to date.

A walk that comes by again asks only those of whom something changed, as the ledger notes, and those of whom is known
what holds in another window only. How much it has to do depends on what happened, not on how many vertices there are.

What comes to be known of a vertex holds from the last start to the first end of the jobs in it, however long the window
is: what is free in it is then what is free at its beginning. Where a job is still to come, it holds for a very window.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from batkube.graph.candidates import MatchWindow, Pools, Visit
from batkube.graph.match_policy import Candidate, ScoreOrder
from batkube.graph.outline import EdgePlace, Outline
from batkube.graph.rankings import RankedPool

ANY_DURATION = -1
NEVER = -1
FOREVER = 2**63


class Recollection(NamedTuple):
    """What a vertex offered, as a visit and as a candidate; None if it did not do. With the bounds of its validity."""

    since: int
    until: int
    duration: int
    visit: Visit | None
    candidate: Candidate | None

    def holds(self, window: MatchWindow) -> bool:
        """Tell whether it is so in a window, too."""
        return self.since <= window.start < self.until and self.duration in (ANY_DURATION, window.duration)


class Board:
    """What is known of the vertices behind some edges."""

    __slots__ = ("_brief", "_changes", "_ends", "_seen", "_starts", "known")

    def __init__(self, changes: Mapping[int, int]) -> None:
        self.known: dict[int, Recollection] = {}
        #: The ledger's notes, the latest last, and the number of the last one that was looked at.
        self._changes = changes
        self._seen = changes[next(reversed(changes))] if changes else 0
        #: Heaps of when something ends to hold, and of when it begins to, the last first. What is said there of an
        #: edge may have been replaced since.
        self._ends: list[tuple[int, int]] = []
        self._starts: list[tuple[int, int]] = []
        #: The edges of which is known what holds for windows of one duration only.
        self._brief: dict[int, None] = {}

    def note(self, edge: int, recollection: Recollection) -> None:
        """Remember what is behind an edge."""
        self.known[edge] = recollection
        if recollection.duration != ANY_DURATION:
            self._brief[edge] = None
        if recollection.until < FOREVER:
            heapq.heappush(self._ends, (recollection.until, edge))
        if recollection.since > NEVER:
            heapq.heappush(self._starts, (-recollection.since, edge))
        if len(self._ends) + len(self._starts) > 4 * len(self.known) + 100:
            self._tidy()

    def _tidy(self) -> None:
        """Make the heaps anew, without what has been replaced."""
        self._ends = [(known.until, edge) for edge, known in self.known.items() if known.until < FOREVER]
        self._starts = [(-known.since, edge) for edge, known in self.known.items() if known.since > NEVER]
        heapq.heapify(self._ends)
        heapq.heapify(self._starts)

    def outdated(self, window: MatchWindow) -> Iterable[int]:
        """Return the edges behind which something changed since this was asked last, or is another in a window."""
        edges: dict[int, None] = {}
        for edge in reversed(self._changes):
            if self._changes[edge] <= self._seen:
                break
            edges[edge] = None
        if edges:
            self._seen = self._changes[next(iter(edges))]
        due = list(self._brief)
        while self._ends and self._ends[0][0] <= window.start:
            due.append(heapq.heappop(self._ends)[1])
        while self._starts and -self._starts[0][0] > window.start:
            due.append(heapq.heappop(self._starts)[1])
        for edge in due:
            known = self.known.get(edge)
            if known is not None and not known.holds(window):
                edges[edge] = None
        return edges

    def forget(self, edge: int) -> Recollection | None:
        """Forget what is behind an edge, and return what it was."""
        self._brief.pop(edge, None)
        return self.known.pop(edge, None)


class PoolBoard(Board):
    """A board for walks that look at everything: what all vertices offer, in pools."""

    __slots__ = ("_lent", "_order", "_pools", "_unknown")

    def __init__(self, changes: Mapping[int, int], edges: Iterable[int], order: ScoreOrder) -> None:
        super().__init__(changes)
        self._unknown: Iterable[int] = edges
        self._order = order
        self._pools: dict[str, RankedPool] = {}
        #: The pools that somebody else may have: these must not change any more.
        self._lent: set[str] = set()

    def outdated(self, window: MatchWindow) -> Iterable[int]:
        """Return the edges to look behind: at first all."""
        if self._unknown:
            edges, self._unknown = self._unknown, ()
            return edges
        return [edge for edge in super().outdated(window) if edge in self.known]

    def put(self, edge: int, type: str, recollection: Recollection) -> None:
        """Replace what a vertex of some type, behind an edge, was known to offer."""
        before = self.forget(edge)
        if before is not None and before.visit is not None and before.candidate is not None:
            for loose, pool in before.visit.loose.items():
                self._own(loose).remove(edge, pool)
            self._own(type).remove(edge, before.candidate)
        self.note(edge, recollection)
        if recollection.visit is not None and recollection.candidate is not None:
            for loose, pool in recollection.visit.loose.items():
                self._own(loose).add(edge, pool)
            self._own(type).add(edge, recollection.candidate)

    def _own(self, type: str) -> RankedPool:
        """Return the pool of a type, to be changed."""
        pool = self._pools.get(type)
        if pool is None or type in self._lent:
            pool = self._pools[type] = RankedPool(self._order) if pool is None else pool.copy()
            self._lent.discard(type)
        return pool

    def pools(self) -> Pools:
        """Return what all vertices offer, to be kept by whoever asks."""
        self._lent.update(self._pools)
        return {type: pool for type, pool in self._pools.items() if pool}


class QueueBoard(Board):
    """A board for walks that end when there is enough: whom to ask, and in which order."""

    __slots__ = ("_outline", "_places", "hopes")

    def __init__(self, changes: Mapping[int, int], edges: Iterable[int], outline: Outline) -> None:
        super().__init__(changes)
        self._outline = outline
        self._places = {edge: outline.place(edge) for edge in edges}
        #: All edges, but for those behind which is nothing for these walks, in the order of their places.
        self.hopes: list[EdgePlace] = sorted(self._places.values())

    def renew(self, window: MatchWindow) -> None:
        """Forget what does not hold any more, or not in a window; there may be something."""
        for edge in self.outdated(window):
            if edge in self._places:
                self.forget(edge)
                self.dismiss(edge)
                self._places[edge] = self._outline.place(edge)
                insort(self.hopes, self._places[edge])

    def dismiss(self, edge: int) -> None:
        """Do not look behind an edge until something changes there."""
        place = self._places[edge]
        index = bisect_left(self.hopes, place)
        if index < len(self.hopes) and self.hopes[index] == place:
            del self.hopes[index]
