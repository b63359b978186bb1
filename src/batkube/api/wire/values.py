"""Values that are messages in protobuf and simpler in JSON: quantities, times, IntOrString and the like.

Each type has an encoder from JSON to the body of its message, and a decoder. (Kubernetes: the files *_proto.go and
generated.pb.go of apimachinery's api/resource, apis/meta/v1, util/intstr and runtime.)
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from batkube.api.decoding.stored_quantities import InvalidQuantity, stored_quantity
from batkube.cluster.schemas import Shape
from batkube.kernel.instants import (
    EPOCH,
    NANOSECONDS_PER_SECOND,
    Instant,
    instant_of,
    rfc3339,
    rfc3339_micro,
)
from batkube.kernel.memo import memoized
from batkube.protobuf.varints import (
    BYTES,
    VARINT,
    UnexpectedEnd,
    WireError,
    encode_signed_varint,
    length_delimited,
    read_varint,
    skip_field,
)
from batkube.text.go_times import format_go_duration

Json = Any
"""Any JSON value."""

_EPOCH_SECONDS = int(EPOCH.timestamp())
#: Years 1 to 9999, the range of RFC 3339.
_MIN_SECOND, _MAX_SECOND = -62135596800, 253402300799

#: A component of a duration in Go's format.
_DURATION_PART = re.compile(r"([0-9]+)\.?([0-9]*)(ns|µs|ms|s|m|h)")
_UNIT_NS = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int | bytes]]:
    """Yield the numbers and values of a message's fields: integers, or bytes for length-delimited fields."""
    position = start
    while position < end:
        key, position = read_varint(data, position)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, position = read_varint(data, position)
            yield number, value
        elif wire == BYTES:
            length, position = read_varint(data, position)
            yield number, data[position : position + length]
            position += length
        else:
            position = skip_field(data, position, wire)
    if position != end:
        raise UnexpectedEnd


def as_signed(number: int, bits: int) -> int:
    """Return the low `bits` of a varint as a signed integer, Go's int32 or int64."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def go_text(data: bytes) -> str:
    """Decode UTF-8 as Go prints it, with invalid bytes replaced."""
    return data.decode("utf-8", "replace")


@memoized(4096)
def encode_quantity(value: str) -> bytes:
    """Encode a quantity, whose message contains its text."""
    return length_delimited(b"\x0a", str(value).encode())


@memoized(4096)
def _decode_quantity(body: bytes) -> str:
    text = dict(fields(body, 0, len(body))).get(1, b"")
    if not isinstance(text, bytes):
        raise WireError("proto: wrong wireType = 0 for field String_")
    try:
        return stored_quantity(go_text(text)) if text else "0"
    except InvalidQuantity as problem:
        raise WireError(str(problem)) from None


def encode_int_or_string(value: int | str) -> bytes:
    """Encode an IntOrString: its type, the integer and the string, all three always written."""
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + length_delimited(b"\x1a", value.encode())
    return b"\x08\x00\x10" + encode_signed_varint(value) + b"\x1a\x00"


def _decode_int_or_string(body: bytes) -> int | str:
    by_number = dict(fields(body, 0, len(body)))
    kind, text, number = by_number.get(1, 0), by_number.get(3, b""), by_number.get(2, 0)
    if kind == 0 and isinstance(number, int):
        return as_signed(number, 32)
    if kind == 1 and isinstance(text, bytes):
        return go_text(text)
    raise WireError(f"impossible IntOrString.Type {kind!r}")


@memoized(4096)
def encode_time(timestamp: str | None) -> bytes:
    """Encode a Time as whole seconds since 1970; the zero time is empty."""
    return _encode_instant(timestamp, is_whole=True) if timestamp else b""


@memoized(4096)
def encode_micro_time(timestamp: str | None) -> bytes:
    """Encode a MicroTime as seconds and nanoseconds, the latter a multiple of 1000."""
    return _encode_instant(timestamp, is_whole=False) if timestamp else b""


def _encode_instant(timestamp: str, *, is_whole: bool) -> bytes:
    seconds, nanoseconds = divmod(instant_of(timestamp), NANOSECONDS_PER_SECOND)
    written_ns = 0 if is_whole else nanoseconds
    return b"\x08" + encode_signed_varint(seconds + _EPOCH_SECONDS) + b"\x10" + encode_signed_varint(written_ns)


def _decode_instant(body: bytes) -> Instant | None:
    by_number = dict(fields(body, 0, len(body)))
    seconds, nanoseconds = by_number.get(1, 0), by_number.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanoseconds, int):
        raise WireError("proto: wrong wireType = 2 for field Seconds")
    seconds, nanoseconds = as_signed(seconds, 64), as_signed(nanoseconds, 32)
    if not _MIN_SECOND <= seconds <= _MAX_SECOND or not 0 <= nanoseconds < NANOSECONDS_PER_SECOND:
        raise WireError("Time.MarshalJSON: year outside of range [0,9999]")
    # Go's zero time, the first second of year 1, means unset.
    if seconds == _MIN_SECOND and not nanoseconds:
        return None
    return Instant((seconds - _EPOCH_SECONDS) * NANOSECONDS_PER_SECOND + nanoseconds)


@memoized(4096)
def _decode_time(body: bytes) -> str | None:
    instant = _decode_instant(body) if body else None
    return None if instant is None else rfc3339(instant)


@memoized(4096)
def _decode_micro_time(body: bytes) -> str | None:
    instant = _decode_instant(body) if body else None
    return None if instant is None else rfc3339_micro(instant)


def encode_duration(text: str) -> bytes:
    """Encode a Duration in Go's format, such as `1m30s`, as nanoseconds."""
    total = 0
    for whole, fraction, unit in _DURATION_PART.findall(text):
        total += int(whole) * _UNIT_NS[unit] + int(fraction or 0) * _UNIT_NS[unit] // 10 ** len(fraction)
    return b"\x08" + encode_signed_varint(-total if text.startswith("-") else total)


