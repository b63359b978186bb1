"""Caches of what walks found, by request and place, as long as it is valid.

In a cluster of a thousand nodes, a job changes a few of them; the others are unchanged since the last job.
"""

from __future__ import annotations

from batkube.graph.accounting.ledger import Ledger
from batkube.graph.requests.compiled import RequestLevel
from batkube.graph.requests.constraints import Constraint
from batkube.graph.traversal.candidates import MatchWindow, VisitResult
from batkube.graph.traversal.edge_caches import ANY_DURATION, FOREVER, NEVER, CachedVisit, PoolCache, QueueCache
from batkube.graph.traversal.match_policy import Candidate, ScoreOrder
from batkube.graph.traversal.subsystem_view import SubsystemView

#: The maximum number of cache keys. Beyond it, all caches are cleared.
_KEYS_MAX = 500
#: A vertex with more jobs is visited every time, because it changes all the time anyway.
_JOBS_MAX = 200

#: The requests; whether nothing matched above, whether exclusive, whether the match is for now, and
#: whether it may use vertices that are down; and the constraint.
CacheKey = tuple[RequestLevel, bool, bool, bool, bool, Constraint | None]
#: A vertex, and the type of the children to visit; empty for all.
SearchPoint = tuple[int, str]


class WalkCache:
    """Edge caches by key and search point."""

    def __init__(self, view: SubsystemView, ledger: Ledger) -> None:
        self._view = view
        self._ledger = ledger
        self._pool_caches: dict[CacheKey, dict[SearchPoint, PoolCache]] = {}
        self._queue_caches: dict[CacheKey, dict[SearchPoint, QueueCache]] = {}

    def clear(self) -> None:
        """Remove all caches."""
        self._pool_caches.clear()
        self._queue_caches.clear()
        self._ledger.stop_tracking()

    def pool_cache(self, key: CacheKey, point: SearchPoint, order: ScoreOrder) -> PoolCache:
        """Return the cache of a search point for walks that visit all children."""
        if len(self._pool_caches) > _KEYS_MAX:
            self.clear()
        caches = self._pool_caches.setdefault(key, {})
        cache = caches.get(point)
        if cache is None:
            edges = self._view.edges_down(*point)
            cache = caches[point] = PoolCache(self._ledger.track_changes_below(point[0]), edges, order)
        return cache

    def queue_cache(self, key: CacheKey, point: SearchPoint) -> QueueCache:
        """Return the cache of a search point for walks that stop early."""
        if len(self._queue_caches) > _KEYS_MAX:
            self.clear()
        caches = self._queue_caches.setdefault(key, {})
        cache = caches.get(point)
        if cache is None:
            edges = self._view.edges_down(*point)
            cache = caches[point] = QueueCache(self._ledger.track_changes_below(point[0]), edges, self._view)
        return cache

    def cached_visit(
        self, vertex: int, window: MatchWindow, visit: VisitResult | None, candidate: Candidate | None
    ) -> CachedVisit:
        """Return what a vertex offered in a window, with the time for which it is valid."""
        since, until, duration = window.start, window.start + 1, window.duration
        entry = self._ledger.entries.get(vertex)
        if entry is None:
            since, until, duration = NEVER, FOREVER, ANY_DURATION
        elif len(entry.jobs.spans) > _JOBS_MAX:
            until = window.start
        elif not entry.has_uncounted_jobs:
            start = max((span.start for span in entry.jobs.spans.values()), default=NEVER)
            end = min((span.end for span in entry.jobs.spans.values()), default=FOREVER)
            if start <= window.start < end:
                since, until, duration = start, end, ANY_DURATION
        return CachedVisit(since, until, duration, visit, candidate)
