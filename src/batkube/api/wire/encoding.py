"""Encode dictionaries as protobuf messages.

Go writes the fields of a message by ascending number. Since Kubernetes' messages have few pointers, it writes most
unset fields too: an unset string is a tag and the length zero. A schema is therefore compiled into the encodings of its
unset fields, and encoding an object replaces those of the fields that are set. Lists are not packed, and maps are
sorted by key (Kubernetes: the generated.pb.go files, made by gogo/protobuf).

Objects are replaced, never edited in place, so versions of a pod share unchanged parts such as containers and labels.
Pods of one workload share even more. The encodings of such parts are cached.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from batkube.api.wire.values import BODY_WRITERS, ZERO_VALUES, Json
from batkube.api.wire.wrapper_messages import wrapper_of
from batkube.cluster.schemas import Field, Schema, Shape
from batkube.protobuf.varints import (
    BYTES,
    FIXED64,
    SMALL_VARINT_COUNT,
    SMALL_VARINTS,
    VARINT,
    encode_signed_varint,
    encode_varint,
    field_tag,
    length_delimited,
)

WriteValue = Callable[[Json], bytes]
"""Encodes a value, with its tag or as the body of a message."""
WriteMetadata = Callable[[Mapping[str, Any], int], bytes]
"""Encodes the metadata of a stored object with a resourceVersion."""

_pack_double = struct.Struct("<d").pack
#: The wire types of shapes that are not length-delimited.
WIRE_TYPES = {Shape.INTEGER: VARINT, Shape.BOOLEAN: VARINT, Shape.NUMBER: FIXED64}
#: Shapes that are omitted if they are empty.
_COLLECTIONS = (Shape.LIST, Shape.MAP, Shape.BYTES)
#: Shapes of parts that objects may share.
_SHARED_SHAPES = (Shape.LIST, Shape.MAP, Shape.STRUCT)
#: Metadata that clients see contains the resourceVersion, so it differs every time and is not cached.
_METADATA, _RESOURCE_VERSION = "metadata", "resourceVersion"
#: Limits of the cache: the size of a part, the total size, and the overhead per part. Shared parts are small. The cache
#: holds the parts of 15,000 pods, so that those of a burst are still there when the pods end.
_MAX_CACHED_PART_BYTES, _MAX_CACHE_BYTES, _CACHE_ENTRY_OVERHEAD = 1 << 11, 1 << 24, 1 << 8


class MessageEncoder:
    """Encodes one type of message; compiled on first use, since types may be recursive."""

    __slots__ = ("_absent", "_embedded", "_metadata_writer", "_schema", "_writers")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        #: The encodings of unset fields, in order; empty before the first use.
        self._absent: list[bytes] = []
        #: The index of each field among those, and its encoder.
        self._writers: dict[str, tuple[int, WriteValue]] = {}
        #: The names of embedded messages, whose fields belong to this object in JSON.
        self._embedded: tuple[str, ...] = ()
        #: The index of the metadata, and its encoder for stored objects; None before the first use.
        self._metadata_writer: tuple[int, WriteMetadata] | None = None

    def __call__(self, value: Mapping[str, Any]) -> bytes:
        """Return the encoded message."""
        return b"".join(self._parts(value))

    def with_version(self, value: Mapping[str, Any], version: int) -> bytes:
        """Return the encoded message of a stored object with the resourceVersion that clients see.

        The versions of an object usually share their metadata, so that is cached, in two halves around that field.
        """
        parts = self._parts({**value, _METADATA: None})
        index, write = self._metadata_writer or self._compile_metadata()
        parts[index] = write(value[_METADATA], version)
        return b"".join(parts)

    def around(self, name: str, value: Mapping[str, Any]) -> tuple[bytes, bytes]:
        """Return what comes before and after the field `name` in the encoded message."""
        parts = self._parts(value)
        index, _ = self._writers[name]
        return b"".join(parts[:index]), b"".join(parts[index + 1 :])

    def _parts(self, value: Mapping[str, Any]) -> list[bytes]:
        """Return the encoded fields.

        Most types have many fields, of which most objects set few, so the loop is over the fields of the object.
        """
        if not self._absent:
            self._compile()
        parts, find = self._absent.copy(), self._writers.get
        for name, part in value.items():
            if part is not None and (writer := find(name)) is not None:
                index, write = writer
                parts[index] = write(part)
        for name in self._embedded:
            index, write = self._writers[name]
            parts[index] = write(value)
        return parts

    def _compile(self) -> None:
        fields = protobuf_fields(self._schema)
        self._embedded = tuple(name for name in fields if name not in self._schema.fields)
        ordered = sorted(fields.items(), key=lambda item: item[1].number)
        self._absent = [_unset_bytes(field) for _, field in ordered]
        self._writers = {name: (index, _field_writer(name, field)) for index, (name, field) in enumerate(ordered)}

    def _compile_metadata(self) -> tuple[int, WriteMetadata]:
        index, _ = self._writers[_METADATA]
        self._metadata_writer = index, _metadata_writer(self._schema.fields[_METADATA])
        return self._metadata_writer


def message_encoder_of(schema: Schema) -> MessageEncoder:
    """Return the encoder of a struct, compiled once per schema."""
    if schema.to_wire is None:
        schema.to_wire = MessageEncoder(schema)
    encoder: MessageEncoder = schema.to_wire
    return encoder


def protobuf_fields(schema: Schema) -> dict[str, Field]:
    """Return the fields of a struct in protobuf, where the fields of an embedded struct form a message of their own.

    Such a message is named `<number>`, which does not occur in JSON.
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
    """Return Go's encoding of an unset field: nothing for a pointer, else the zero value."""
    schema = field.schema
    if field.pointer or schema.shape in _COLLECTIONS:
        return b""
    if schema.shape in (Shape.TIME, Shape.MICRO_TIME, Shape.ANY):
        return field_tag(field.number, BYTES) + b"\0"
    return _value_writer(field.number, schema)({} if schema.shape is Shape.STRUCT else ZERO_VALUES[schema.shape])