def _decode_duration(body: bytes) -> str:
    number = dict(fields(body, 0, len(body))).get(1, 0)
    if not isinstance(number, int):
        raise WireError("proto: wrong wireType = 2 for field Duration")
    ns = as_signed(number, 64)
    return "-" + format_go_duration(-ns) if ns < 0 else format_go_duration(ns)


def encode_raw(value: Json) -> bytes:
    """Encode free-form JSON (RawExtension, FieldsV1, apiextensions' JSON) as its text."""
    return b"" if value is None else length_delimited(b"\x0a", msgspec.json.encode(value))


def _decode_raw(body: bytes) -> Json:
    raw = dict(fields(body, 0, len(body))).get(1)
    if not isinstance(raw, bytes) or not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise WireError(str(problem)) from problem


def decode_base64(value: str) -> bytes:
    """Decode a base64 string."""
    return base64.b64decode(value)


def encode_base64(data: bytes) -> str:
    """Encode bytes as base64."""
    return binascii.b2a_base64(data, newline=False).decode()


#: The encoder and the decoder of each type's body.
BODY_WRITERS: dict[Shape, Callable[[Json], bytes]] = {
    Shape.QUANTITY: encode_quantity,
    Shape.INT_OR_STRING: encode_int_or_string,
    Shape.TIME: encode_time,
    Shape.MICRO_TIME: encode_micro_time,
    Shape.DURATION: encode_duration,
    Shape.ANY: encode_raw,
    Shape.BYTES: decode_base64,
}
BODY_READERS: dict[Shape, Callable[[bytes], Json]] = {
    Shape.QUANTITY: _decode_quantity,
    Shape.INT_OR_STRING: _decode_int_or_string,
    Shape.TIME: _decode_time,
    Shape.MICRO_TIME: _decode_micro_time,
    Shape.DURATION: _decode_duration,
    Shape.ANY: _decode_raw,
    Shape.BYTES: encode_base64,
}
#: The zero values of types that are not pointers in Go, in JSON.
ZERO_VALUES: dict[Shape, Json] = {
    Shape.STRING: "",
    Shape.INTEGER: 0,
    Shape.NUMBER: 0.0,
    Shape.BOOLEAN: False,
    Shape.QUANTITY: "0",
    Shape.INT_OR_STRING: 0,
    Shape.DURATION: "0s",
}
