"""Writes of in-process components that were suspended because they need a webhook.

When the webhook has responded, the component is resumed and repeats its write (`cluster.suspension`). A repeated write
is recognized by its place (component, verb and object) and its content; it then finds the webhook's response and the
random values that the webhook has seen. A write with different content every time, such as a timestamp, would never
finish; its third attempt therefore blocks until the webhook responds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from batkube.api.requests.webhooks.calls import CallResults
from batkube.cluster.suspension import Resume, Suspended
from batkube.kernel.instants import Instant

Work = Callable[[], None]
RunInBackground = Callable[[Sequence[Work], Work], None]
"""Runs functions concurrently in other threads, and calls a callback when all are done."""

#: How many suspended writes are kept. Some are never repeated, since their object was deleted meanwhile.
_MAX_INTERRUPTED = 256
_MOST_ATTEMPTS = 2


class _InterruptedWrite:
    """One suspended write."""

    def __init__(self, content: Hashable, attempts: int) -> None:
        self.content = content
        #: How many writes of this place were suspended in a row, each with different content.
        self.attempts = attempts
        self.responses: CallResults = {}
        #: Callbacks that resume the component; None once the responses have arrived.
        self.waiters: list[Resume] | None = None


class InterruptedWrites:
    """The suspended writes of one server."""

    def __init__(self, run_in_background: RunInBackground, now: Callable[[], Instant]) -> None:
        self._run_in_background = run_in_background
        self._now = now
        self._writes: dict[Hashable, _InterruptedWrite] = {}

    def responses_for(self, place: Hashable, content: Hashable) -> CallResults | None:
        """Return the responses for a write so far; None if the write must block.

        Raises Suspended while its webhooks are being called.
        """
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

    def start_calls(self, place: Hashable, calls: Sequence[Work]) -> Suspended:
        """Call the webhooks of a write in the background; return the exception that suspends it."""
        write = self._writes[place]
        waiting: list[Resume] = []
        write.waiters = waiting

        def resume_waiters() -> None:
            write.waiters = None
            for resume in waiting:
                resume(self._now())

        self._run_in_background(calls, resume_waiters)
        return Suspended(waiting.append)

    def forget(self, place: Hashable) -> None:
        """Forget a write that has succeeded or failed."""
        self._writes.pop(place, None)
