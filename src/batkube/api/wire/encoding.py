"""From dictionaries to protobuf.

Go writes the fields of a message by ascending number and, since Kubernetes' messages have few pointers, writes most of
them always: a text that is not set is a tag and the length zero. A schema is therefore compiled into what to write when
nothing is set, a piece for each field, and encoding an object replaces the pieces of the fields that are. Kubernetes:
the generated.pb.go files, made by gogo/protobuf: lists are not packed, maps are sorted by key.

Objects are replaced, never edited in place, and so the versions of a pod share all that has not changed: its
containers, its labels. Pods of one workload share even more. What was written of such a part is kept for the next time.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from batkube.api.wire.values import BODY_WRITERS, ZERO_VALUES, Json
from batkube.api.wire.varints import (
    BYTES,
    FIXED64,
    VARINT,
    encode_signed_varint,
    encode_varint,
    field_tag,
    length_delimited,
)
from batkube.api.wire.wrapper_messages import wrapper_of
from batkube.cluster.schemas import Field, Schema, Shape

WriteValue = Callable[[Json], bytes]
"""Returns a value as protobuf: with its tag, or the body of a message only."""

_pack_double = struct.Struct("<d").pack
#: The wire types of what is not delimited.
WIRE_TYPES = {Shape.INTEGER: VARINT, Shape.BOOLEAN: VARINT, Shape.NUMBER: FIXED64}
#: What writes nothing at all when it is empty.
_COLLECTIONS = (Shape.LIST, Shape.MAP, Shape.BYTES)
#: The shapes of parts that objects share.
_SHARED_SHAPES = (Shape.LIST, Shape.MAP, Shape.STRUCT)
#: An object's metadata has its version, and so is a new value each time it is shown.
_UNSHARED_FIELD = "metadata"
#: How large a part may be that is kept, and all of them together, with what it takes to keep one: what many objects
#: share is small.
_MAX_CACHED_PART_BYTES, _MAX_CACHE_BYTES, _CACHE_ENTRY_OVERHEAD = 1 << 11, 1 << 21, 1 << 8


class MessageEncoder:
    """Writes the body of one type of message; compiled at its first use, since types may contain themselves."""

    __slots__ = ("_absent", "_embedded", "_schema", "_writers")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        #: What is written for each field, in order, when none is set; nothing before the first use.
        self._absent: list[bytes] = []
        #: The place of each field among those, and what writes it.
        self._writers: dict[str, tuple[int, WriteValue]] = {}
        #: The names of messages whose fields JSON shows among those of this one.
        self._embedded: tuple[str, ...] = ()

    def __call__(self, value: Mapping[str, Any]) -> bytes:
        """Return the body of the message that `value` stands for.

        Most types have many fields and most objects few of them, so only what is there is looked at.
        """
        if not self._absent:
            self._compile()
        parts, find = self._absent.copy(), self._writers.get
        for name, part in value.items():
            if part is not None and (writer := find(name)) is not None:
                place, write = writer
                parts[place] = write(part)
        for name in self._embedded:
            place, write = self._writers[name]
            parts[place] = write(value)
        return b"".join(parts)

    def _compile(self) -> None:
        fields = protobuf_fields(self._schema)
        self._embedded = tuple(name for name in fields if name not in self._schema.fields)
        ordered = sorted(fields.items(), key=lambda item: item[1].number)
        self._absent = [_unset_bytes(field) for _, field in ordered]
        self._writers = {name: (place, _field_writer(name, field)) for place, (name, field) in enumerate(ordered)}


def message_encoder_of(schema: Schema) -> MessageEncoder:
    """Return what writes a struct; the same for the same schema."""
    if schema.to_wire is None:
        schema.to_wire = MessageEncoder(schema)
    encoder: MessageEncoder = schema.to_wire
    return encoder


def protobuf_fields(schema: Schema) -> dict[str, Field]:
    """Return the fields of a struct as protobuf has them: those of embedded structs within a message of their own.

    Such a message is called `<number>`, which is no name in JSON.
    """
    fields = {name: field for name, field in schema.fields.items() if field.number and not field.within}
    embedded: dict[int, dict[str, Field]] = {}
    for name, field in schema.fields.items():
        if field.within:
            inner = msgspec.structs.replace(field, within=field.within[1:])
            embedded.setdefault(field.within[0], {})[name] = inner
    for number, inner_fields in embedded.items():
        fields[f"<{number}>"] = Field(f"<{number}>", Schema(Shape.STRUCT, fields=inner_fields), number=number)
    return fields


def _unset_bytes(field: Field) -> bytes:
    """Return what Go writes for a field that is not set: nothing for a pointer, else its zero value."""
    schema = field.schema
    if field.pointer or schema.shape in _COLLECTIONS:
        return b""
    if schema.shape in (Shape.TIME, Shape.MICRO_TIME, Shape.ANY):
        return field_tag(field.number, BYTES) + b"\0"
    return _value_writer(field.number, schema)({} if schema.shape is Shape.STRUCT else ZERO_VALUES[schema.shape])


def _field_writer(name: str, field: Field) -> WriteValue:
    """Return what writes a field of a message, and keeps what it wrote if objects may share that part."""
    write = _value_writer(field.number, field.schema)
    embedded = name.startswith("<")
    return (
        write
        if embedded or name == _UNSHARED_FIELD or field.schema.shape not in _SHARED_SHAPES
        else _cached_writer(write)
    )


class _EncodedPartCache(dict[int, tuple[Json, bytes]]):
    """What was written of parts lately, by field and identity; the parts are held, so that no other gets their id.

    For all fields together: there are a thousand, and what each kept of its own would stay for as long as it is not
    written again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._size = 0

    def add(self, key: int, part: Json, data: bytes) -> None:
        """Keep a part; when there are too many, forget the others: those that matter come again at once."""
        self._size += len(data) + _CACHE_ENTRY_OVERHEAD
        if self._size > _MAX_CACHE_BYTES:
            self.clear()
            self._size = len(data) + _CACHE_ENTRY_OVERHEAD
        self[key] = part, data


