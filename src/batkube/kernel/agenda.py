"""What is due, and who goes first when several things are due at one instant.

The order is total and visible in the key `(at, rank, number)`: earlier first; at one instant by `Rank`; within a
rank in the order of booking. Changing `Rank`'s order changes results, and is said so in the changelog.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Callable
from typing import NamedTuple

from batkube.kernel.errors import Bug, RunFailed
from batkube.kernel.instants import LATEST_NS, Instant, human_duration

Action = Callable[[Instant], None]


#: So many appointments may be cancelled and in the heap all the same, however few others there are.
_MIN_CANCELLED = 64


class Rank(enum.IntEnum):
    """Who goes first at one instant. Changing this order changes results."""

    FINISH = 0  # work ends and frees its resources before anyone asks for them
    TIMELINE = 1  # the world changes: nodes fail, come back, are cordoned; work that ended in time has ended
    START = 2  # containers that were on their way come up
    SUBMIT = 3  # new work arrives
    RECONCILE = 4  # controllers answer what happened
    WAKE = 5  # and then schedulers look at the world, once, with all of it before them


class Appointment(NamedTuple):
    """One entry of the agenda; compares by its first three fields, which are unique together."""

    at: Instant
    rank: Rank
    number: int
    action: Action


class Agenda:
    """The appointments not yet kept."""

    def __init__(self) -> None:
        #: A heap; its smallest entry is the next appointment, unless it was cancelled.
        self._heap: list[Appointment] = []
        #: Numbers of the appointments that were cancelled and are still in the heap.
        self._cancelled: set[int] = set()
        #: Numbers of those that come round for ever, whatever else happens.
        self._routine: set[int] = set()
        self._booked = 0
        #: Told of every booking, so that whoever sleeps until the next appointment can wake earlier.
        self.on_booking: Callable[[Instant], None] | None = None
        self._latest: Instant | None = None
        #: Whether what lies beyond the longest run is booked for its last instant, as in a cluster that is served
        #: without an end; else it fails the run.
        self.is_endless = False

    def book(self, at: Instant, rank: Rank, action: Action, *, is_routine: bool = False) -> int:
        """Arrange for `action(at)`, and return the appointment's number (for `cancel`).

        What `is_routine` does not count as something to wait for, and cannot be cancelled.
        Raises RunFailed when `at` lies beyond what a run can last.
        """
        if self._latest is not None and at < self._latest:
            raise Bug(f"appointment booked at {at} ns, which is before {self._latest} ns, already reached")
        if at > LATEST_NS and self.is_endless:
            at = Instant(LATEST_NS)
        elif at > LATEST_NS:
            raise RunFailed(
                f"virtual time would pass 292 years, the most a run can last: something would be due after {human_duration(at)}"
            )
        number = self._booked
        self._booked += 1
        # Not `Appointment(…)`, which takes three times as long: a long trace makes a million of them.
        heapq.heappush(self._heap, tuple.__new__(Appointment, (at, rank, number, action)))
        if is_routine:
            self._routine.add(number)
        if self.on_booking is not None:
            self.on_booking(at)
        return number

    def cancel(self, number: int) -> None:
        """Drop the appointment `number`, which must not have been kept yet.

        It goes when it would have been due, or when most of the heap is cancelled: what it was for, such as a pod that
        would have run for a year, must not stay as long as that.
        """
        self._cancelled.add(number)
        if len(self._cancelled) > max(_MIN_CANCELLED, len(self._heap) // 2):
            self._heap = [entry for entry in self._heap if entry.number not in self._cancelled]
            heapq.heapify(self._heap)
            self._cancelled.clear()

    @property
    def due(self) -> Instant | None:
        """When the next appointment is, or None when there is none."""
        heap = self._heap
        while self._cancelled and heap and heap[0].number in self._cancelled:
            self._cancelled.remove(heapq.heappop(heap).number)
        return heap[0].at if heap else None

    def pop_next(self, until: int = LATEST_NS) -> Appointment | None:
        """Take out and return the next appointment up to `until`, or None when there is none."""
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
        """Return whether anything of this rank is to come."""
        return any(entry.rank is rank and entry.number not in self._cancelled for entry in self._heap)

    def __len__(self) -> int:
        return len(self._heap) - len(self._cancelled) - len(self._routine)
