"""Encodes a timeline as a Perfetto trace: a protobuf message of packets, one for each track and each event.

Names of categories and details are interned: a packet that uses a new one defines its number.
(Perfetto: protos/perfetto/trace, messages Trace, TracePacket, TrackDescriptor, TrackEvent and InternedData; the
documentation, "Writing TrackEvent protos synthetically".)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from batkube.kernel.instants import Instant
from batkube.outputs.exports.timeline.items import InstantMark, Item, SliceBegin, SliceEnd, Track, TrackGroup, Value
from batkube.outputs.playback.model import Field
from batkube.protobuf.varints import (
    BYTES,
    FIXED64,
    VARINT,
    encode_signed_varint,
    encode_varint,
    field_tag,
    length_delimited,
)

#: All packets belong to one sequence, which has one table of interned names.
_SEQUENCE = 1
#: TracePacket.SequenceFlags.
_STATE_CLEARED, _NEEDS_STATE = 1, 2
#: TrackEvent.Type.
_SLICE_BEGIN, _SLICE_END, _INSTANT, _COUNTER = 1, 2, 3, 4
#: TrackDescriptor.ChildTracksOrdering.
_EXPLICIT_ORDER = 3
#: TrackDescriptor.SiblingMergeBehavior.
_MERGE_BY_NAME, _DO_NOT_MERGE = 1, 2

_pack_fixed64 = struct.Struct("<Q").pack
_pack_double = struct.Struct("<d").pack


def _number_field(number: int) -> bytes:
    return field_tag(number, VARINT)


def _bytes_field(number: int) -> bytes:
    return field_tag(number, BYTES)


_PACKET = _bytes_field(1)
_TIMESTAMP, _SEQUENCE_ID, _FLAGS = _number_field(8), _number_field(10), _number_field(13)
_TRACK_EVENT, _INTERNED_DATA, _TRACK_DESCRIPTOR = _bytes_field(11), _bytes_field(12), _bytes_field(60)
_EVENT_TYPE, _EVENT_TRACK, _EVENT_NAME, _EVENT_CATEGORY = (
    _number_field(9),
    _number_field(11),
    _bytes_field(23),
    _number_field(3),
)
_COUNTER_VALUE, _DOUBLE_COUNTER_VALUE = _number_field(30), field_tag(44, FIXED64)
_FLOW, _LAST_FLOW = field_tag(47, FIXED64), field_tag(48, FIXED64)
_DETAIL, _DETAIL_NAME = _bytes_field(4), _number_field(1)
_BOOL_VALUE, _INT_VALUE, _DOUBLE_VALUE, _TEXT_VALUE = (
    _number_field(2),
    _number_field(4),
    field_tag(5, FIXED64),
    _bytes_field(6),
)
_CATEGORY_NAMES, _DETAIL_NAMES, _NUMBER, _NAME = _bytes_field(1), _bytes_field(3), _number_field(1), _bytes_field(2)
_COMMON = _SEQUENCE_ID + encode_varint(_SEQUENCE) + _FLAGS + encode_varint(_NEEDS_STATE)


def perfetto_packets(items: Iterable[Item]) -> Iterator[bytes]:
    """Yield the parts of the trace with these items."""
    first = _SEQUENCE_ID + encode_varint(_SEQUENCE) + _FLAGS + encode_varint(_STATE_CLEARED)
    yield length_delimited(_PACKET, first)
    for group in TrackGroup:
        yield _group_packet(group)
    encoder = _EventEncoder()
    for item in items:
        yield _track_packet(item) if isinstance(item, Track) else encoder.packet(item)


def _group_packet(group: TrackGroup) -> bytes:
    return _descriptor_packet(
        _number_field(1) + encode_varint(group),
        length_delimited(_bytes_field(2), group.name.capitalize().encode()),
        _number_field(11) + encode_varint(_EXPLICIT_ORDER),
        _number_field(12) + encode_varint(group),
    )


def _track_packet(track: Track) -> bytes:
    merging = _MERGE_BY_NAME if track.parent is not None else _DO_NOT_MERGE
    fields = [
        _number_field(1) + encode_varint(track.number),
        length_delimited(_bytes_field(2), track.name.encode()),
        _number_field(5) + encode_varint(track.group if track.parent is None else track.parent),
        _number_field(11) + encode_varint(_EXPLICIT_ORDER),
        _number_field(12) + encode_varint(track.order),
        _number_field(15) + encode_varint(merging),
    ]
    if track.unit is not None:
        unit_name = length_delimited(_bytes_field(6), track.unit.encode())
        fields.append(length_delimited(_bytes_field(8), unit_name))
    return _descriptor_packet(*fields)


def _descriptor_packet(*fields: bytes) -> bytes:
    return length_delimited(_PACKET, _COMMON + length_delimited(_TRACK_DESCRIPTOR, b"".join(fields)))


class _EventEncoder:
    """Encodes events, and interns the names that they use."""

    def __init__(self) -> None:
        self._categories: dict[str, int] = {}
        self._detail_names: dict[str, int] = {}
        #: The definitions of names that are new in the current packet.
        self._definitions: list[bytes] = []

    def packet(self, item: SliceBegin | SliceEnd | InstantMark | Value) -> bytes:
        """Return the packet of an event. A trace has no negative times, so events before the run have 0."""
        event = length_delimited(_TRACK_EVENT, b"".join(self._event(item)))
        names = length_delimited(_INTERNED_DATA, b"".join(self._definitions)) if self._definitions else b""
        self._definitions.clear()
        return length_delimited(_PACKET, _time(item.at) + _COMMON + names + event)

    def _event(self, item: SliceBegin | SliceEnd | InstantMark | Value) -> Iterator[bytes]:
        yield _EVENT_TRACK + encode_varint(item.track)
        if isinstance(item, SliceEnd):
            yield _EVENT_TYPE + encode_varint(_SLICE_END)
        elif isinstance(item, Value):
            yield _EVENT_TYPE + encode_varint(_COUNTER)
            is_float = isinstance(item.value, float)
            yield _DOUBLE_COUNTER_VALUE + _pack_double(item.value) if is_float else _whole_value(int(item.value))
        else:
            yield _EVENT_TYPE + encode_varint(_SLICE_BEGIN if isinstance(item, SliceBegin) else _INSTANT)
            yield length_delimited(_EVENT_NAME, item.name.encode())
            yield _EVENT_CATEGORY + encode_varint(self._number(self._categories, _CATEGORY_NAMES, item.category))
            for name, value in item.details.items():
                number = self._number(self._detail_names, _DETAIL_NAMES, name)
                yield length_delimited(_DETAIL, _DETAIL_NAME + encode_varint(number) + _detail_value(value))
            tag = _LAST_FLOW if isinstance(item, InstantMark) and item.is_last else _FLOW
            for flow in item.flows:
                yield tag + _pack_fixed64(flow)

    def _number(self, numbers: dict[str, int], field: bytes, name: str) -> int:
        """Return the number of an interned name. The current packet defines it if it is new."""
        number = numbers.get(name)
        if number is None:
            number = numbers[name] = len(numbers) + 1
            definition = _NUMBER + encode_varint(number) + length_delimited(_NAME, name.encode())
            self._definitions.append(length_delimited(field, definition))
        return number


def _time(at: Instant) -> bytes:
    return _TIMESTAMP + encode_varint(max(at, 0))


def _whole_value(value: int) -> bytes:
    return _COUNTER_VALUE + encode_signed_varint(value)


def _detail_value(value: Field) -> bytes:
    if isinstance(value, bool):
        return _BOOL_VALUE + encode_varint(value)
    if isinstance(value, int):
        return _INT_VALUE + encode_signed_varint(value)
    if isinstance(value, float):
        return _DOUBLE_VALUE + _pack_double(value)
    return length_delimited(_TEXT_VALUE, ("" if value is None else str(value)).encode())