_encoded_parts = _EncodedPartCache()
_field_numbers = itertools.count()


def _cached_writer(write: WriteValue) -> WriteValue:
    """Return `write` with a memory of what it wrote."""
    field = next(_field_numbers) << 64  # no identity is as large

    def write_once(value: Json) -> bytes:
        key = field + id(value)
        known = _encoded_parts.get(key)
        if known is not None:
            return known[1]
        data = write(value)
        if len(data) <= _MAX_CACHED_PART_BYTES:
            _encoded_parts.add(key, value, data)
        return data

    return write_once


def _value_writer(number: int, schema: Schema) -> WriteValue:
    """Return what writes the field `number` of a message, or each of its elements."""
    shape = schema.shape
    if shape is Shape.LIST and wrapper_of(schema) is None:
        return _list_writer(number, schema)
    if shape is Shape.MAP:
        return _map_writer(number, schema)
    prefix = field_tag(number, WIRE_TYPES.get(shape, BYTES))
    if shape is Shape.INTEGER:
        return lambda value: prefix + encode_signed_varint(value)
    if shape is Shape.BOOLEAN:
        words = prefix + b"\0", prefix + b"\1"
        return lambda value: words[value]
    if shape is Shape.NUMBER:
        return lambda value: prefix + _pack_double(value)
    if shape is Shape.STRING:
        return _text_writer(prefix)
    body = _body_writer(schema)
    return lambda value: length_delimited(prefix, body(value))


def _text_writer(prefix: bytes) -> WriteValue:
    def write(value: str) -> bytes:
        data = value.encode()
        return prefix + encode_varint(len(data)) + data

    return write


def _list_writer(number: int, schema: Schema) -> WriteValue:
    assert schema.items is not None
    write = _value_writer(number, schema.items)
    return lambda values: b"".join(map(write, values))


def _map_writer(number: int, schema: Schema) -> WriteValue:
    """Return what writes a map: a message for each entry, its key as field 1 and its value as field 2."""
    assert schema.items is not None
    prefix, write_key, write_value = field_tag(number, BYTES), _text_writer(b"\x0a"), _value_writer(2, schema.items)
    # Go writes no value for nil bytes.
    nothing = b"" if schema.items.shape is Shape.BYTES else b"\x12\0"

    def write(pairs: Mapping[str, Json]) -> bytes:
        entries = [
            length_delimited(prefix, write_key(key) + (nothing if value is None else write_value(value)))
            for key, value in sorted(pairs.items())
        ]
        return b"".join(entries)

    return write


def _body_writer(schema: Schema) -> WriteValue:
    """Return what writes a value that is delimited, without its tag and length."""
    wrapper = wrapper_of(schema)
    if wrapper is not None:
        encode, wrap = message_encoder_of(wrapper.schema), wrapper.wrap
        return lambda value: encode(wrap(value))
    if schema.shape is Shape.STRUCT:
        return message_encoder_of(schema)
    return BODY_WRITERS[schema.shape]
