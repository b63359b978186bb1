"""Fair queuing of requests: one thread serves all clients, and no client can monopolize it.

A request is handled as soon as it arrives until the current time slice is used up. Further requests then wait until the
event loop has polled all sockets, and are handled in the order of start-time fair queuing (Goyal, Vin, Cheng 1996;
Kubernetes' API priority and fairness works likewise: apiserver/pkg/util/flowcontrol/fairqueuing/queueset).

Time is shared on two levels: between clients, identified by their token, and between the connections of a client. A
client is therefore not delayed by another client's thousand connections, and hardly by a thousand of its own. A client
that was idle starts at the current virtual time, ahead of those that are already queued there.
"""

from __future__ import annotations

import heapq
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

#: How long requests are handled before the event loop polls the sockets again, which takes some time itself. A new
#: client needs some ten polls until its first request has arrived (accept, first bytes, TLS handshake), so slices are
#: shorter while there are new clients.
_SLICE_S = 0.004
_SHORT_SLICE_S = 0.001
#: How many clients are remembered, not counting those with queued requests.
_MAX_CLIENTS = 1000


def assume_newcomers() -> bool:
    """Return True: without better knowledge, assume that there are new clients."""
    return True


class QueuedFlow(Protocol):
    """A client or connection that competes for time."""

    #: The virtual finish time of its last request; see `FlowQueue`.
    virtual_finish_s: float


class RequestSource(QueuedFlow, Protocol):
    """A connection with requests."""

    @property
    def client_key(self) -> str:
        """Identifies the client; connections of one client share its time."""

    @property
    def has_work(self) -> bool:
        """Whether a request can be handled now."""

    def process_next(self) -> None:
        """Handle one request."""


_Flow = TypeVar("_Flow", bound=QueuedFlow)


class FlowQueue(Generic[_Flow]):
    """A queue of flows, ordered by virtual start time: the one that has been served least comes first."""

    def __init__(self) -> None:
        #: A heap by virtual start time; ties put flows that were idle first, then go by arrival.
        self._waiting: list[tuple[float, bool, int, _Flow]] = []
        self._sequence = 0
        #: The virtual start time of the flow served last. Idle flows restart here, so they accumulate no credit.
        self.virtual_time_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def push(self, flow: _Flow) -> None:
        """Enqueue a flow."""
        self._sequence += 1
        was_idle = flow.virtual_finish_s < self.virtual_time_s
        start_s = self.virtual_time_s if was_idle else flow.virtual_finish_s
        heapq.heappush(self._waiting, (start_s, not was_idle, self._sequence, flow))

    def pop(self) -> _Flow:
        """Remove and return the next flow."""
        return heapq.heappop(self._waiting)[3]

    def charge(self, flow: _Flow, took_s: float) -> None:
        """Record that a flow was served for `took_s`."""
        self.virtual_time_s = max(flow.virtual_finish_s, self.virtual_time_s)
        flow.virtual_finish_s = self.virtual_time_s + took_s


class _ClientFlow(FlowQueue[RequestSource]):
    """The queued connections of one client, which is itself a flow among the clients."""

    def __init__(self) -> None:
        super().__init__()
        self.virtual_finish_s = 0.0
        #: Whether it is in the queue of clients.
        self.is_queued = False


class FairQueue:
    """Handles the requests of all connections, one at a time, in fair order."""

    def __init__(self, loop: AbstractEventLoop, has_newcomers: Callable[[], bool] = assume_newcomers) -> None:
        """`has_newcomers` returns whether there are connections that have not sent their first request yet."""
        self._loop = loop
        self._has_newcomers = has_newcomers
        self._time = loop.time
        self._waiting: FlowQueue[_ClientFlow] = FlowQueue()
        self._clients: dict[str, _ClientFlow] = {}
        #: Number of requests handled so far.
        self.answered_requests = 0
        #: How much of the current slice is used up. A new slice starts in the next iteration of the event loop.
        self._used_s = 0.0
        #: When the last request was completed.
        self._last_ended_s = 0.0
        #: Whether `_run_round` is scheduled, because the slice is used up or flows are queued.
        self._is_round_scheduled = False

    def submit(self, source: RequestSource) -> None:
        """Handle a request of `source` now if the slice allows it, else enqueue the source."""
        if not self._is_round_scheduled:
            self._process_request(source)
            # The first condition repeats part of the second; it is a fast path, since most requests are short.
            if self._used_s > _SHORT_SLICE_S and self._is_slice_used_up:
                self._schedule_round()
            if not source.has_work:
                return
        client = self._clients.get(source.client_key) or self._new_client(source.client_key)
        client.push(source)
        self._queue_client(client)

    def _new_client(self, name: str) -> _ClientFlow:
        if len(self._clients) >= _MAX_CLIENTS:
            # Clients can make up tokens, so forget idle ones; they restart at the current virtual time anyway.
            self._clients = {key: client for key, client in self._clients.items() if client.is_queued}
        return self._clients.setdefault(name, _ClientFlow())

    @property
    def _is_slice_used_up(self) -> bool:
        return self._used_s > _SHORT_SLICE_S and (self._used_s > _SLICE_S or self._has_newcomers())

    def _process_request(self, source: RequestSource) -> float:
        """Handle a request of `source`, and return how long it took."""
        began = self._time()
        source.process_next()
        ended = self._time()
        # The time since the last request counts as time that the event loop had for polling.
        used_s = self._used_s - (began - self._last_ended_s)
        self._used_s = (used_s if used_s > 0 else 0.0) + (ended - began)
        self._last_ended_s = ended
        self.answered_requests += 1
        return ended - began

    def _queue_client(self, client: _ClientFlow) -> None:
        """Enqueue a client that has queued connections."""
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
            source = client.pop()
            if source.has_work:
                took_s = self._process_request(source)
                client.charge(source, took_s)
                self._waiting.charge(client, took_s)
                if source.has_work:
                    client.push(source)
            self._queue_client(client)
        if self._waiting:
            self._schedule_round()
