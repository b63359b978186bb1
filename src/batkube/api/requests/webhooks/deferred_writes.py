"""Writes that wait for a webhook while the component that requested them continues.

Kubelets and recorders of events have acted already when they write, and cannot act again. In Kubernetes, their writes
wait in goroutines of their own (pkg/kubelet/status/status_manager.go; client-go: tools/record/event.go). Here a write
that needs a webhook is aborted, queued, and repeated when the webhook has responded. The writes to one object are
carried out in their order. Of several queued updates, only the last one counts, as in the kubelet's status manager.
"""

from __future__ import annotations

import functools
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from batkube.api.requests.statuses import Failure
from batkube.api.requests.webhooks.calls import CallResults, PendingWebhookCalls, WebhookCalls
from batkube.cluster.event_recorder import EVENT
from batkube.kernel.instants import Instant

log = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")
DoWrite = Callable[[Instant], ResultT]
"""Carries out a write; may raise PendingWebhookCalls, and is then called again."""
OnDone = Callable[[Failure | None, Any], None]
"""Called with the failure or the result of a write that was queued."""
Work = Callable[[], None]
RunInBackground = Callable[[Sequence[Work], Work], None]
"""Runs functions concurrently in other threads, and calls a callback when all are done."""

#: Events are dropped while so many objects have queued writes (client-go: tools/record/event.go, maxQueuedEvents).
_MAX_QUEUED = 1000


class WriteTarget(NamedTuple):
    """What a write does to which object."""

    storage: str
    key: str
    verb: str
    subresource: str = ""


class _QueuedWrite:
    """A write that waits for a webhook, or for an earlier write to the same object."""

    def __init__(self, target: WriteTarget, write: DoWrite[Any], on_done: OnDone) -> None:
        self.target = target
        self.write = write
        self.on_done = on_done
        self.results: CallResults = {}


class DeferredWrites:
    """The queued writes of one server."""

    def __init__(self, calls: WebhookCalls, run_in_background: RunInBackground, now: Callable[[], Instant]) -> None:
        self._webhook_calls = calls
        self._run_in_background = run_in_background
        self._now = now
        #: By object; the first write of each queue waits for its webhooks.
        self._queues: dict[tuple[str, str], deque[_QueuedWrite]] = {}

    def run(self, target: WriteTarget, write: DoWrite[ResultT], now: Instant, fallback: ResultT) -> ResultT:
        """Carry out a write and return its result, or queue it and return `fallback`; raises Failure."""
        queued = _QueuedWrite(target, write, _ignore)
        if target[:2] in self._queues:
            self._append(queued)
            return fallback
        try:
            with self._webhook_calls.component_request(queued.results):
                return write(now)
        except PendingWebhookCalls as pending:
            if target.storage != EVENT or len(self._queues) < _MAX_QUEUED:
                self._queues[target[:2]] = deque([queued])
                self._run_in_background(pending.calls, functools.partial(self._continue, target[:2]))
            return fallback

    def add(self, target: WriteTarget, write: DoWrite[Any], on_done: OnDone) -> None:
        """Queue a write, which is not carried out before this method returns."""
        queued = _QueuedWrite(target, write, on_done)
        if target[:2] in self._queues:
            self._append(queued)
        else:
            self._queues[target[:2]] = deque([queued])
            self._run_in_background((), functools.partial(self._continue, target[:2]))

    def _append(self, queued: _QueuedWrite) -> None:
        queue = self._queues[queued.target[:2]]
        last = queue[-1]
        if len(queue) > 1 and last.target == queued.target and last.target.verb == "update" and last.on_done is _ignore:
            queue.pop()
        queue.append(queued)

    def _continue(self, object_: tuple[str, str]) -> None:
        """Carry out the queued writes of an object, up to the next one that needs a webhook."""
        queue, now = self._queues[object_], self._now()
        while queue:
            first = queue[0]
            failure, result = None, None
            try:
                with self._webhook_calls.component_request(first.results):
                    result = first.write(now)
            except PendingWebhookCalls as pending:
                self._run_in_background(pending.calls, functools.partial(self._continue, object_))
                return
            except Failure as problem:
                log.debug("a queued write failed: %s: %s", first.target, problem.message)
                failure = problem
            except Exception:
                # A bug, which the event loop reports; the other writes follow.
                queue.popleft()
                self._run_in_background((), functools.partial(self._continue, object_))
                raise
            queue.popleft()
            first.on_done(failure, result)
        del self._queues[object_]


def _ignore(failure: Failure | None, result: object) -> None:
    """Ignore the result: the component did not wait for it."""
