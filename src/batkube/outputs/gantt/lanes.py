"""Positions of the boxes of a Gantt chart: converts stays to rectangles that do not overlap.

A machine's row is one unit high. A job that uses the machine alone fills the row. Jobs that share it get *lanes*, whose
height is their share of the cpu, first fit from the top. If only scattered lanes are free, a job is drawn in pieces;
cpu is not contiguous anyway. If a scheduler over-allocated a machine, lanes are scaled down for that busy period, as in
a calendar, so that nothing is hidden.

Heights are integers of millicores, so that lanes fit exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from batkube.outputs.measures.occupancy.stays import Bools, Floats, Ints, Stays

#: Work without a cpu request is drawn as a fiftieth of its machine, so that it is visible.
_MIN_SHARE_DIVISOR = 50


class Span(NamedTuple):
    """One stay on one machine, the input of `assign_lanes`."""

    start: float
    end: float
    milli: int


class LanePiece(NamedTuple):
    """Part of a span: rows from `top` to `bottom`, as shares of the machine's row counted from its top."""

    span: int
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Boxes:
    """The rectangles of a chart, as parallel arrays. Time runs along x; machine i's row is y from i to i + 1."""

    #: Row of the job in `RunFiles.jobs`.
    job: Ints
    lost: Bools
    left: Floats
    right: Floats
    top: Floats
    bottom: Floats

    def __len__(self) -> int:
        return len(self.job)

    def clipped_to(self, start: float, end: float) -> Boxes:
        """Return the boxes between two times, cut at both."""
        inside = (self.left <= end) & (self.right >= start)
        return Boxes(
            self.job[inside],
            self.lost[inside],
            np.maximum(self.left[inside], start),
            np.minimum(self.right[inside], end),
            self.top[inside],
            self.bottom[inside],
        )


def boxes_of(stays: Stays, *, ignored_s: float = 0.0) -> Boxes:
    """Return the rectangles of all stays; overlaps in time of at most `ignored_s` get no lanes.

    Machines with consecutive ids that a job uses alone are one rectangle.
    """
    shared = _shared_machines(stays, ignored_s)
    sharing_before = np.concatenate(([0], np.cumsum(shared)))
    alone = sharing_before[stays.last + 1] == sharing_before[stays.first]
    rows: list[tuple[int, float, float]] = [
        (int(stay), float(stays.first[stay]), float(stays.last[stay] + 1)) for stay in np.flatnonzero(alone)
    ]
    spans_by_machine: dict[int, list[int]] = {}
    for stay in np.flatnonzero(~alone).tolist():
        for first, last, is_shared in _split_by_sharing(int(stays.first[stay]), int(stays.last[stay]), shared):
            if is_shared:
                spans_by_machine.setdefault(first, []).append(stay)
            else:
                rows.append((stay, float(first), float(last + 1)))
    for machine in sorted(spans_by_machine):
        members = spans_by_machine[machine]
        capacity = int(stays.capacity[machine])
        spans = [_span_of_stay(stays, stay, capacity) for stay in members]
        for span, top, bottom in assign_lanes(spans, capacity, ignored_s=ignored_s):
            rows.append((members[span], machine + top, machine + bottom))
    return _boxes(stays, rows)


def assign_lanes(spans: Sequence[Span], capacity: int, *, ignored_s: float = 0.0) -> list[LanePiece]:
    """Return pieces for all spans on one machine of `capacity` millicores; no two overlap in both time and height.

    Spans that overlap in time by at most `ignored_s` count as consecutive.
    """
    pieces: list[LanePiece] = []
    for group in _overlapping_groups(spans, ignored_s):
        height = max(capacity, _peak_milli(spans, group, ignored_s))
        #: (end, first, last) of the lanes in use when the current span starts.
        lanes_in_use: list[tuple[float, int, int]] = []
        for number in group:
            span = spans[number]
            lanes_in_use = [lane for lane in lanes_in_use if lane[0] - ignored_s > span.start]
            # Only a very short span can find the row full; it is drawn over the others' first lanes.
            for first, last in _free_lanes(lanes_in_use, span.milli, height) or [(0, min(span.milli, height))]:
                lanes_in_use.append((span.end, first, last))
                pieces.append(LanePiece(number, first / height, last / height))
    return pieces


