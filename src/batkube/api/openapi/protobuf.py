"""The OpenAPI document of version 2 as protobuf, the only form in which many clients ask for it.

kubectl before 1.27 validates and explains with it, and newer ones fall back to it to learn that a kind is not served at
all. The messages are those of gnostic (github.com/google/gnostic-models, openapiv2/OpenAPIv2.proto); the tables below
tell, for each key of the document, the number of its field and how its value is written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import msgspec

from batkube.api.wire.varints import BYTES, FIXED64, VARINT, delimited, signed_varint, tag

Document = dict[str, Any]
Write = Callable[[int, Any], bytes]
"""Writes a value as the field of a number."""

MEDIA_TYPES = (
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
)


def to_protobuf(swagger: Document) -> bytes:
    """Return a document of version 2 as its message."""
    return _body(_DOCUMENT, swagger)


# How values are written


def _text(number: int, value: str) -> bytes:
    return delimited(tag(number, BYTES), value.encode())


def _flag(number: int, value: bool) -> bytes:
    return tag(number, VARINT) + (b"\1" if value else b"\0")


def _count(number: int, value: int) -> bytes:
    return tag(number, VARINT) + signed_varint(value)


def _amount(number: int, value: float) -> bytes:
    return tag(number, FIXED64) + struct.pack("<d", value)


def _anything(number: int, value: object) -> bytes:
    """Write any value: as YAML, of which JSON is a part."""
    return delimited(tag(number, BYTES), _text(2, msgspec.json.encode(value).decode()))


def _each(write: Write) -> Write:
    return lambda number, values: b"".join(write(number, value) for value in values)


def _only(inner: int, write: Write) -> Write:
    """Write a message with this one field."""
    return lambda number, value: delimited(tag(number, BYTES), write(inner, value))


def _named(write: Write) -> Write:
    """Write an object as pairs of name and value."""

    def written(number: int, values: Document) -> bytes:
        return b"".join(
            delimited(tag(number, BYTES), _text(1, name) + write(2, value)) for name, value in values.items()
        )

    return written


class _Message:
    """A message: its fields by key, and the number of the field for the keys that begin with `x-`."""

    def __init__(self, extensions: int, fields: dict[str, tuple[int, Write]]) -> None:
        self.extensions = extensions
        self.fields = fields


def _body(message: _Message, value: Document) -> bytes:
    parts = []
    for key, item in value.items():
        if key.startswith("x-"):
            parts.append(_EXTENSION(message.extensions, {key: item}))
        elif key in message.fields:
            number, write = message.fields[key]
            parts.append(write(number, item))
    return b"".join(parts)


def _as(message: _Message) -> Write:
    return lambda number, value: delimited(tag(number, BYTES), _body(message, value))


def _schema(number: int, value: Document) -> bytes:
    return delimited(tag(number, BYTES), _body(_SCHEMA, value))


def _additional(number: int, value: Document | bool) -> bytes:
    return delimited(tag(number, BYTES), _flag(2, value) if isinstance(value, bool) else _schema(1, value))


def _parameter(number: int, value: Document) -> bytes:
    """Write a parameter, in as many envelopes as its place needs."""
    if value["in"] == "body":
        within = _as(_BODY_PARAMETER)(1, value)
    else:
        message, place = (_PATH_PARAMETER, 4) if value["in"] == "path" else (_QUERY_PARAMETER, 3)
        within = delimited(tag(2, BYTES), _as(message)(place, value))
    return delimited(tag(number, BYTES), delimited(tag(1, BYTES), within))


_EXTENSION = _named(_anything)
_SCHEMA = _Message(
    31,
    {
        "$ref": (1, _text),
        "format": (2, _text),
        "title": (3, _text),
        "description": (4, _text),
        "default": (5, _anything),
        "multipleOf": (6, _amount),
        "maximum": (7, _amount),
        "exclusiveMaximum": (8, _flag),
        "minimum": (9, _amount),
        "exclusiveMinimum": (10, _flag),
        "maxLength": (11, _count),
        "minLength": (12, _count),
        "pattern": (13, _text),
        "maxItems": (14, _count),
        "minItems": (15, _count),
        "uniqueItems": (16, _flag),
        "maxProperties": (17, _count),
        "minProperties": (18, _count),
        "required": (19, _each(_text)),
        "enum": (20, _each(_anything)),
        "additionalProperties": (21, _additional),
        "type": (22, _only(1, _text)),
        "items": (23, _only(1, _schema)),
        "properties": (25, _only(1, _named(_schema))),
        "example": (30, _anything),
    },
)
_PATH_PARAMETER = _Message(
    22, {"required": (1, _flag), "in": (2, _text), "name": (4, _text), "type": (5, _text), "uniqueItems": (19, _flag)}
)
_QUERY_PARAMETER = _Message(23, {"in": (2, _text), "name": (4, _text), "type": (6, _text), "uniqueItems": (20, _flag)})
_BODY_PARAMETER = _Message(6, {"name": (2, _text), "in": (3, _text), "required": (4, _flag), "schema": (5, _schema)})
_RESPONSE = _Message(5, {"description": (1, _text), "schema": (2, _only(1, _schema))})
_OPERATION = _Message(
    13,
    {
        "tags": (1, _each(_text)),
        "operationId": (5, _text),
        "produces": (6, _each(_text)),
        "consumes": (7, _each(_text)),
        "parameters": (8, _each(_parameter)),
        "responses": (9, _only(1, _named(_only(1, _as(_RESPONSE))))),
        "schemes": (10, _each(_text)),
    },
)
_PATH = _Message(
    10,
    {
        "get": (2, _as(_OPERATION)),
        "put": (3, _as(_OPERATION)),
        "post": (4, _as(_OPERATION)),
        "delete": (5, _as(_OPERATION)),
        "patch": (8, _as(_OPERATION)),
        "parameters": (9, _each(_parameter)),
    },
)
_API_KEY = _Message(5, {"type": (1, _text), "name": (2, _text), "in": (3, _text)})
_DOCUMENT = _Message(
    16,
    {
        "swagger": (1, _text),
        "info": (2, _as(_Message(7, {"title": (1, _text), "version": (2, _text)}))),
        "paths": (8, _only(2, _named(_as(_PATH)))),
        "definitions": (9, _only(1, _named(_schema))),
        "security": (12, _each(_only(1, _named(_only(1, _each(_text)))))),
        "securityDefinitions": (13, _only(1, _named(_only(2, _as(_API_KEY))))),
    },
)
