"""Free capacity over time, for policies that plan ahead.

Time is divided into slices, each with a room that is free throughout it; the last slice never ends.
Reserving a placement splits the slices at its start and end, and takes the placement from those
between.

The earliest start of a job is the start of a slice, because capacity is released only there. The
job may use what is free in *all* slices until its end: the `&` of their rooms.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Generic, NamedTuple, TypeVar

from batkube.kernel.instants import Duration, Instant, after
from batkube.policies.rooms import Placement, Room
from batkube.workloads.model import Job

RoomT = TypeVar("RoomT", bound=Room)


class Slot(NamedTuple):
    """A placement that is held from `start` until `end`."""

    start: Instant
    end: Instant
    placement: Placement


class Timeline(Generic[RoomT]):
    """The room over time, from `begin` on."""

    def __init__(self, begin: Instant, room: RoomT) -> None:
        #: The start of each slice, strictly ascending. It is the end of the previous one.
        self._instants: list[Instant] = [begin]
        #: The room that is free throughout each slice.
        self._rooms: list[RoomT] = [room]

    @property
    def slices(self) -> list[tuple[Instant, RoomT]]:
        """The slices with their starts, in order."""
        return list(zip(self._instants, self._rooms, strict=True))

    def advance(self, now: Instant) -> None:
        """Discard the time before `now`, which must not be before the first slice."""
        past_count = bisect_right(self._instants, now) - 1
        del self._instants[:past_count], self._rooms[:past_count]
        self._instants[0] = now

    def earliest(self, job: Job, length: Duration) -> Slot | None:
        """Return the first slot of `length` with room for `job`, or None if there is none.

        Nothing is reserved.
        """
        instants, rooms = self._instants, self._rooms
        first_index = 0
        while first_index < len(instants):
            start = instants[first_index]
            end = after(start, length)
            room = rooms[first_index]
            next_index = first_index + 1
            while (holds := room.holds(job)) and next_index < len(instants) and instants[next_index] < end:
                room = room & rooms[next_index]
                next_index += 1
            if holds and (placement := room.fit(job)) is not None:
                return Slot(start, end, placement)
            first_index = self._next_first_index(job, first_index, next_index - 1)
        return None

    def _next_first_index(self, job: Job, first_index: int, blocked_index: int) -> int:
        """Return the next slice to try after a job from `first_index` did not fit into `blocked_index`.

        If the job does not fit into that slice alone, all earlier starts are skipped: the job would
        run into it too.
        """
        if blocked_index > first_index and self._rooms[blocked_index].holds(job):
            return first_index + 1
        return blocked_index + 1

    def reserve(self, slot: Slot) -> None:
        """Take the slot's placement. Raises ValueError if it is not free throughout."""
        first, last = self._span(slot)
        self._rooms[first:last] = [room - slot.placement for room in self._rooms[first:last]]

    def release(self, slot: Slot) -> None:
        """Release a reserved slot, or the part of it that is left after `advance`."""
        first, last = self._span(slot)
        self._rooms[first:last] = [room + slot.placement for room in self._rooms[first:last]]
        self._merge(last)
        self._merge(first)

    def _span(self, slot: Slot) -> tuple[int, int]:
        """Return the slices [first, last) of the slot, split at its start and end."""
        if slot.end <= self._instants[0]:
            return 0, 0
        first = self._cut(slot.start) if slot.start > self._instants[0] else 0
        return first, self._cut(slot.end)

    def _cut(self, at: Instant) -> int:
        """Return the index of the slice that starts at `at`, splitting one if necessary."""
        index = bisect_left(self._instants, at)
        if index == len(self._instants) or self._instants[index] != at:
            self._instants.insert(index, at)
            self._rooms.insert(index, self._rooms[index - 1])
        return index

    def _merge(self, index: int) -> None:
        """Join slice `index` to the previous one if their rooms are equal."""
        if 0 < index < len(self._rooms) and self._rooms[index] == self._rooms[index - 1]:
            del self._instants[index], self._rooms[index]
