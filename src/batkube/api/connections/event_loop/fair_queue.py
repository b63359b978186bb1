"""Whose request is next: one thread answers all clients, and none may take it for itself.

While there is time, a request is answered as soon as it has come, and nobody counts. Once the clients together have
used up a slice of time, the others have to wait until the event loop has looked at all sockets again, and then whoever
has had least goes first: start-time fair queueing (Goyal, Vin, Cheng 1996; Kubernetes shares out its seats likewise,
API priority and fairness). It is shared out twice: between clients, who are told apart by the token that they show, and
what a client gets between its connections. So a person is not kept waiting by somebody else's thousand connections, and
hardly by a thousand of their own. Whoever has been quiet begins where the one being served is and before those who are
there already.
"""

from __future__ import annotations

import heapq
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

#: How long requests are answered before the event loop looks at the sockets again, which takes a while itself. A new
#: client is looked at some ten times before its first request is there (accepted, heard, greeted in TLS), and would
#: wait ten times as long; so slices are shorter while somebody is on the way.
_SLICE_S = 0.004
_SHORT_SLICE_S = 0.001
#: So many clients are remembered, unless more of them wait.
_MAX_CLIENTS = 1000


def assume_newcomers() -> bool:
    """Return True: where nobody knows of newcomers, there may be some."""
    return True


class QueuedFlow(Protocol):
    """Who gets a share of the time."""

    #: How much it has had; see `FlowQueue`.
    virtual_finish_s: float


class RequestSource(QueuedFlow, Protocol):
    """A connection with requests to be answered."""

    @property
    def client_key(self) -> str:
        """Who asks."""

    @property
    def has_work(self) -> bool:
        """Whether a request can be answered now."""

    def process_next(self) -> None:
        """Answer one request."""


_Flow = TypeVar("_Flow", bound=QueuedFlow)


class FlowQueue(Generic[_Flow]):
    """Those that wait for their share of the time, whoever has had least first."""

    def __init__(self) -> None:
        #: By what they have had; then those who were quiet first, and then by when they came.
        self._waiting: list[tuple[float, bool, int, _Flow]] = []
        self._sequence = 0
        #: How far whoever was served last had come: who asks now begins there, and not in the past.
        self.virtual_time_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def push(self, sharer: _Flow) -> None:
        """Let `sharer` wait."""
        self._sequence += 1
        was_quiet = sharer.virtual_finish_s < self.virtual_time_s
        level = self.virtual_time_s if was_quiet else sharer.virtual_finish_s
        heapq.heappush(self._waiting, (level, not was_quiet, self._sequence, sharer))

    def pop(self) -> _Flow:
        """Return whose turn it is."""
        return heapq.heappop(self._waiting)[3]

    def charge(self, sharer: _Flow, took_s: float) -> None:
        """Take note that `sharer` was served for so long."""
        self.virtual_time_s = max(sharer.virtual_finish_s, self.virtual_time_s)
        sharer.virtual_finish_s = self.virtual_time_s + took_s


class _ClientFlow(FlowQueue[RequestSource]):
    """The connections of one client, and what they have had together."""

    def __init__(self) -> None:
        super().__init__()
        self.virtual_finish_s = 0.0
        #: Whether it waits for its turn among the clients.
        self.is_queued = False


class FairQueue:
    """Lets everybody with requests go on, one request at a time."""

    def __init__(self, loop: AbstractEventLoop, has_newcomers: Callable[[], bool] = assume_newcomers) -> None:
        """`has_newcomers` tells whether clients are on the way to their first request."""
        self._loop = loop
        self._has_newcomers = has_newcomers
        self._time = loop.time
        self._waiting: FlowQueue[_ClientFlow] = FlowQueue()
        self._clients: dict[str, _ClientFlow] = {}
        #: How many requests were answered, ever.
        self.answered_requests = 0
        #: How much of the slice is used up; once all of it is, it begins anew when the event loop has come round.
        self._used_s = 0.0
        #: When the last request was answered.
        self._last_ended_s = 0.0
        #: Whether that is waited for: the slice is used up, or somebody waits.
        self._is_round_scheduled = False

    def submit(self, asking: RequestSource) -> None:
        """Let `asking` go on: now, or when it is its turn."""
        if not self._is_round_scheduled:
            self._process_request(asking)
            # Asked twice: most requests take less than any slice.
            if self._used_s > _SHORT_SLICE_S and self._is_slice_used_up:
                self._schedule_round()
            if not asking.has_work:
                return
        client = self._clients.get(asking.client_key) or self._new_client(asking.client_key)
        client.push(asking)
        self._queue_client(client)

    def _new_client(self, name: str) -> _ClientFlow:
        if len(self._clients) >= _MAX_CLIENTS:
            # Anybody can make up tokens. A client that does not wait begins anew, which does no harm.
            self._clients = {known: client for known, client in self._clients.items() if client.is_queued}
        return self._clients.setdefault(name, _ClientFlow())

    @property
    def _is_slice_used_up(self) -> bool:
        return self._used_s > _SHORT_SLICE_S and (self._used_s > _SLICE_S or self._has_newcomers())

    def _process_request(self, asking: RequestSource) -> float:
        """Answer a request of `asking`, and return how long it took."""
        began = self._time()
        asking.process_next()
        ended = self._time()
        # While nobody was served the event loop had time for the others.
        used_s = self._used_s - (began - self._last_ended_s)
        self._used_s = (used_s if used_s > 0 else 0.0) + (ended - began)
        self._last_ended_s = ended
        self.answered_requests += 1
        return ended - began

    def _queue_client(self, client: _ClientFlow) -> None:
        """Let `client` wait for its next turn if any of its connections does."""
        if client and not client.is_queued:
            client.is_queued = True
            self._waiting.push(client)
            self._schedule_round()

    def _schedule_round(self) -> None:
        if not self._is_round_scheduled:
            self._is_round_scheduled = True
            self._loop.call_soon(self._run_round)

    def _run_round(self) -> None:
        self._is_round_scheduled = False
        self._used_s = 0.0
        while self._waiting and not self._is_slice_used_up:
            client = self._waiting.pop()
            client.is_queued = False
            asking = client.pop()
            if asking.has_work:
                took_s = self._process_request(asking)
                client.charge(asking, took_s)
                self._waiting.charge(client, took_s)
                if asking.has_work:
                    client.push(asking)
            self._queue_client(client)
        if self._waiting:
            self._schedule_round()
