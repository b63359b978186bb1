"""What walks learned of subtrees, to be used again while it holds: boards, by question.

On a cluster of a thousand nodes a job touches a few, and all others are as they were when the last job came by.
"""

from __future__ import annotations

from batkube.graph.accounting.ledger import Ledger
from batkube.graph.requests.compiled import RequestLevel
from batkube.graph.requests.constraints import Constraint
from batkube.graph.traversal.candidates import MatchWindow, VisitResult
from batkube.graph.traversal.edge_caches import ANY_DURATION, FOREVER, NEVER, CachedVisit, PoolCache, QueueCache
from batkube.graph.traversal.match_policy import Candidate, ScoreOrder
from batkube.graph.traversal.subsystem_view import SubsystemView

#: How many different questions are remembered; then all are forgotten.
_KEYS_MAX = 500
#: A vertex that more jobs touch is asked anew each time: it changes all the time anyway.
_JOBS_MAX = 200

#: For which wishes, and under which rules: pristine, exclusive, for now, whatever is down; and the constraint.
CacheKey = tuple[RequestLevel, bool, bool, bool, bool, Constraint | None]
#: A vertex, and the type of what is looked for right below it; none for all.
SearchPoint = tuple[int, str]


class WalkCache:
    """Boards by question and place."""

    def __init__(self, outline: SubsystemView, ledger: Ledger) -> None:
        self._view = outline
        self._ledger = ledger
        self._pool_caches: dict[CacheKey, dict[SearchPoint, PoolCache]] = {}
        self._queue_caches: dict[CacheKey, dict[SearchPoint, QueueCache]] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._pool_caches.clear()
        self._queue_caches.clear()
        self._ledger.stop_tracking()

    def pool_cache(self, question: CacheKey, place: SearchPoint, order: ScoreOrder) -> PoolCache:
        """Return the board of a place for walks that look at everything."""
        if len(self._pool_caches) > _KEYS_MAX:
            self.clear()
        boards = self._pool_caches.setdefault(question, {})
        board = boards.get(place)
        if board is None:
            edges = self._view.edges_down(*place)
            board = boards[place] = PoolCache(self._ledger.track_changes_below(place[0]), edges, order)
        return board

    def queue_cache(self, question: CacheKey, place: SearchPoint) -> QueueCache:
        """Return the board of a place for walks that end when there is enough."""
        if len(self._queue_caches) > _KEYS_MAX:
            self.clear()
        boards = self._queue_caches.setdefault(question, {})
        board = boards.get(place)
        if board is None:
            edges = self._view.edges_down(*place)
            board = boards[place] = QueueCache(self._ledger.track_changes_below(place[0]), edges, self._view)
        return board

    def cached_visit(
        self, vertex: int, window: MatchWindow, visit: VisitResult | None, candidate: Candidate | None
    ) -> CachedVisit:
        """Return what a vertex offered in a window, for as many windows as it holds for."""
        since, until, duration = window.start, window.start + 1, window.duration
        page = self._ledger.entries.get(vertex)
        if page is None:
            since, until, duration = NEVER, FOREVER, ANY_DURATION
        elif len(page.jobs.spans) > _JOBS_MAX:
            until = window.start
        elif not page.has_uncounted_jobs:
            start = max((span.start for span in page.jobs.spans.values()), default=NEVER)
            end = min((span.end for span in page.jobs.spans.values()), default=FOREVER)
            if start <= window.start < end:
                since, until, duration = start, end, ANY_DURATION
        return CachedVisit(since, until, duration, visit, candidate)
