"""Whose request is next: one thread answers all clients, and none may take it for itself.

While there is time, a request is answered as soon as it has come. Once the clients together have used up a slice of
time, the others have to wait until the event loop has looked at all sockets again, and then whoever has had least goes
first: start-time fair queueing (Goyal, Vin, Cheng 1996; Kubernetes shares out its seats likewise, API priority and
fairness). A connection that has been quiet begins where the one being served is and before those who are there already,
so its first request passes those of clients that ask without a pause, however many of them there are.
"""

from __future__ import annotations

import heapq
from asyncio import AbstractEventLoop
from typing import Protocol

#: How long requests are answered before the event loop looks at the sockets again. A new client is looked at some ten
#: times before its first request is there (accepted, heard, greeted in TLS), so it waits ten times as long.
_SLICE_S = 0.002


class Asking(Protocol):
    """Who has requests to be answered."""

    #: How much of the shared time it has had; see `Turns`.
    served_until: float

    @property
    def has_work(self) -> bool:
        """Whether a request can be answered now."""

    def proceed(self) -> None:
        """Answer one."""


class Turns:
    """Lets everybody with requests go on, one request at a time."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        #: Those that wait, by what they have had; then those who were quiet first, and then by when they came.
        self._waiting: list[tuple[float, bool, int, Asking]] = []
        self._number = 0
        #: How far whoever was served last had come: who asks now begins there, and not in the past.
        self._level = 0.0
        #: How much of the slice is used up; once all of it is, it begins anew when the event loop has come round.
        self._used_s = 0.0
        self._is_booked = False

    def ask(self, asking: Asking) -> None:
        """Let `asking` go on: now, or when it is its turn."""
        if self._waiting or self._used_s > _SLICE_S:
            self._queue(asking)
        else:
            self._serve(asking, max(asking.served_until, self._level))

    def _queue(self, asking: Asking) -> None:
        self._number += 1
        was_quiet = asking.served_until < self._level
        level = self._level if was_quiet else asking.served_until
        heapq.heappush(self._waiting, (level, not was_quiet, self._number, asking))
        self._book()

    def _serve(self, asking: Asking, level: float) -> None:
        began = self._loop.time()
        asking.proceed()
        took = self._loop.time() - began
        self._level = level
        asking.served_until = level + took
        self._used_s += took
        if self._used_s > _SLICE_S:
            self._book()
        if asking.has_work:
            self._queue(asking)

    def _book(self) -> None:
        if not self._is_booked:
            self._is_booked = True
            self._loop.call_soon(self._come_round)

    def _come_round(self) -> None:
        self._is_booked = False
        self._used_s = 0.0
        while self._waiting and self._used_s <= _SLICE_S:
            level, _, _, asking = heapq.heappop(self._waiting)
            if asking.has_work:
                self._serve(asking, level)
        if self._waiting:
            self._book()
