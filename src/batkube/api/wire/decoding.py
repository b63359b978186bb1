"""From protobuf to dictionaries, in the very form in which JSON of the same object would have been stored.

That form is Go's: what it would print after having read the message. So a field that may be left out (`omitempty`) is
missing when it is empty, others are there, empty or null, even if nothing was sent, and structs that are no pointers
are always there. Fields that nobody knows are skipped.
"""

from __future__ import annotations

import copy
import functools
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from batkube.api.decoding.objects import zero
from batkube.api.wire.encoding import WIRE_TYPES, protobuf_fields
from batkube.api.wire.values import BODY_READERS, Json, as_signed
from batkube.api.wire.varints import BYTES, END_GROUP, VARINT, UnexpectedEnd, WireError, read_varint, skip_field
from batkube.api.wire.wrapper_messages import wrapper_of
from batkube.cluster.schemas import Field, Schema, Shape

ReadValue = Callable[[bytes, int, int], Json]
"""Returns the value that lies between two positions of the data."""

AddToField = Callable[[dict[str, Any], str, Json], None]
"""Puts a value that was read into the fields found so far."""

_unpack_double = struct.Struct("<d").unpack_from


class _FieldReader(NamedTuple):
    """A field as it is found by its tag; `take` is None where the value is the field."""

    name: str
    read: ReadValue
    add: AddToField | None


class _OutputField(NamedTuple):
    """A field as JSON shows it: even if it is empty, and what if it was not sent."""

    name: str
    keep_if_empty: bool
    #: Makes the value of a field that Go always shows; None for one that it leaves out.
    default: Callable[[], Json] | None


