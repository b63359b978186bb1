"""Encodes a timeline as JSON in the Trace Event Format, which chrome://tracing, Perfetto and speedscope open.

A group is a process, and a track is a thread. Times are in microseconds, the resolution of a run's tables.
(The Chromium project's document "Trace Event Format".)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from batkube.kernel.instants import Instant
from batkube.outputs.exports.timeline.items import InstantMark, Item, SliceBegin, SliceEnd, Track, TrackGroup, Value

#: Tracks of nodes are sorted by node, then by lane; a node with more lanes than this has the others in any order.
_MAX_LANES = 1000

_Event = dict[str, Any]


def chrome_trace(items: Iterable[Item], end: Instant, description: dict[str, object]) -> Iterator[bytes]:
    """Yield the parts of the file, an event per line. Slices that did not end last until `end`."""
    encode = msgspec.json.Encoder().encode
    yield b'{"displayTimeUnit":"ms","otherData":' + encode(description) + b',"traceEvents":[\n'
    separator = b""
    for event in _Events(end).events(items):
        yield separator + encode(event)
        separator = b",\n"
    yield b"\n]}\n"


class _Events:
    """Converts items to trace events. Keeps the tracks and slices to which later items refer."""

    def __init__(self, end: Instant) -> None:
        self._end = end
        self._tracks: dict[int, Track] = {}
        #: Tracks with events: one that only contains others is not a thread.
        self._described_tracks: set[int] = set()
        #: Flows that have begun.
        self._flows: set[int] = set()

    def events(self, items: Iterable[Item]) -> Iterator[_Event]:
        for group in TrackGroup:
            yield _metadata("process_name", group, 0, {"name": group.name.capitalize()})
            yield _metadata("process_sort_index", group, 0, {"sort_index": int(group)})
        for item in items:
            if isinstance(item, Track):
                self._tracks[item.number] = item
            elif isinstance(item, Value):
                track = self._tracks[item.track]
                yield {**self._head("C", track.name, item), "args": {track.unit or "value": item.value}}
            elif not isinstance(item, SliceEnd):  # the begin of a slice has its length
                yield from self._names_of(self._tracks[item.track])
                yield from self._slice_events(item)

    def _names_of(self, track: Track) -> Iterator[_Event]:
        """Yield the metadata events of a track, its name and its position, before its first event."""
        if track.number in self._described_tracks:
            return
        self._described_tracks.add(track.number)
        parent = None if track.parent is None else self._tracks[track.parent]
        name = track.name if parent is None else f"{parent.name}: {track.name}"
        order = track.order if parent is None else parent.order * _MAX_LANES + min(track.order, _MAX_LANES - 1)
        yield _metadata("thread_name", track.group, track.number, {"name": name})
        yield _metadata("thread_sort_index", track.group, track.number, {"sort_index": order})

    def _slice_events(self, item: SliceBegin | InstantMark) -> Iterator[_Event]:
        # Flows connect slices only, so a mark that has some is a slice of no length.
        is_slice = isinstance(item, SliceBegin) or bool(item.flows)
        event = self._head("X" if is_slice else "i", item.name, item)
        if isinstance(item, SliceBegin):
            event["dur"] = (max(item.at, self._end if item.end is None else item.end) - item.at) // 1000
        elif is_slice:
            event["dur"] = 0
        else:
            event["s"] = "t"
        yield {**event, "cat": item.category, "args": dict(item.details)}
        for flow in item.flows:
            step = "t" if flow in self._flows else "s"
            self._flows.add(flow)
            is_last = isinstance(item, InstantMark) and item.is_last
            yield {**self._head("f" if is_last else step, "pod", item), "cat": "flow", "id": flow, "bp": "e"}

    def _head(self, phase: str, name: str, item: SliceBegin | InstantMark | Value) -> _Event:
        track = self._tracks[item.track]
        return {"ph": phase, "pid": int(track.group), "tid": track.number, "ts": item.at // 1000, "name": name}


def _metadata(name: str, group: TrackGroup, track: int, arguments: dict[str, object]) -> _Event:
    return {"ph": "M", "pid": int(group), "tid": track, "name": name, "args": arguments}
