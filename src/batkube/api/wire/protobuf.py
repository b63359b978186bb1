"""Kubernetes' protobuf serialization, which kube-scheduler and other Go clients use.

A message does not contain its type, so an object is sent in an envelope: four magic bytes and a `runtime.Unknown`
message with apiVersion, kind and the object's message. The events of a watch are `WatchEvent` messages around such
envelopes, each preceded by its length.
(Kubernetes: apimachinery/pkg/runtime/serializer/protobuf/protobuf.go, apimachinery/pkg/util/framer.)

Custom resources and Tables have no protobuf form.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from batkube.api.wire.decoding import message_decoder_of
from batkube.api.wire.encoding import message_encoder_of
from batkube.api.wire.values import fields, go_text
from batkube.cluster.schemas import Schema
from batkube.cluster.store import KubeObject
from batkube.protobuf.varints import UnexpectedEnd, WireError, length_delimited

__all__ = [
    "Envelope",
    "WireError",
    "decode",
    "decode_envelope",
    "encode",
    "unwrap",
    "watch_frame",
    "wrap",
    "wrap_version",
]

#: The prefix of an envelope (Kubernetes: protoEncodingPrefix).
MAGIC = b"k8s\0"
#: The end of every envelope: empty contentEncoding and contentType.
_EMPTY_CONTENT = b"\x1a\0\x22\0"


class Envelope(msgspec.Struct, frozen=True):
    """An enveloped object, whose message is not decoded."""

    api_version: str
    kind: str
    #: The object's message, without apiVersion and kind.
    raw: bytes


def encode(value: KubeObject, schema: Schema) -> bytes:
    """Return the message of an object, without apiVersion and kind."""
    return message_encoder_of(schema)(value)


def decode(data: bytes, schema: Schema) -> dict[str, Any]:
    """Return the object in a message in canonical form; raises WireError."""
    try:
        return message_decoder_of(schema)(data, 0, len(data))
    except IndexError:
        raise UnexpectedEnd from None
    except RecursionError:
        raise WireError("proto: exceeded max depth") from None


def wrap(value: KubeObject, schema: Schema) -> bytes:
    """Return an object or list in its envelope."""
    return _envelope(value, encode(value, schema))


def wrap_version(value: KubeObject, version: int, schema: Schema) -> bytes:
    """Return a stored object in its envelope, with the resourceVersion that clients see."""
    return _envelope(value, message_encoder_of(schema).with_version(value, version))


def _envelope(value: KubeObject, message: bytes) -> bytes:
    type_meta = _type_meta(value.get("apiVersion", ""), value.get("kind", ""))
    return MAGIC + type_meta + length_delimited(b"\x12", message) + _EMPTY_CONTENT


@functools.lru_cache(1024)
def _type_meta(api_version: str, kind: str) -> bytes:
    names = length_delimited(b"\x0a", api_version.encode()) + length_delimited(b"\x12", kind.encode())
    return length_delimited(b"\x0a", names)


def unwrap(data: bytes) -> Envelope:
    """Return the content of an envelope without decoding its message; raises WireError."""
    if not data:
        raise WireError("empty data")
    if not data.startswith(MAGIC):
        expected = " ".join(str(byte) for byte in MAGIC)
        raise WireError(f"provided data does not appear to be a protobuf message, expected prefix [{expected}]")
    if len(data) == len(MAGIC):
        raise WireError("empty body")
    type_meta, raw = _byte_fields(data[len(MAGIC) :])
    api_version, kind = _byte_fields(type_meta)
    return Envelope(go_text(api_version), go_text(kind), raw)


def _byte_fields(data: bytes) -> tuple[bytes, bytes]:
    """Return the length-delimited fields 1 and 2 of a message."""
    try:
        by_number = dict(fields(data, 0, len(data)))
    except IndexError:
        raise UnexpectedEnd from None
    first, second = by_number.get(1, b""), by_number.get(2, b"")
    if not isinstance(first, bytes) or not isinstance(second, bytes):
        raise WireError("proto: wrong wireType = 0 for field TypeMeta")
    return first, second


def decode_envelope(data: bytes, schema: Schema) -> KubeObject:
    """Return the object in an envelope, with its kind and apiVersion if they are set; raises WireError.

    If the kind is not that of `schema`, only kind and apiVersion are returned, for the caller's error message.
    """
    envelope = unwrap(data)
    type_meta = {"kind": envelope.kind, "apiVersion": envelope.api_version}
    value: KubeObject = {field: text for field, text in type_meta.items() if text}
    if not envelope.kind or envelope.kind == schema.go.rpartition(".")[2]:
        value.update(decode(envelope.raw, schema))
    return value


def watch_frame(change: str, enveloped: bytes) -> bytes:
    """Return a watch event (`ADDED`, …, `BOOKMARK`, `ERROR`) that contains an enveloped object."""
    event = length_delimited(b"\x0a", change.encode()) + length_delimited(b"\x12", length_delimited(b"\x0a", enveloped))
    return len(event).to_bytes(4) + event
