"""A run as a timeline in the terms of trace viewers: tracks with slices, instants and counters, connected by flows.

Times are nanoseconds of virtual time. The items of a timeline are in the order of time, and a track precedes its first
item. Slices of one track do not overlap, except that a slice may be inside another.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import msgspec

from batkube.kernel.instants import Instant
from batkube.outputs.playback.model import Field

Details = Mapping[str, Field]
"""What a viewer shows of a selected item."""


class TrackGroup(enum.IntEnum):
    """The top level of a timeline, in its order."""

    CLUSTER = enum.auto()
    SCHEDULERS = enum.auto()
    NODES = enum.auto()
    JOBS = enum.auto()


class Track(msgspec.Struct, frozen=True):
    """A row of the timeline."""

    #: Identifies the track; greater than all members of `TrackGroup`.
    number: int
    group: TrackGroup
    name: str
    #: The track that contains it; None if it is directly in its group.
    parent: int | None = None
    #: Its place among the tracks of its parent, or of its group.
    order: int = 0
    #: The unit of a counter; None for a track with slices and instants.
    unit: str | None = None


class SliceBegin(msgspec.Struct, frozen=True, gc=False):
    """The begin of a slice. Flows connect it with other slices and instants."""

    track: int
    at: Instant
    #: Where it ends; None if it lasts beyond the end of the run.
    end: Instant | None
    name: str
    category: str
    details: Details
    flows: Sequence[int] = ()


class SliceEnd(msgspec.Struct, frozen=True, gc=False):
    """The end of the latest open slice of a track."""

    track: int
    at: Instant


class InstantMark(msgspec.Struct, frozen=True, gc=False):
    """An instant of a track. Flows pass through it, and end there if `is_last`."""

    track: int
    at: Instant
    name: str
    category: str
    details: Details
    flows: Sequence[int] = ()
    is_last: bool = False


class Value(msgspec.Struct, frozen=True, gc=False):
    """A counter has this value from `at` on."""

    track: int
    at: Instant
    value: int | float


Item = Track | SliceBegin | SliceEnd | InstantMark | Value
