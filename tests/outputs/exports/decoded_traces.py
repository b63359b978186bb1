"""Traces read back with the messages of the `perfetto` package, into SQL tables as those of Perfetto's trace processor.

The trace processor itself is a program that the package downloads, which these tests cannot do. The reader is as strict
as its importer: tracks and interned names are defined before they are used, and slices end in the order of a stack.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

#: A protobuf message.
Message = Any


def decoded(path: Path) -> sqlite3.Connection:
    """Return a database with the tables track, slice, args, counter and flow of a Perfetto trace."""
    messages: Message = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = messages.Trace()
    trace.ParseFromString(path.read_bytes())
    reader = _Reader(messages)
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id == 1
        reader.read(packet)
    reader.write_flows()
    return reader.database


class _Reader:
    def __init__(self, messages: Message) -> None:
        self._types = messages.TrackEvent
        self.database = sqlite3.connect(":memory:")
        self.database.executescript(
            """
            create table track (id integer primary key, name text, parent_id integer, unit text);
            create table slice (id integer primary key, ts integer, dur integer, track_id integer, name text,
                                category text, depth integer, arg_set_id integer);
            create table args (arg_set_id integer, key text, value);
            create table counter (ts integer, track_id integer, value real);
            create table flow (slice_out integer, slice_in integer);
            """
        )
        self.database.create_function("extract_arg", 2, self._extract_arg)
        self._names: dict[str, dict[int, str]] = {"event_categories": {}, "debug_annotation_names": {}}
        self._stacks: defaultdict[int, list[int]] = defaultdict(list)
        self._latest: defaultdict[int, int] = defaultdict(int)
        self._flows: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        self._ended_flows: set[int] = set()
        self._count = 0
        self._has_begun = False

    def _extract_arg(self, arg_set: int, key: str) -> str | float | None:
        query = "select value from args where arg_set_id = ? and key = ?"
        row = self.database.execute(query, [arg_set, key]).fetchone()
        return None if row is None else row[0]

    def read(self, packet: Message) -> None:
        assert packet.sequence_flags == (2 if self._has_begun else 1)
        self._has_begun = True
        for kind, names in self._names.items():
            for entry in getattr(packet.interned_data, kind):
                assert entry.iid not in names
                assert entry.name not in names.values()
                names[entry.iid] = entry.name
        if packet.HasField("track_descriptor"):
            self._read_track(packet.track_descriptor)
        elif packet.HasField("track_event"):
            self._read_event(packet.timestamp, packet.track_event)

    def _read_track(self, track: Message) -> None:
        parent = track.parent_uuid if track.HasField("parent_uuid") else None
        assert parent is None or self.database.execute("select 1 from track where id = ?", [parent]).fetchone()
        unit = track.counter.unit_name if track.HasField("counter") else None
        self.database.execute("insert into track values (?, ?, ?, ?)", [track.uuid, track.name, parent, unit])

    def _read_event(self, at: int, event: Message) -> None:
        track = event.track_uuid
        row = self.database.execute("select unit from track where id = ?", [track]).fetchone()
        assert row is not None
        assert at >= self._latest[track]
        self._latest[track] = at
        if event.type == self._types.TYPE_COUNTER:
            assert row[0] is not None
            value = event.counter_value if event.HasField("counter_value") else event.double_counter_value
            self.database.execute("insert into counter values (?, ?, ?)", [at, track, value])
        elif event.type == self._types.TYPE_SLICE_END:
            self.database.execute("update slice set dur = ? - ts where id = ?", [at, self._stacks[track].pop()])
        else:
            self._read_slice(at, event)

    def _read_slice(self, at: int, event: Message) -> None:
        self._count += 1
        stack, is_mark = self._stacks[event.track_uuid], event.type == self._types.TYPE_INSTANT
        category = self._names["event_categories"][event.category_iids[0]]
        cells = [self._count, at, 0 if is_mark else -1, event.track_uuid, event.name, category, len(stack), self._count]
        self.database.execute("insert into slice values (?, ?, ?, ?, ?, ?, ?, ?)", cells)
        if not is_mark:
            stack.append(self._count)
        for detail in event.debug_annotations:
            name = self._names["debug_annotation_names"][detail.name_iid]
            value = getattr(detail, detail.WhichOneof("value"))
            self.database.execute("insert into args values (?, ?, ?)", [self._count, f"debug.{name}", value])
        for flow in (*event.flow_ids, *event.terminating_flow_ids):
            assert flow not in self._ended_flows
            self._flows[flow].append((at, self._count))
        self._ended_flows.update(event.terminating_flow_ids)

    def write_flows(self) -> None:
        """Connect the consecutive slices of each flow, as the importer does."""
        for steps in self._flows.values():
            assert steps == sorted(steps)
            pairs = [(one[1], other[1]) for one, other in itertools.pairwise(steps)]
            self.database.executemany("insert into flow values (?, ?)", pairs)
