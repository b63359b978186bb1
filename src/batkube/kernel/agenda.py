"""Queue of future events, with a total order for events that are due at the same instant.

The order is the key `(at, rank, number)`: the earlier instant first, then the lower `Rank`, then the one booked first.
Changing the order of `Rank` changes results and belongs in the changelog.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Callable
from typing import NamedTuple

from batkube.kernel.errors import Bug, RunFailed
from batkube.kernel.instants import LATEST_NS, Instant, human_duration

Action = Callable[[Instant], None]


#: Cancelled appointments may stay in the heap up to this number, however small the heap is.
_MIN_CANCELLED = 64


class Rank(enum.IntEnum):
    """Order of appointments that are due at the same instant. Changing it changes results."""

    FINISH = 0  # work ends and frees its resources
    TIMELINE = 1  # nodes fail, recover or are cordoned
    START = 2  # containers start
    SUBMIT = 3  # jobs are submitted
    RECONCILE = 4  # controllers reconcile
    WAKE = 5  # schedulers run last, once, and see all changes of this instant


class Appointment(NamedTuple):
    """One entry of the agenda; ordered by its first three fields, which together are unique."""

    at: Instant
    rank: Rank
    number: int
    action: Action


class Agenda:
    """Appointments that are still to come."""

    def __init__(self) -> None:
        #: A heap; its smallest entry is the next appointment, unless it was cancelled.
        self._heap: list[Appointment] = []
        #: Numbers of cancelled appointments that are still in the heap.
        self._cancelled: set[int] = set()
        #: Numbers of routine appointments, such as periodic timers: they do not keep a run alive.
        self._routine: set[int] = set()
        self._booked = 0
        #: Called with the instant of every booking: a driver that sleeps until the next appointment may have to wake
        #: earlier.
        self.on_booking: Callable[[Instant], None] | None = None
        self._latest: Instant | None = None
        #: Whether appointments beyond the longest possible run are booked for its last instant instead of failing the
        #: run. Set for served clusters, which have no end.
        self.is_endless = False
        #: Called when an action starts long work; the result tells whether the action should book the rest for the same
        #: instant, because requests wait. Never in runs in virtual time, whose results must not depend on real time.
        self.start_turn: Callable[[], Callable[[], bool]] = lambda: lambda: False

    def book(self, at: Instant, rank: Rank, action: Action, *, is_routine: bool = False) -> int:
        """Book `action(at)`, and return the number of the appointment (for `cancel`).

        A routine appointment does not count as pending work, and cannot be cancelled. Raises RunFailed if `at` is later
        than the longest possible run.
        """
        if self._latest is not None and at < self._latest:
            raise Bug(f"appointment booked at {at} ns, which is before {self._latest} ns, already reached")
        if at > LATEST_NS:
            if not self.is_endless:
                raise RunFailed(
                    "virtual time would pass 292 years, the longest possible run: "
                    f"an event would be due after {human_duration(at)}"
                )
            at = Instant(LATEST_NS)
        number = self._booked
        self._booked = number + 1
        # Appointment(…) takes three times as long; a long trace books a million appointments.
        heapq.heappush(self._heap, tuple.__new__(Appointment, (at, rank, number, action)))
        if is_routine:
            self._routine.add(number)
        if self.on_booking is not None:
            self.on_booking(at)
        return number

    def cancel(self, number: int) -> None:
        """Cancel the appointment `number`, which must not have been executed yet.

        It stays in the heap until it is due or until most of the heap is cancelled. The second condition bounds memory:
        a cancelled end of a pod may lie a year ahead.
        """
        self._cancelled.add(number)
        if len(self._cancelled) > max(_MIN_CANCELLED, len(self._heap) // 2):
            self._heap = [entry for entry in self._heap if entry.number not in self._cancelled]
            heapq.heapify(self._heap)
            self._cancelled.clear()

    @property
    def due(self) -> Instant | None:
        """The instant of the next appointment, or None if there is none."""
        heap = self._heap
        while self._cancelled and heap and heap[0].number in self._cancelled:
            self._cancelled.remove(heapq.heappop(heap).number)
        return heap[0].at if heap else None

    def pop_next(self, until: int = LATEST_NS) -> Appointment | None:
        """Remove and return the next appointment that is due up to `until`, or None if there is none."""
        heap = self._heap
        while heap and heap[0].at <= until:
            appointment = heapq.heappop(heap)
            if self._cancelled and appointment.number in self._cancelled:
                self._cancelled.remove(appointment.number)
                continue
            if self._routine:
                self._routine.discard(appointment.number)
            self._latest = appointment.at
            return appointment
        return None

    def has_rank(self, rank: Rank) -> bool:
        """Return whether an appointment of this rank is pending."""
        return any(entry.rank is rank and entry.number not in self._cancelled for entry in self._heap)

    def __len__(self) -> int:
        return len(self._heap) - len(self._cancelled) - len(self._routine)
