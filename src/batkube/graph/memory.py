"""What walks learned of subtrees, to be used again while it holds: boards, by question.

On a cluster of a thousand nodes a job touches a few, and all others are as they were when the last job came by.
"""

from __future__ import annotations

from batkube.graph.boards import ANY_DURATION, FOREVER, NEVER, PoolBoard, QueueBoard, Recollection
from batkube.graph.candidates import MatchWindow, Visit
from batkube.graph.constraints import Constraint
from batkube.graph.ledger import Ledger
from batkube.graph.match_policy import Candidate, ScoreOrder
from batkube.graph.outline import Outline
from batkube.graph.wishes import WishList

#: How many different questions are remembered; then all are forgotten.
_QUESTIONS_MAX = 500
#: A vertex that more jobs touch is asked anew each time: it changes all the time anyway.
_JOBS_MAX = 200

#: For which wishes, and under which rules: pristine, exclusive, for now, whatever is down; and the constraint.
Question = tuple[WishList, bool, bool, bool, bool, Constraint | None]
#: A vertex, and the type of what is looked for right below it; none for all.
Place = tuple[int, str]


class WalkMemory:
    """Boards by question and place."""

    def __init__(self, outline: Outline, ledger: Ledger) -> None:
        self._outline = outline
        self._ledger = ledger
        self._pool_boards: dict[Question, dict[Place, PoolBoard]] = {}
        self._queue_boards: dict[Question, dict[Place, QueueBoard]] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._pool_boards.clear()
        self._queue_boards.clear()
        self._ledger.stop_noting()

    def pool_board(self, question: Question, place: Place, order: ScoreOrder) -> PoolBoard:
        """Return the board of a place for walks that look at everything."""
        if len(self._pool_boards) > _QUESTIONS_MAX:
            self.clear()
        boards = self._pool_boards.setdefault(question, {})
        board = boards.get(place)
        if board is None:
            edges = self._outline.down(*place)
            board = boards[place] = PoolBoard(self._ledger.changes_below(place[0]), edges, order)
        return board

    def queue_board(self, question: Question, place: Place) -> QueueBoard:
        """Return the board of a place for walks that end when there is enough."""
        if len(self._queue_boards) > _QUESTIONS_MAX:
            self.clear()
        boards = self._queue_boards.setdefault(question, {})
        board = boards.get(place)
        if board is None:
            edges = self._outline.down(*place)
            board = boards[place] = QueueBoard(self._ledger.changes_below(place[0]), edges, self._outline)
        return board

    def recollection(
        self, vertex: int, window: MatchWindow, visit: Visit | None, candidate: Candidate | None
    ) -> Recollection:
        """Return what a vertex offered in a window, for as many windows as it holds for."""
        since, until, duration = window.start, window.start + 1, window.duration
        page = self._ledger.pages.get(vertex)
        if page is None:
            since, until, duration = NEVER, FOREVER, ANY_DURATION
        elif len(page.jobs.spans) > _JOBS_MAX:
            until = window.start
        elif not page.is_blurred:
            start = max((span.start for span in page.jobs.spans.values()), default=NEVER)
            end = min((span.end for span in page.jobs.spans.values()), default=FOREVER)
            if start <= window.start < end:
                since, until, duration = start, end, ANY_DURATION
        return Recollection(since, until, duration, visit, candidate)
