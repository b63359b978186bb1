"""What walks learned of subtrees, to be used again while it holds.

What a vertex offers for some wishes depends on its subtree alone, and on the window. As long as the vertex has the same
stamp, nothing in its subtree changed. And if all jobs that touch it are there at the beginning of the window, none
begins later: what is free in the window is then what is free at its beginning, however long it is. So what was learned
holds for every window that begins between the last of their starts and the first of their ends. Where a job is still
to come, it holds for the very same window only.

On a cluster of a thousand nodes a job touches a few, and all others are as they were when the last job came by.
"""

from __future__ import annotations

from typing import NamedTuple

from batkube.graph.candidates import MatchWindow, Visit
from batkube.graph.constraints import Constraint
from batkube.graph.ledger import Ledger
from batkube.graph.match_policy import Candidate
from batkube.graph.wishes import WishList

#: How many different questions are remembered; then all are forgotten.
_QUESTIONS_MAX = 500
#: A vertex that more jobs touch is asked anew each time: it changes all the time anyway.
_JOBS_MAX = 200
ANY_DURATION = -1
_NEVER = -1
_FOREVER = 2**63


class Recollection(NamedTuple):
    """What a vertex offered, as a visit and as a candidate; None if it did not do. With the bounds of its validity."""

    stamp: int
    since: int
    until: int
    duration: int
    visit: Visit | None
    candidate: Candidate | None

    def holds(self, stamp: int, start: int, duration: int) -> bool:
        """Tell whether it is still so, and so in a window."""
        return self.stamp == stamp and self.since <= start < self.until and self.duration in (ANY_DURATION, duration)


Recollections = dict[int, Recollection]
Question = tuple[WishList, bool, bool, bool, bool, Constraint | None]


class WalkMemory:
    """Recollections by question: for which wishes, and under which rules."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._questions: dict[Question, Recollections] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._questions.clear()

    def of(self, question: Question) -> Recollections:
        """Return what is remembered for a question, by vertex; to be added to."""
        recollections = self._questions.get(question)
        if recollections is None:
            if len(self._questions) >= _QUESTIONS_MAX:
                self._questions.clear()
            recollections = self._questions[question] = {}
        return recollections

    def keep(
        self,
        recollections: Recollections,
        vertex: int,
        window: MatchWindow,
        visit: Visit | None,
        candidate: Candidate | None,
    ) -> Recollection:
        """Remember what a vertex offered in a window, for as many windows as it holds for."""
        since, until, duration = window.start, window.start + 1, window.duration
        page = self._ledger.pages.get(vertex)
        stamp = self._ledger.stamp(vertex)
        if page is None:
            since, until, duration = _NEVER, _FOREVER, ANY_DURATION
        elif len(page.jobs.spans) > _JOBS_MAX:
            stamp = _NEVER
        elif not page.is_blurred:
            start = max((span.start for span in page.jobs.spans.values()), default=_NEVER)
            end = min((span.end for span in page.jobs.spans.values()), default=_FOREVER)
            if start <= window.start < end:
                since, until, duration = start, end, ANY_DURATION
        recollection = Recollection(stamp, since, until, duration, visit, candidate)
        recollections[vertex] = recollection
        return recollection
