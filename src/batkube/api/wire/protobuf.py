"""Kubernetes' protobuf: objects as kube-scheduler and other Go clients send and want them.

A message does not say what it is, so an object travels in an envelope: four magic bytes and a
`runtime.Unknown`, which
tells apiVersion and kind and holds the object's own message. The events of a watch are `WatchEvent` messages around
such envelopes, each after its length. (Kubernetes: apimachinery/pkg/runtime/serializer/protobuf, util/framer.)

The messages themselves are made and read by `api.wire`, compiled from the schemas of the kinds; custom resources have
no protobuf. Tables have none either.
"""

from __future__ import annotations

from typing import Any

import msgspec

from batkube.api.wire.decoding import message_decoder_of
from batkube.api.wire.encoding import message_encoder_of
from batkube.api.wire.values import fields, go_text
from batkube.api.wire.varints import UnexpectedEnd, WireError, length_delimited
from batkube.cluster.schemas import Schema
from batkube.cluster.store import KubeObject

__all__ = [
    "Envelope",
    "WireError",
    "decode",
    "decode_envelope",
    "encode",
    "unwrap",
    "watch_frame",
    "wrap",
]

#: What an envelope begins with (Kubernetes: protoEncodingPrefix).
MAGIC = b"k8s\0"
#: The end of every envelope: neither a content encoding nor a content type is told.
_EMPTY_CONTENT = b"\x1a\0\x22\0"


class Envelope(msgspec.Struct, frozen=True):
    """An object that has not been looked into yet."""

    api_version: str
    kind: str
    #: The object's message, without apiVersion and kind.
    raw: bytes


def encode(value: KubeObject, schema: Schema) -> bytes:
    """Return an object's message, which tells neither its apiVersion nor its kind."""
    return message_encoder_of(schema)(value)


def decode(data: bytes, schema: Schema) -> dict[str, Any]:
    """Return the object that a message stands for, in the form in which it is stored; raises WireError."""
    try:
        return message_decoder_of(schema)(data, 0, len(data))
    except IndexError:
        raise UnexpectedEnd from None
    except RecursionError:
        raise WireError("proto: exceeded max depth") from None


def wrap(value: KubeObject, schema: Schema) -> bytes:
    """Return an object, or a list of them, in its envelope."""
    names = (value.get("apiVersion", ""), value.get("kind", ""))
    type_meta = length_delimited(b"\x0a", names[0].encode()) + length_delimited(b"\x12", names[1].encode())
    return (
        MAGIC + length_delimited(b"\x0a", type_meta) + length_delimited(b"\x12", encode(value, schema)) + _EMPTY_CONTENT
    )


def unwrap(data: bytes) -> Envelope:
    """Return what an envelope holds, its message unread; raises WireError."""
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
    """Return the fields 1 and 2 of a message, which both have a length."""
    try:
        by_number = dict(fields(data, 0, len(data)))
    except IndexError:
        raise UnexpectedEnd from None
    one, other = by_number.get(1, b""), by_number.get(2, b"")
    if not isinstance(one, bytes) or not isinstance(other, bytes):
        raise WireError("proto: wrong wireType = 0 for field TypeMeta")
    return one, other


def decode_envelope(data: bytes, schema: Schema) -> KubeObject:
    """Return the object in an envelope, with its kind and apiVersion if they are told; raises WireError.

    An object of another kind than that of `schema` is not read any further, so that the caller can say what it is.
    """
    envelope = unwrap(data)
    type_meta = {"kind": envelope.kind, "apiVersion": envelope.api_version}
    value: KubeObject = {field: text for field, text in type_meta.items() if text}
    if not envelope.kind or envelope.kind == schema.go.rpartition(".")[2]:
        value.update(decode(envelope.raw, schema))
    return value


def watch_frame(change: str, enveloped: bytes) -> bytes:
    """Return an event of a watch (`ADDED`, …, `BOOKMARK`, `ERROR`) around an object in its envelope."""
    event = length_delimited(b"\x0a", change.encode()) + length_delimited(b"\x12", length_delimited(b"\x0a", enveloped))
    return len(event).to_bytes(4) + event