class MessageDecoder:
    """Reads one type of message; compiled at its first use, since types may contain themselves."""

    __slots__ = ("_embedded", "_entries", "_json_fields", "_names", "_scalars", "_schema")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._json_fields: list[_OutputField] | None = None
        #: The fields that have a length, by tag.
        self._entries: dict[int, _FieldReader] = {}
        #: The others: integers, booleans, floats.
        self._scalars: dict[int, _FieldReader] = {}
        #: The names of both by their number.
        self._names: dict[int, str] = {}
        #: Messages whose fields belong to this one, by tag.
        self._embedded: dict[int, MessageDecoder] = {}

    def __call__(self, data: bytes, start: int, end: int) -> dict[str, Any]:
        """Return the message between two positions."""
        value: dict[str, Any] = {}
        self._read_fields(data, start, end, value)
        return self._in_go_order(value)

    def _read_fields(self, data: bytes, start: int, end: int, value: dict[str, Any]) -> None:
        """Read the fields between two positions into `value`."""
        if self._json_fields is None:
            self._compile()
        entries, position = self._entries, start
        while position < end:
            # Nearly all tags are of one or two bytes, nearly all lengths of one: a call would cost more than reading.
            key = data[position]
            position += 1
            if key > 0x7F:
                high = data[position]
                if high > 0x7F:
                    key, position = read_varint(data, position - 1)
                else:
                    key = key & 0x7F | high << 7
                    position += 1
            entry = entries.get(key)
            if entry is None:
                position = self._read_other_field(data, position, end, key, value)
                continue
            length = data[position]
            position += 1
            if length > 0x7F:
                length, position = read_varint(data, position - 1)
            stop = position + length
            if stop > end:
                raise UnexpectedEnd
            name, read, take = entry
            if take is None:
                value[name] = read(data, position, stop)
            else:
                take(value, name, read(data, position, stop))
            position = stop
        if position != end:
            raise UnexpectedEnd

    def _read_other_field(self, data: bytes, position: int, end: int, key: int, value: dict[str, Any]) -> int:
        """Read a number or an embedded message, or pass over an unknown field; return where it ends."""
        scalar = self._scalars.get(key)
        if scalar is not None:
            stop = read_varint(data, position)[1] if key & 7 == VARINT else position + 8
            if stop > end:
                raise UnexpectedEnd
            name, read, take = scalar
            if take is None:
                value[name] = read(data, position, stop)
            else:
                take(value, name, read(data, position, stop))
            return stop
        if key not in self._embedded:
            return self._skip_unknown(data, position, key)
        length, position = read_varint(data, position)
        if position + length > end:
            raise UnexpectedEnd
        self._embedded[key]._read_fields(data, position, position + length, value)
        return position + length

    def _skip_unknown(self, data: bytes, position: int, key: int) -> int:
        """Return where an unknown field ends, unless Go would refuse it."""
        number, wire = key >> 3, key & 7
        if wire == END_GROUP:
            raise WireError(f"proto: {self._schema.go}: wiretype end group for non-group")
        if not 0 < number < 1 << 31:
            raise WireError(f"proto: {self._schema.go}: illegal tag {as_signed(number, 32)} (wire type {key})")
        name = self._names.get(number)
        if name is not None:
            raise WireError(f"proto: wrong wireType = {wire} for field {name[0].upper()}{name[1:]}")
        return skip_field(data, position, wire)

    def _in_go_order(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields in the order of the Go struct, and those that Go shows though they were not sent."""
        finished: dict[str, Any] = {}
        for name, if_empty, fresh in self._json_fields or ():
            if name in fields:
                value = fields[name]
                if value or if_empty:
                    finished[name] = value
            elif fresh is not None:
                finished[name] = fresh()
        return finished

    def _compile(self) -> None:
        for name, field in protobuf_fields(self._schema).items():
            if name not in self._schema.fields:
                self._embedded[field.number << 3 | BYTES] = message_decoder_of(field.schema)
                continue
            self._names[field.number] = name
            for wire, read, take in _field_readers(field.schema):
                entries = self._entries if wire == BYTES else self._scalars
                entries[field.number << 3 | wire] = _FieldReader(name, read, take)
        always = zero(self._schema)
        self._json_fields = [
            _OutputField(name, field.pointer or name in always, _copier(always[name]) if name in always else None)
            for name, field in self._schema.fields.items()
            if field.number
        ]


def message_decoder_of(schema: Schema) -> MessageDecoder:
    """Return what reads a struct; the same for the same schema."""
    if schema.from_wire is None:
        schema.from_wire = MessageDecoder(schema)
    decoder: MessageDecoder = schema.from_wire
    return decoder


def _copier(value: Json) -> Callable[[], Json]:
    """Return a function that makes a copy of `value`, since what is decoded may be edited."""
    return dict if value == {} else functools.partial(copy.deepcopy, value)


def _field_readers(schema: Schema) -> list[tuple[int, ReadValue, AddToField | None]]:
    """Return the wire types in which a field may come, how to read each, and what to do with what was read."""
    if schema.shape is Shape.MAP and schema.items is not None:
        return [(BYTES, _map_entry_reader(schema.items), _update_pairs)]
    if schema.shape is not Shape.LIST or wrapper_of(schema) is not None or schema.items is None:
        return [(WIRE_TYPES.get(schema.shape, BYTES), _value_reader(schema), None)]
    wire, read = WIRE_TYPES.get(schema.items.shape, BYTES), _value_reader(schema.items)
    if wire == VARINT:
        return [(wire, read, _append_value), (BYTES, _packed_reader(read), _extend_values)]
    return [(wire, read, _append_value)]


def _append_value(fields: dict[str, Any], name: str, value: Json) -> None:
    fields.setdefault(name, []).append(value)


def _extend_values(fields: dict[str, Any], name: str, values: Json) -> None:
    if values:
        fields.setdefault(name, []).extend(values)


def _update_pairs(fields: dict[str, Any], name: str, pairs: Json) -> None:
    fields.setdefault(name, {}).update(pairs)


def _value_reader(schema: Schema) -> ReadValue:
    """Return what reads one value."""
    wrapper = wrapper_of(schema)
    if wrapper is not None:
        decode, unwrap = message_decoder_of(wrapper.schema), wrapper.unwrap
        return lambda data, start, end: unwrap(decode(data, start, end))
    match schema.shape:
        case Shape.STRUCT:
            return message_decoder_of(schema)
        case Shape.STRING:
            return _read_text
        case Shape.INTEGER:
            bits = 32 if schema.go == "int32" else 64
            return lambda data, start, end: as_signed(read_varint(data, start)[0], bits)
        case Shape.BOOLEAN:
            return lambda data, start, end: read_varint(data, start)[0] != 0
        case Shape.NUMBER:
            return lambda data, start, end: _unpack_double(data, start)[0]
    read_body = BODY_READERS[schema.shape]
    return lambda data, start, end: read_body(data[start:end])


def _read_text(data: bytes, start: int, end: int) -> str:
    return str(data[start:end], "utf-8", "replace")


def _packed_reader(read: ReadValue) -> ReadValue:
    """Return what reads a list of integers written one after the other, as others than Go may send it."""

    def read_all(data: bytes, start: int, end: int) -> list[Json]:
        values = []
        while start < end:
            values.append(read(data, start, end))
            _, start = read_varint(data, start)
        if start != end:
            raise UnexpectedEnd
        return values

    return read_all


def _map_entry_reader(items: Schema) -> ReadValue:
    """Return what reads an entry of a map: the message of a key and a value, either of which may be missing."""
    entry = Schema(
        Shape.STRUCT,
        go="MapEntry",
        fields={
            "key": Field("key", Schema(Shape.STRING), omit_empty=False, number=1),
            "value": Field("value", items, omit_empty=False, number=2),
        },
    )
    decode = message_decoder_of(entry)

    def read(data: bytes, start: int, end: int) -> dict[str, Json]:
        pair = decode(data, start, end)
        return {pair["key"]: pair["value"]}

    return read
