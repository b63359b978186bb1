"""Caches of what the children of a vertex offered to walks for the same request, updated on change.

A later walk visits only two kinds of children again: those below which the ledger recorded a
change, and those whose result is not valid in the new window. Its cost depends on the number of
changes, not on the number of vertices.

The result of a vertex is valid from the start of the last job in it to the end of the first, for
windows of any duration: the free units of the window are those at its start. If a job starts later,
the result is valid for exactly one window.
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
    """What a vertex offered, as a visit and as a candidate (None if unusable), and when this is valid."""

    since: int
    until: int
    duration: int
    visit: VisitResult | None
    candidate: Candidate | None

    def is_valid_in(self, window: MatchWindow) -> bool:
        """Return whether the result is valid in a window."""
        return self.since <= window.start < self.until and self.duration in (ANY_DURATION, window.duration)


class EdgeCache:
    """Cached visits by the edge to the vertex."""

    __slots__ = ("_changes", "_ends", "_last_change", "_single_duration", "_starts", "visits")

    def __init__(self, changes: Mapping[int, int]) -> None:
        self.visits: dict[int, CachedVisit] = {}
        #: The ledger's changes, the latest last, and the number of the last one that was handled.
        self._changes = changes
        self._last_change = changes[next(reversed(changes))] if changes else 0
        #: Heaps of the ends and (negated) starts of validity. Entries of replaced visits remain.
        self._ends: list[tuple[int, int]] = []
        self._starts: list[tuple[int, int]] = []
        #: The edges whose visits are valid for one duration only.
        self._single_duration: dict[int, None] = {}

    def store(self, edge: int, cached: CachedVisit) -> None:
        """Store the visit of an edge."""
        self.visits[edge] = cached
        if cached.duration != ANY_DURATION:
            self._single_duration[edge] = None
        if cached.until < FOREVER:
            heapq.heappush(self._ends, (cached.until, edge))
        if cached.since > NEVER:
            heapq.heappush(self._starts, (-cached.since, edge))
        if len(self._ends) + len(self._starts) > 4 * len(self.visits) + 100:
            self._compact()

    def _compact(self) -> None:
        """Rebuild the heaps without the entries of replaced visits."""
        self._ends = [(visit.until, edge) for edge, visit in self.visits.items() if visit.until < FOREVER]
        self._starts = [(-visit.since, edge) for edge, visit in self.visits.items() if visit.since > NEVER]
        heapq.heapify(self._ends)
        heapq.heapify(self._starts)

    def outdated_edges(self, window: MatchWindow) -> Iterable[int]:
        """Return the edges with changes below them since the last call, or with visits invalid in a window."""
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
            cached = self.visits.get(edge)
            if cached is not None and not cached.is_valid_in(window):
                edges[edge] = None
        return edges

    def drop(self, edge: int) -> CachedVisit | None:
        """Remove and return the visit of an edge."""
        self._single_duration.pop(edge, None)
        return self.visits.pop(edge, None)


class PoolCache(EdgeCache):
    """Cache for walks that visit all children: what these offer, in pools."""

    __slots__ = ("_order", "_pools", "_shared", "_unvisited")

    def __init__(self, changes: Mapping[int, int], edges: Iterable[int], order: ScoreOrder) -> None:
        super().__init__(changes)
        self._unvisited: Iterable[int] = edges
        self._order = order
        self._pools: dict[str, RankedPool] = {}
        #: The types whose pools were returned by `pools`. They must be copied before a change.
        self._shared: set[str] = set()

    def outdated_edges(self, window: MatchWindow) -> Iterable[int]:
        """Return the edges to visit; the first call returns all."""
        if self._unvisited:
            edges, self._unvisited = self._unvisited, ()
            return edges
        return [edge for edge in super().outdated_edges(window) if edge in self.visits]

    def replace(self, edge: int, type: str, cached: CachedVisit) -> None:
        """Replace the visit of an edge to a vertex of type `type`."""
        previous = self.drop(edge)
        if previous is not None and previous.visit is not None and previous.candidate is not None:
            for available_type, pool in previous.visit.available.items():
                self._writable_pool(available_type).remove(edge, pool)
            self._writable_pool(type).remove(edge, previous.candidate)
        self.store(edge, cached)
        if cached.visit is not None and cached.candidate is not None:
            for available_type, pool in cached.visit.available.items():
                self._writable_pool(available_type).add(edge, pool)
            self._writable_pool(type).add(edge, cached.candidate)

    def _writable_pool(self, type: str) -> RankedPool:
        """Return the pool of a type, copied if it is shared."""
        pool = self._pools.get(type)
        if pool is None or type in self._shared:
            pool = self._pools[type] = RankedPool(self._order) if pool is None else pool.copy()
            self._shared.discard(type)
        return pool

    def pools(self) -> Pools:
        """Return what all children offer. The pools returned do not change any more."""
        self._shared.update(self._pools)
        return {type: pool for type, pool in self._pools.items() if pool}


class QueueCache(EdgeCache):
    """Cache for walks that stop early: the children to visit, in order."""

    __slots__ = ("_sort_keys", "_view", "candidate_edges")

    def __init__(self, changes: Mapping[int, int], edges: Iterable[int], view: SubsystemView) -> None:
        super().__init__(changes)
        self._view = view
        self._sort_keys = {edge: view.sort_key(edge) for edge in edges}
        #: The sort keys of all edges that may lead to a usable vertex, in order.
        self.candidate_edges: list[EdgeSortKey] = sorted(self._sort_keys.values())

    def refresh(self, window: MatchWindow) -> None:
        """Drop visits that are outdated or not valid in a window; their vertices may be usable again."""
        for edge in self.outdated_edges(window):
            if edge in self._sort_keys:
                self.drop(edge)
                self.exclude(edge)
                self._sort_keys[edge] = self._view.sort_key(edge)
                insort(self.candidate_edges, self._sort_keys[edge])

    def exclude(self, edge: int) -> None:
        """Skip an edge until something changes below it."""
        sort_key = self._sort_keys[edge]
        index = bisect_left(self.candidate_edges, sort_key)
        if index < len(self.candidate_edges) and self.candidate_edges[index] == sort_key:
            del self.candidate_edges[index]
