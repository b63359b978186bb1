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

from batkube.graph.traversal.candidates import MatchWindow, Pools, VisitResult
from batkube.graph.traversal.match_policy import Candidate, ScoreOrder
from batkube.graph.traversal.ranked_pools import RankedPool
from batkube.graph.traversal.subsystem_view import EdgeSortKey, SubsystemView

ANY_DURATION = -1
NEVER = -1
FOREVER = 2**63


class CachedVisit(NamedTuple):
    """What a vertex offered, as a visit and as a candidate; None if it did not do. With the bounds of its validity."""

    since: int
    until: int
    duration: int
    visit: VisitResult | None
    candidate: Candidate | None

    def is_valid_in(self, window: MatchWindow) -> bool:
        """Tell whether it is so in a window, too."""
        return self.since <= window.start < self.until and self.duration in (ANY_DURATION, window.duration)


class EdgeCache:
    """What is known of the vertices behind some edges."""

    __slots__ = ("_changes", "_ends", "_last_change", "_single_duration", "_starts", "visits")

    def __init__(self, changes: Mapping[int, int]) -> None:
        self.visits: dict[int, CachedVisit] = {}
        #: The ledger's notes, the latest last, and the number of the last one that was looked at.
        self._changes = changes
        self._last_change = changes[next(reversed(changes))] if changes else 0
        #: Heaps of when something ends to hold, and of when it begins to, the last first. What is said there of an
        #: edge may have been replaced since.
        self._ends: list[tuple[int, int]] = []
        self._starts: list[tuple[int, int]] = []
        #: The edges of which is known what holds for windows of one duration only.
        self._single_duration: dict[int, None] = {}

    def store(self, edge: int, recollection: CachedVisit) -> None:
        """Remember what is behind an edge."""
        self.visits[edge] = recollection
        if recollection.duration != ANY_DURATION:
            self._single_duration[edge] = None
        if recollection.until < FOREVER:
            heapq.heappush(self._ends, (recollection.until, edge))
        if recollection.since > NEVER:
            heapq.heappush(self._starts, (-recollection.since, edge))
        if len(self._ends) + len(self._starts) > 4 * len(self.visits) + 100:
            self._compact()

    def _compact(self) -> None:
        """Make the heaps anew, without what has been replaced."""
        self._ends = [(known.until, edge) for edge, known in self.visits.items() if known.until < FOREVER]
        self._starts = [(-known.since, edge) for edge, known in self.visits.items() if known.since > NEVER]
        heapq.heapify(self._ends)
        heapq.heapify(self._starts)

    def outdated_edges(self, window: MatchWindow) -> Iterable[int]:
        """Return the edges behind which something changed since this was asked last, or is another in a window."""
        edges: dict[int, None] = {}
        for edge in reversed(self._changes):
            if self._changes[edge] <= self._last_change:
                break
            edges[edge] = None
        if edges:
            self._last_change = self._changes[next(iter(edges))]
        due = list(self._single_duration)
        while self._ends and self._ends[0][0] <= window.start:
            due.append(heapq.heappop(self._ends)[1])
        while self._starts and -self._starts[0][0] > window.start:
            due.append(heapq.heappop(self._starts)[1])
        for edge in due:
            known = self.visits.get(edge)
            if known is not None and not known.is_valid_in(window):
                edges[edge] = None
        return edges

    def drop(self, edge: int) -> CachedVisit | None:
        """Forget what is behind an edge, and return what it was."""
        self._single_duration.pop(edge, None)
        return self.visits.pop(edge, None)


class PoolCache(EdgeCache):
    """A board for walks that look at everything: what all vertices offer, in pools."""

    __slots__ = ("_order", "_pools", "_shared", "_unvisited")

    def __init__(self, changes: Mapping[int, int], edges: Iterable[int], order: ScoreOrder) -> None:
        super().__init__(changes)
        self._unvisited: Iterable[int] = edges
        self._order = order
        self._pools: dict[str, RankedPool] = {}
        #: The pools that somebody else may have: these must not change any more.
        self._shared: set[str] = set()

    def outdated_edges(self, window: MatchWindow) -> Iterable[int]:
        """Return the edges to look behind: at first all."""
        if self._unvisited:
            edges, self._unvisited = self._unvisited, ()
            return edges
        return [edge for edge in super().outdated_edges(window) if edge in self.visits]

    def replace(self, edge: int, type: str, recollection: CachedVisit) -> None:
        """Replace what a vertex of some type, behind an edge, was known to offer."""
        before = self.drop(edge)
        if before is not None and before.visit is not None and before.candidate is not None:
            for loose, pool in before.visit.available.items():
                self._writable_pool(loose).remove(edge, pool)
            self._writable_pool(type).remove(edge, before.candidate)
        self.store(edge, recollection)
        if recollection.visit is not None and recollection.candidate is not None:
            for loose, pool in recollection.visit.available.items():
                self._writable_pool(loose).add(edge, pool)
            self._writable_pool(type).add(edge, recollection.candidate)

    def _writable_pool(self, type: str) -> RankedPool:
        """Return the pool of a type, to be changed."""
        pool = self._pools.get(type)
        if pool is None or type in self._shared:
            pool = self._pools[type] = RankedPool(self._order) if pool is None else pool.copy()
            self._shared.discard(type)
        return pool

    def pools(self) -> Pools:
        """Return what all vertices offer, to be kept by whoever asks."""
        self._shared.update(self._pools)
        return {type: pool for type, pool in self._pools.items() if pool}


class QueueCache(EdgeCache):
    """A board for walks that end when there is enough: whom to ask, and in which order."""

    __slots__ = ("_places", "_view", "candidate_edges")

    def __init__(self, changes: Mapping[int, int], edges: Iterable[int], outline: SubsystemView) -> None:
        super().__init__(changes)
        self._view = outline
        self._places = {edge: outline.sort_key(edge) for edge in edges}
        #: All edges, but for those behind which is nothing for these walks, in the order of their places.
        self.candidate_edges: list[EdgeSortKey] = sorted(self._places.values())

    def refresh(self, window: MatchWindow) -> None:
        """Forget what does not hold any more, or not in a window; there may be something."""
        for edge in self.outdated_edges(window):
            if edge in self._places:
                self.drop(edge)
                self.exclude(edge)
                self._places[edge] = self._view.sort_key(edge)
                insort(self.candidate_edges, self._places[edge])

    def exclude(self, edge: int) -> None:
        """Do not look behind an edge until something changes there."""
        place = self._places[edge]
        index = bisect_left(self.candidate_edges, place)
        if index < len(self.candidate_edges) and self.candidate_edges[index] == place:
            del self.candidate_edges[index]
