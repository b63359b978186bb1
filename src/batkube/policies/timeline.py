"""What will be free when: the plan of policies that look ahead.

Time is cut into slices, each with the room free throughout it; the last one lasts for ever. Reserving a placement for
a while cuts slices where the while begins and ends, and takes the placement from those between.

A job that needs a room for some length may start as early as possible only where something becomes free, hence at the
beginning of a slice, and it may use what is free in *all* the slices it lasts through: the `&` of their rooms.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Generic, NamedTuple, TypeVar

from batkube.kernel.instants import Duration, Instant, after
from batkube.policies.rooms import Placement, Room
from batkube.workloads.model import Job

RoomT = TypeVar("RoomT", bound=Room)


class Slot(NamedTuple):
    """A placement held from `start` until `end`."""

    start: Instant
    end: Instant
    placement: Placement


class Timeline(Generic[RoomT]):
    """The room over time, from `begin` on."""

    def __init__(self, begin: Instant, room: RoomT) -> None:
        #: When each slice begins; strictly ascending. It ends where the next begins.
        self._instants: list[Instant] = [begin]
        #: What is free throughout each slice.
        self._rooms: list[RoomT] = [room]

    @property
    def slices(self) -> list[tuple[Instant, RoomT]]:
        """The slices, in order."""
        return list(zip(self._instants, self._rooms, strict=True))

    def advance(self, now: Instant) -> None:
        """Forget everything before `now`, which lies in or after the first slice."""
        past = bisect_right(self._instants, now) - 1
        del self._instants[:past], self._rooms[:past]
        self._instants[0] = now

    def earliest(self, job: Job, length: Duration) -> Slot | None:
        """Return the first slot of `length` that has room for `job`, or None if there is never room.

        Nothing is reserved yet.
        """
        instants, rooms = self._instants, self._rooms
        anchor = 0
        while anchor < len(instants):
            start = instants[anchor]
            end = after(start, length)
            room = rooms[anchor]
            reached = anchor + 1
            while (holds := room.holds(job)) and reached < len(instants) and instants[reached] < end:
                room = room & rooms[reached]
                reached += 1
            if holds and (placement := room.fit(job)) is not None:
                return Slot(start, end, placement)
            anchor = self._next_anchor(job, anchor, reached - 1)
        return None

    def _next_anchor(self, job: Job, anchor: int, obstacle: int) -> int:
        """Return where to try next when a job that begins at `anchor` gets no further than slice `obstacle`.

        If the job does not fit into `obstacle` even alone, no anchor before it helps: the job would last into it too.
        """
        if obstacle > anchor and self._rooms[obstacle].holds(job):
            return anchor + 1
        return obstacle + 1

    def reserve(self, slot: Slot) -> None:
        """Take the slot's placement; ValueError if it is not free throughout."""
        first, last = self._span(slot)
        self._rooms[first:last] = [room - slot.placement for room in self._rooms[first:last]]

    def release(self, slot: Slot) -> None:
        """Give back what is left, from the beginning of the timeline on, of a slot that was reserved."""
        first, last = self._span(slot)
        self._rooms[first:last] = [room + slot.placement for room in self._rooms[first:last]]
        self._merge(last)
        self._merge(first)

    def _span(self, slot: Slot) -> tuple[int, int]:
        """Return the slices [first, last) that make up the slot, cutting them at its ends."""
        if slot.end <= self._instants[0]:
            return 0, 0
        first = self._cut(slot.start) if slot.start > self._instants[0] else 0
        return first, self._cut(slot.end)

    def _cut(self, at: Instant) -> int:
        """Return the index of the slice that begins at `at`, making one if there is none."""
        index = bisect_left(self._instants, at)
        if index == len(self._instants) or self._instants[index] != at:
            self._instants.insert(index, at)
            self._rooms.insert(index, self._rooms[index - 1])
        return index

    def _merge(self, index: int) -> None:
        """Join slice `index` to the one before it if nothing changes between them."""
        if 0 < index < len(self._rooms) and self._rooms[index] == self._rooms[index - 1]:
            del self._instants[index], self._rooms[index]
