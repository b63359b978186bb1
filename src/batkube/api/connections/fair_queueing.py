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


def somebody_may_come() -> bool:
    """Return True: where nobody knows of newcomers, there may be some."""
    return True


class Sharer(Protocol):
    """Who gets a share of the time."""

    #: How much it has had; see `Shares`.
    served_until: float


class Asking(Sharer, Protocol):
    """A connection with requests to be answered."""

    @property
    def client(self) -> str:
        """Who asks."""

    @property
    def has_work(self) -> bool:
        """Whether a request can be answered now."""

    def proceed(self) -> None:
        """Answer one request."""


_Sharer = TypeVar("_Sharer", bound=Sharer)


class Shares(Generic[_Sharer]):
    """Those that wait for their share of the time, whoever has had least first."""

    def __init__(self) -> None:
        #: By what they have had; then those who were quiet first, and then by when they came.
        self._waiting: list[tuple[float, bool, int, _Sharer]] = []
        self._number = 0
        #: How far whoever was served last had come: who asks now begins there, and not in the past.
        self.level = 0.0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def queue(self, sharer: _Sharer) -> None:
        """Let `sharer` wait."""
        self._number += 1
        was_quiet = sharer.served_until < self.level
        level = self.level if was_quiet else sharer.served_until
        heapq.heappush(self._waiting, (level, not was_quiet, self._number, sharer))

    def next(self) -> _Sharer:
        """Return whose turn it is."""
        return heapq.heappop(self._waiting)[3]

    def charge(self, sharer: _Sharer, took_s: float) -> None:
        """Take note that `sharer` was served for so long."""
        self.level = max(sharer.served_until, self.level)
        sharer.served_until = self.level + took_s


class _Client(Shares[Asking]):
    """The connections of one client, and what they have had together."""

    def __init__(self) -> None:
        super().__init__()
        self.served_until = 0.0
        #: Whether it waits for its turn among the clients.
        self.is_waiting = False


class FairQueue:
    """Lets everybody with requests go on, one request at a time."""

    def __init__(self, loop: AbstractEventLoop, has_newcomers: Callable[[], bool] = somebody_may_come) -> None:
        """`has_newcomers` tells whether clients are on the way to their first request."""
        self._loop = loop
        self._has_newcomers = has_newcomers
        self._time = loop.time
        self._waiting: Shares[_Client] = Shares()
        self._clients: dict[str, _Client] = {}
        #: How many requests were answered, ever.
        self.answered = 0
        #: How much of the slice is used up; once all of it is, it begins anew when the event loop has come round.
        self._used_s = 0.0
        #: When the last request was answered.
        self._ended = 0.0
        #: Whether that is waited for: the slice is used up, or somebody waits.
        self._is_booked = False

    def ask(self, asking: Asking) -> None:
        """Let `asking` go on: now, or when it is its turn."""
        if not self._is_booked:
            self._serve(asking)
            # Asked twice: most requests take less than any slice.
            if self._used_s > _SHORT_SLICE_S and self._is_used_up:
                self._book()
            if not asking.has_work:
                return
        client = self._clients.get(asking.client) or self._new_client(asking.client)
        client.queue(asking)
        self._line_up(client)

    def _new_client(self, name: str) -> _Client:
        if len(self._clients) >= _MAX_CLIENTS:
            # Anybody can make up tokens. A client that does not wait begins anew, which does no harm.
            self._clients = {known: client for known, client in self._clients.items() if client.is_waiting}
        return self._clients.setdefault(name, _Client())

    @property
    def _is_used_up(self) -> bool:
        return self._used_s > _SHORT_SLICE_S and (self._used_s > _SLICE_S or self._has_newcomers())

    def _serve(self, asking: Asking) -> float:
        """Answer a request of `asking`, and return how long it took."""
        began = self._time()
        asking.proceed()
        ended = self._time()
        # While nobody was served the event loop had time for the others.
        used_s = self._used_s - (began - self._ended)
        self._used_s = (used_s if used_s > 0 else 0.0) + (ended - began)
        self._ended = ended
        self.answered += 1
        return ended - began

    def _line_up(self, client: _Client) -> None:
        """Let `client` wait for its next turn if any of its connections does."""
        if client and not client.is_waiting:
            client.is_waiting = True
            self._waiting.queue(client)
            self._book()

    def _book(self) -> None:
        if not self._is_booked:
            self._is_booked = True
            self._loop.call_soon(self._come_round)

    def _come_round(self) -> None:
        self._is_booked = False
        self._used_s = 0.0
        while self._waiting and not self._is_used_up:
            client = self._waiting.next()
            client.is_waiting = False
            asking = client.next()
            if asking.has_work:
                took_s = self._serve(asking)
                client.charge(asking, took_s)
                self._waiting.charge(client, took_s)
                if asking.has_work:
                    client.queue(asking)
            self._line_up(client)
        if self._waiting:
            self._book()
