"""Writes of in-process components that were suspended because they need a webhook.

When the webhook has responded, the component is resumed and repeats its write (`cluster.suspension`). A repeated write
is recognized by its place (component, verb and object) and its content; it then finds the webhook's response and the
random values that the webhook has seen. A write with different content every time, such as a timestamp, would never
finish. Its third attempt is therefore queued and carried out as it is (`deferred_writes`), and the next one gets the
result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from batkube.api.requests.statuses import Failure
from batkube.api.requests.webhooks.calls import CallResults, PendingWebhookCalls, WebhookCalls
from batkube.api.requests.webhooks.deferred_writes import (
    DeferredWrites,
    DoWrite,
    ResultT,
    RunInBackground,
    WriteTarget,
)
from batkube.cluster.store import KubeObject
from batkube.cluster.suspension import Resume, Suspended
from batkube.kernel.instants import Instant

#: How many suspended writes are kept. Some are never repeated, since their object was deleted meanwhile.
_MAX_INTERRUPTED = 2048
_MOST_ATTEMPTS = 2


class _InterruptedWrite:
    """One suspended write."""

    def __init__(self, content: bytes, attempts: int) -> None:
        self.content = content
        #: How many writes of this place were suspended in a row, each with different content.
        self.attempts = attempts
        self.responses: CallResults = {}
        #: Callbacks that resume the component; None once the responses have arrived.
        self.waiters: list[Resume] | None = []
        #: The failure and the result of a write that was queued and is done.
        self.outcome: tuple[Failure | None, Any] | None = None


class InterruptedWrites:
    """The suspended writes of one server."""

    def __init__(
        self,
        calls: WebhookCalls,
        run_in_background: RunInBackground,
        deferred: DeferredWrites,
        now: Callable[[], Instant],
    ) -> None:
        self._webhook_calls = calls
        self._run_in_background = run_in_background
        self._deferred_writes = deferred
        self._now = now
        #: By component and target.
        self._writes: dict[Hashable, _InterruptedWrite] = {}

    def run(
        self, component: str, target: WriteTarget, content: KubeObject, write: DoWrite[ResultT], now: Instant
    ) -> ResultT:
        """Carry out a write; raises Failure, or Suspended while its webhooks are being called."""
        place = component, target
        earlier = self._writes.get(place)
        if earlier is not None and earlier.waiters is not None:
            raise Suspended(earlier.waiters.append)
        if earlier is not None and earlier.outcome is not None:
            del self._writes[place]
            failure, result = earlier.outcome
            if failure is not None:
                raise failure
            return result  # type: ignore[no-any-return]
        is_repeated = earlier is not None and earlier.content == _digest(content)
        responses = earlier.responses if earlier is not None and is_repeated else {}
        try:
            with self._webhook_calls.component_request(responses):
                result = write(now)
        except PendingWebhookCalls as pending:
            attempts = 0 if earlier is None else earlier.attempts - is_repeated
            interrupted = _InterruptedWrite(_digest(content), attempts + 1)
            interrupted.responses = responses
            self._add(place, interrupted)
            if attempts < _MOST_ATTEMPTS:
                self._run_in_background(pending.calls, lambda: self._resume(interrupted))
            else:
                self._deferred_writes.add(target, write, lambda *outcome: self._resume(interrupted, outcome))
            assert interrupted.waiters is not None
            raise Suspended(interrupted.waiters.append) from None
        except Failure:
            self._writes.pop(place, None)
            raise
        self._writes.pop(place, None)
        return result

    def _add(self, place: Hashable, interrupted: _InterruptedWrite) -> None:
        self._writes[place] = interrupted
        while len(self._writes) > _MAX_INTERRUPTED:
            del self._writes[next(iter(self._writes))]

    def _resume(self, interrupted: _InterruptedWrite, outcome: tuple[Failure | None, Any] | None = None) -> None:
        waiters, interrupted.waiters, interrupted.outcome = interrupted.waiters, None, outcome
        for resume in waiters or ():
            resume(self._now())


def _digest(content: KubeObject) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(content)).digest()