def _field_writer(name: str, field: Field) -> WriteValue:
    """Return the encoder of a field, with a cache if objects may share the field's value."""
    write = _value_writer(field.number, field.schema)
    embedded = name.startswith("<")
    return write if embedded or name == _METADATA or field.schema.shape not in _SHARED_SHAPES else _cached_writer(write)


_Encoded = TypeVar("_Encoded")


class _EncodedPartCache(dict[int, tuple[Json, _Encoded]]):
    """Encoded parts by field and id of the part. It holds references to the parts, so that ids stay unique.

    One cache for all fields: there are a thousand, and separate caches would keep entries of rarely used fields.
    """

    def __init__(self) -> None:
        super().__init__()
        self._size = 0

    def add(self, key: int, part: Json, data: _Encoded, size: int) -> None:
        """Add a part unless it is large. If the cache is full, empty it first: parts in use are soon added again."""
        if size > _MAX_CACHED_PART_BYTES:
            return
        self._size += size + _CACHE_ENTRY_OVERHEAD
        if self._size > _MAX_CACHE_BYTES:
            self.clear()
            self._size = size + _CACHE_ENTRY_OVERHEAD
        self[key] = part, data


_encoded_parts = _EncodedPartCache[bytes]()
#: The encoded metadata before and after the resourceVersion.
_encoded_metadata = _EncodedPartCache[tuple[bytes, bytes]]()
_field_numbers = itertools.count()


def _cached_writer(write: WriteValue) -> WriteValue:
    """Return `write` with a cache of its results."""
    field = next(_field_numbers) << 48  # larger than any id, which is an address

    def write_once(value: Json) -> bytes:
        key = field + id(value)
        cached = _encoded_parts.get(key)
        if cached is not None:
            return cached[1]
        data = write(value)
        _encoded_parts.add(key, value, data, len(data))
        return data

    return write_once


def _metadata_writer(field: Field) -> WriteMetadata:
    """Return the encoder of the field with the metadata of stored objects."""
    encoder, prefix = message_encoder_of(field.schema), field_tag(field.number, BYTES)
    write_version = _text_writer(field_tag(field.schema.fields[_RESOURCE_VERSION].number, BYTES))

    def write(metadata: Mapping[str, Any], version: int) -> bytes:
        key = id(metadata)
        cached = _encoded_metadata.get(key)
        if cached is None:
            before, after = encoder.around(_RESOURCE_VERSION, metadata)
            _encoded_metadata.add(key, metadata, (before, after), len(before) + len(after))
        else:
            before, after = cached[1]
        return length_delimited(prefix, before + write_version(str(version)) + after)

    return write


def _value_writer(number: int, schema: Schema) -> WriteValue:
    """Return the encoder of the field `number`, or of each element if it is a list."""
    shape = schema.shape
    if shape is Shape.LIST and wrapper_of(schema) is None:
        return _list_writer(number, schema)
    if shape is Shape.MAP:
        return _map_writer(number, schema)
    prefix = field_tag(number, WIRE_TYPES.get(shape, BYTES))
    if shape is Shape.INTEGER:
        return lambda value: prefix + encode_signed_varint(value)
    if shape is Shape.BOOLEAN:
        encodings = prefix + b"\0", prefix + b"\1"
        return lambda value: encodings[value]
    if shape is Shape.NUMBER:
        return lambda value: prefix + _pack_double(value)
    if shape is Shape.STRING:
        return _text_writer(prefix)
    return _delimited_writer(prefix, _body_writer(schema))


def _text_writer(prefix: bytes) -> WriteValue:
    return _delimited_writer(prefix, str.encode)


def _delimited_writer(prefix: bytes, body: WriteValue) -> WriteValue:
    """Return the encoder of a length-delimited field; as `length_delimited`, which would be one more call per field."""

    def write(value: Json) -> bytes:
        data = body(value)
        size = len(data)
        return prefix + (SMALL_VARINTS[size] if size < SMALL_VARINT_COUNT else encode_varint(size)) + data

    return write


def _list_writer(number: int, schema: Schema) -> WriteValue:
    assert schema.items is not None
    write = _value_writer(number, schema.items)
    return lambda values: b"".join(map(write, values))


def _map_writer(number: int, schema: Schema) -> WriteValue:
    """Return the encoder of a map: a message per entry, with the key as field 1 and the value as field 2."""
    assert schema.items is not None
    prefix, write_key, write_value = field_tag(number, BYTES), _text_writer(b"\x0a"), _value_writer(2, schema.items)
    # Go omits the value if it is nil bytes.
    empty = b"" if schema.items.shape is Shape.BYTES else b"\x12\0"

    def write(pairs: Mapping[str, Json]) -> bytes:
        entries = [
            length_delimited(prefix, write_key(key) + (empty if value is None else write_value(value)))
            for key, value in sorted(pairs.items())
        ]
        return b"".join(entries)

    return write


def _body_writer(schema: Schema) -> WriteValue:
    """Return the encoder of a length-delimited value, without its tag and length."""
    wrapper = wrapper_of(schema)
    if wrapper is not None:
        encode, wrap = message_encoder_of(wrapper.schema), wrapper.wrap
        return lambda value: encode(wrap(value))
    if schema.shape is Shape.STRUCT:
        return message_encoder_of(schema)
    return BODY_WRITERS[schema.shape]
