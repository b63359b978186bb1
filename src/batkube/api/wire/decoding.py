"""Decode protobuf messages to dictionaries in canonical form, as if the object had been sent as JSON.

The canonical form is what Go prints as JSON after decoding the message. A field with `omitempty` is missing if it is
empty. Other fields are present, empty or null, even if they were not sent, and so are structs that are not pointers.
Unknown fields are skipped.
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
from batkube.api.wire.wrapper_messages import wrapper_of
from batkube.cluster.schemas import Field, Schema, Shape
from batkube.protobuf.varints import BYTES, END_GROUP, VARINT, UnexpectedEnd, WireError, read_varint, skip_field

ReadValue = Callable[[bytes, int, int], Json]
"""Returns the value between two positions of the data."""

AddToField = Callable[[dict[str, Any], str, Json], None]
"""Adds a decoded value to a field of the message."""

_unpack_double = struct.Struct("<d").unpack_from


class _FieldReader(NamedTuple):
    """How to decode a field; `add` is None if the value simply becomes the field."""

    name: str
    read: ReadValue
    add: AddToField | None


class _OutputField(NamedTuple):
    """How a field appears in JSON if it is empty or was not sent."""

    name: str
    keep_if_empty: bool
    #: Returns the value of an unset field that Go always prints; None if Go omits it.
    default: Callable[[], Json] | None


class MessageDecoder:
    """Decodes one type of message; compiled on first use, since types may be recursive."""

    __slots__ = ("_embedded", "_entries", "_json_fields", "_names", "_scalars", "_schema")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._json_fields: list[_OutputField] | None = None
        #: Length-delimited fields, by tag.
        self._entries: dict[int, _FieldReader] = {}
        #: Other fields (integers, booleans, floats), by tag.
        self._scalars: dict[int, _FieldReader] = {}
        #: The names of both, by field number.
        self._names: dict[int, str] = {}
        #: Embedded messages, whose fields belong to this object, by tag.
        self._embedded: dict[int, MessageDecoder] = {}

    def __call__(self, data: bytes, start: int, end: int) -> dict[str, Any]:
        """Return the message between two positions."""
        value: dict[str, Any] = {}
        self._read_fields(data, start, end, value)
        return self._in_go_order(value)

    def _read_fields(self, data: bytes, start: int, end: int, value: dict[str, Any]) -> None:
        """Decode the fields between two positions into `value`."""
        if self._json_fields is None:
            self._compile()
        entries, position = self._entries, start
        while position < end:
            # Inlined varints: nearly all tags have one or two bytes, nearly all lengths have one.
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
            name, read, add = entry
            if add is None:
                value[name] = read(data, position, stop)
            else:
                add(value, name, read(data, position, stop))
            position = stop
        if position != end:
            raise UnexpectedEnd

    def _read_other_field(self, data: bytes, position: int, end: int, key: int, value: dict[str, Any]) -> int:
        """Decode a scalar or an embedded message, or skip an unknown field; return the end of the field."""
        scalar = self._scalars.get(key)
        if scalar is not None:
            stop = read_varint(data, position)[1] if key & 7 == VARINT else position + 8
            if stop > end:
                raise UnexpectedEnd
            name, read, add = scalar
            if add is None:
                value[name] = read(data, position, stop)
            else:
                add(value, name, read(data, position, stop))
            return stop
        if key not in self._embedded:
            return self._skip_unknown(data, position, key)
        length, position = read_varint(data, position)
        if position + length > end:
            raise UnexpectedEnd
        self._embedded[key]._read_fields(data, position, position + length, value)
        return position + length

    def _skip_unknown(self, data: bytes, position: int, key: int) -> int:
        """Return the end of an unknown field; raises WireError if Go would."""
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
        """Return the fields in the order of the Go struct, with defaults for unset fields that Go always prints."""
        ordered: dict[str, Any] = {}
        for name, keep_if_empty, default in self._json_fields or ():
            if name in fields:
                value = fields[name]
                if value or keep_if_empty:
                    ordered[name] = value
            elif default is not None:
                ordered[name] = default()
        return ordered

    def _compile(self) -> None:
        for name, field in protobuf_fields(self._schema).items():
            if name not in self._schema.fields:
                self._embedded[field.number << 3 | BYTES] = message_decoder_of(field.schema)
                continue
            self._names[field.number] = name
            for wire, read, add in _field_readers(field.schema):
                entries = self._entries if wire == BYTES else self._scalars
                entries[field.number << 3 | wire] = _FieldReader(name, read, add)
        always = zero(self._schema)
        self._json_fields = [
            _OutputField(name, field.pointer or name in always, _copier(always[name]) if name in always else None)
            for name, field in self._schema.fields.items()
            if field.number
        ]


def message_decoder_of(schema: Schema) -> MessageDecoder:
    """Return the decoder of a struct, compiled once per schema."""
    if schema.from_wire is None:
        schema.from_wire = MessageDecoder(schema)
    decoder: MessageDecoder = schema.from_wire
    return decoder


def _copier(value: Json) -> Callable[[], Json]:
    """Return a function that copies `value`, since decoded objects may be edited."""
    return dict if value == {} else functools.partial(copy.deepcopy, value)


def _field_readers(schema: Schema) -> list[tuple[int, ReadValue, AddToField | None]]:
    """Return the wire types that a field may have, each with the functions that decode and add its value."""
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
    """Return the decoder of a single value."""
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
    """Return the decoder of a packed list of integers, which Go never writes but other clients may."""

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
    """Return the decoder of a map entry: a message with a key and a value, both optional."""
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