def _overlapping_groups(spans: Sequence[Span], ignored_s: float) -> Iterator[list[int]]:
    """Yield groups of spans that are connected by overlaps in time, each group in order of start."""
    group: list[int] = []
    latest_end = float("-inf")
    for number in sorted(range(len(spans)), key=lambda number: (spans[number].start, number)):
        if group and spans[number].start >= latest_end - ignored_s:
            yield group
            group = []
        group.append(number)
        latest_end = max(latest_end, spans[number].end)
    if group:
        yield group


def _peak_milli(spans: Sequence[Span], group: Sequence[int], ignored_s: float) -> int:
    changes: list[tuple[float, int, int]] = []
    for number in group:
        span = spans[number]
        if span.end - ignored_s > span.start:
            changes.append((span.start, 1, span.milli))
            changes.append((span.end - ignored_s, 0, -span.milli))
    peak = load = 0
    for _, _, change in sorted(changes):
        load += change
        peak = max(peak, load)
    return peak


def _free_lanes(lanes_in_use: list[tuple[float, int, int]], milli: int, height: int) -> list[tuple[int, int]]:
    """Return the first free lane of `milli`, or if there is none, the first free pieces that add up to it."""
    gaps: list[tuple[int, int]] = []
    gap_start = 0
    for _, first, last in sorted(lanes_in_use, key=lambda lane: lane[1]):
        if first > gap_start:
            gaps.append((gap_start, first))
        gap_start = max(gap_start, last)
    gaps.append((gap_start, height))
    for first, last in gaps:
        if last - first >= milli:
            return [(first, first + milli)]
    pieces: list[tuple[int, int]] = []
    for first, last in gaps:
        part = min(last - first, milli)
        if part > 0:
            pieces.append((first, first + part))
            milli -= part
    return pieces


def _shared_machines(stays: Stays, ignored_s: float) -> Bools:
    """Return for each machine whether stays overlap on it, or use only a part of it."""
    shared = np.zeros(len(stays.capacity), dtype=np.bool_)
    single = stays.per_machine()
    order = np.lexsort((single.start, single.first))
    machine, start = single.first[order], single.start[order]
    latest_end = pd.Series(single.end[order]).groupby(machine).cummax().groupby(machine).shift().to_numpy()
    shared[machine[latest_end > start + ignored_s]] = True
    shared[machine[single.milli[order] != stays.capacity[machine]]] = True
    return shared


def _split_by_sharing(first: int, last: int, shared: Bools) -> Iterator[tuple[int, int, bool]]:
    """Split the machines first…last into single shared ones and the longest runs of others."""
    begin = first
    for machine in range(first, last + 1):
        if shared[machine]:
            if begin < machine:
                yield begin, machine - 1, False
            yield machine, machine, True
            begin = machine + 1
    if begin <= last:
        yield begin, last, False


def _span_of_stay(stays: Stays, stay: int, capacity: int) -> Span:
    milli = max(int(stays.milli[stay]), capacity // _MIN_SHARE_DIVISOR, 1)
    return Span(float(stays.start[stay]), float(stays.end[stay]), milli)


def _boxes(stays: Stays, rows: list[tuple[int, float, float]]) -> Boxes:
    rows.sort()
    stay = np.array([row[0] for row in rows], dtype=np.int64)
    return Boxes(
        stays.job[stay],
        stays.lost[stay],
        stays.start[stay],
        stays.end[stay],
        np.array([row[1] for row in rows], dtype=np.float64),
        np.array([row[2] for row in rows], dtype=np.float64),
    )
