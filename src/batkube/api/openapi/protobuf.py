"""Encode the OpenAPI version 2 document as protobuf, the form that most clients request.

kubectl before 1.27 validates and explains with it; newer ones fall back to it to find out that a kind is not served.
The messages are those of gnostic (github.com/google/gnostic-models, openapiv2/OpenAPIv2.proto). The tables below map
each key of the document to its field number and the encoder of its value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import msgspec

from batkube.protobuf.varints import BYTES, FIXED64, VARINT, encode_signed_varint, field_tag, length_delimited

Document = dict[str, Any]
Write = Callable[[int, Any], bytes]
"""Encodes a value as the field with a number."""

MEDIA_TYPES = (
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
)


def to_protobuf(swagger: Document) -> bytes:
    """Return a version 2 document as a protobuf message."""
    return _message_body(_DOCUMENT, swagger)


# Encoders of values


def _write_text(number: int, value: str) -> bytes:
    return length_delimited(field_tag(number, BYTES), value.encode())


def _write_flag(number: int, value: bool) -> bytes:
    return field_tag(number, VARINT) + (b"\1" if value else b"\0")


def _write_int(number: int, value: int) -> bytes:
    return field_tag(number, VARINT) + encode_signed_varint(value)


def _write_double(number: int, value: float) -> bytes:
    return field_tag(number, FIXED64) + struct.pack("<d", value)


def _write_any(number: int, value: object) -> bytes:
    """Encode any value as an `Any` message, whose YAML text may be JSON."""
    return length_delimited(field_tag(number, BYTES), _write_text(2, msgspec.json.encode(value).decode()))


def _repeated(write: Write) -> Write:
    return lambda number, values: b"".join(write(number, value) for value in values)


def _wrapped(inner: int, write: Write) -> Write:
    """Return an encoder of a message with a single field."""
    return lambda number, value: length_delimited(field_tag(number, BYTES), write(inner, value))


def _named_values(write: Write) -> Write:
    """Return an encoder of a map as a list of (name, value) messages."""

    def encode(number: int, values: Document) -> bytes:
        return b"".join(
            length_delimited(field_tag(number, BYTES), _write_text(1, name) + write(2, value))
            for name, value in values.items()
        )

    return encode


class _Message:
    """A message type: its fields by key, and the field number of extensions (keys that begin with `x-`)."""

    def __init__(self, extensions: int, fields: dict[str, tuple[int, Write]]) -> None:
        self.extensions = extensions
        self.fields = fields


def _message_body(message: _Message, value: Document) -> bytes:
    parts = []
    for key, item in value.items():
        if key.startswith("x-"):
            parts.append(_EXTENSION(message.extensions, {key: item}))
        elif key in message.fields:
            number, write = message.fields[key]
            parts.append(write(number, item))
    return b"".join(parts)


def _message_writer(message: _Message) -> Write:
    return lambda number, value: length_delimited(field_tag(number, BYTES), _message_body(message, value))


def _write_schema(number: int, value: Document) -> bytes:
    return length_delimited(field_tag(number, BYTES), _message_body(_SCHEMA, value))


def _write_additional_properties(number: int, value: Document | bool) -> bytes:
    return length_delimited(
        field_tag(number, BYTES), _write_flag(2, value) if isinstance(value, bool) else _write_schema(1, value)
    )


def _write_parameter(number: int, value: Document) -> bytes:
    """Encode a parameter, wrapped in one message for the body and in two for path and query."""
    if value["in"] == "body":
        inner = _message_writer(_BODY_PARAMETER)(1, value)
    else:
        message, field_number = (_PATH_PARAMETER, 4) if value["in"] == "path" else (_QUERY_PARAMETER, 3)
        inner = length_delimited(field_tag(2, BYTES), _message_writer(message)(field_number, value))
    return length_delimited(field_tag(number, BYTES), length_delimited(field_tag(1, BYTES), inner))


_EXTENSION = _named_values(_write_any)
_SCHEMA = _Message(
    31,
    {
        "$ref": (1, _write_text),
        "format": (2, _write_text),
        "title": (3, _write_text),
        "description": (4, _write_text),
        "default": (5, _write_any),
        "multipleOf": (6, _write_double),
        "maximum": (7, _write_double),
        "exclusiveMaximum": (8, _write_flag),
        "minimum": (9, _write_double),
        "exclusiveMinimum": (10, _write_flag),
        "maxLength": (11, _write_int),
        "minLength": (12, _write_int),
        "pattern": (13, _write_text),
        "maxItems": (14, _write_int),
        "minItems": (15, _write_int),
        "uniqueItems": (16, _write_flag),
        "maxProperties": (17, _write_int),
        "minProperties": (18, _write_int),
        "required": (19, _repeated(_write_text)),
        "enum": (20, _repeated(_write_any)),
        "additionalProperties": (21, _write_additional_properties),
        "type": (22, _wrapped(1, _write_text)),
        "items": (23, _wrapped(1, _write_schema)),
        "properties": (25, _wrapped(1, _named_values(_write_schema))),
        "example": (30, _write_any),
    },
)
_PATH_PARAMETER = _Message(
    22,
    {
        "required": (1, _write_flag),
        "in": (2, _write_text),
        "name": (4, _write_text),
        "type": (5, _write_text),
        "uniqueItems": (19, _write_flag),
    },
)
_QUERY_PARAMETER = _Message(
    23, {"in": (2, _write_text), "name": (4, _write_text), "type": (6, _write_text), "uniqueItems": (20, _write_flag)}
)
_BODY_PARAMETER = _Message(
    6, {"name": (2, _write_text), "in": (3, _write_text), "required": (4, _write_flag), "schema": (5, _write_schema)}
)
_RESPONSE = _Message(5, {"description": (1, _write_text), "schema": (2, _wrapped(1, _write_schema))})
_OPERATION = _Message(
    13,
    {
        "tags": (1, _repeated(_write_text)),
        "operationId": (5, _write_text),
        "produces": (6, _repeated(_write_text)),
        "consumes": (7, _repeated(_write_text)),
        "parameters": (8, _repeated(_write_parameter)),
        "responses": (9, _wrapped(1, _named_values(_wrapped(1, _message_writer(_RESPONSE))))),
        "schemes": (10, _repeated(_write_text)),
    },
)
_PATH = _Message(
    10,
    {
        "get": (2, _message_writer(_OPERATION)),
        "put": (3, _message_writer(_OPERATION)),
        "post": (4, _message_writer(_OPERATION)),
        "delete": (5, _message_writer(_OPERATION)),
        "patch": (8, _message_writer(_OPERATION)),
        "parameters": (9, _repeated(_write_parameter)),
    },
)
_API_KEY = _Message(5, {"type": (1, _write_text), "name": (2, _write_text), "in": (3, _write_text)})
_DOCUMENT = _Message(
    16,
    {
        "swagger": (1, _write_text),
        "info": (2, _message_writer(_Message(7, {"title": (1, _write_text), "version": (2, _write_text)}))),
        "paths": (8, _wrapped(2, _named_values(_message_writer(_PATH)))),
        "definitions": (9, _wrapped(1, _named_values(_write_schema))),
        "security": (12, _repeated(_wrapped(1, _named_values(_wrapped(1, _repeated(_write_text)))))),
        "securityDefinitions": (13, _wrapped(1, _named_values(_wrapped(2, _message_writer(_API_KEY))))),
    },
)
