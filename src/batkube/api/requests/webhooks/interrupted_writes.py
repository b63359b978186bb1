"""Writes of components within the process that were broken off because they need an answer from outside.

A component that is told of the answer makes its write again (`cluster.waiting`). It is the same one if it is of the
same place and says the same: then the answers are at hand, and what was drawn by chance is what was shown outside. One
that says something else each time, such as what time it is, would ask for ever; the third waits for its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from batkube.api.requests.webhooks.calls import CallResults
from batkube.cluster.suspension import Resume, Suspended
from batkube.kernel.instants import Instant

Work = Callable[[], None]
RunInBackground = Callable[[Sequence[Work], Work], None]
"""Does works elsewhere, all at once, and calls somebody when they are done."""

#: Of writes that are never made again, because what they were about is gone, so many are kept.
_MAX_INTERRUPTED = 256
_MOST_ATTEMPTS = 2


class _InterruptedWrite:
    """One write."""

    def __init__(self, content: Hashable, attempts: int) -> None:
        self.content = content
        #: How many writes of this place were broken off in a row, each with a content of its own.
        self.attempts = attempts
        self.responses: CallResults = {}
        #: Who is to be told; None when the answers are there.
        self.waiters: list[Resume] | None = None


class InterruptedWrites:
    """All such writes of one server."""

    def __init__(self, apart: RunInBackground, now: Callable[[], Instant]) -> None:
        self._run_in_background = apart
        self._now = now
        self._writes: dict[Hashable, _InterruptedWrite] = {}

    def responses_for(self, place: Hashable, content: Hashable) -> CallResults | None:
        """Return what a write has been answered so far; None if it has to wait. Raises Waits while it is asked."""
        write = self._writes.get(place)
        if write is None or write.content != content:
            attempts = 0 if write is None else write.attempts
            if attempts >= _MOST_ATTEMPTS:
                self.forget(place)
                return None
            write = self._writes[place] = _InterruptedWrite(content, attempts + 1)
            while len(self._writes) > _MAX_INTERRUPTED:
                del self._writes[next(iter(self._writes))]
        if write.waiters is not None:
            raise Suspended(write.waiters.append)
        return write.responses

    def start_calls(self, place: Hashable, works: Sequence[Work]) -> Suspended:
        """Have the questions of a write put; return what breaks it off."""
        write = self._writes[place]
        waiting: list[Resume] = []
        write.waiters = waiting

        def told() -> None:
            write.waiters = None
            for begin in waiting:
                begin(self._now())

        self._run_in_background(works, told)
        return Suspended(waiting.append)

    def forget(self, place: Hashable) -> None:
        """Forget a write, which has been made or refused."""
        self._writes.pop(place, None)
