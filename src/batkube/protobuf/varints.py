"""Protobuf's varints: seven bits per byte, the lowest first, with the high bit set on all bytes but the last."""

from __future__ import annotations

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)
"""The wire types, which are the low three bits of every tag."""

#: The largest varint.
UINT64 = (1 << 64) - 1


class WireError(ValueError):
    """The bytes are not a message of the expected type; the message is Go's."""


class UnexpectedEnd(WireError):
    """A field reaches beyond the end of its message."""

    def __init__(self) -> None:
        super().__init__("unexpected EOF")


def _encode_varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


SMALL_VARINT_COUNT = 1 << 11
#: A table of small varints, which most lengths and many values are.
SMALL_VARINTS = [_encode_varint(number) for number in range(SMALL_VARINT_COUNT)]


def encode_varint(number: int) -> bytes:
    """Encode a non-negative integer."""
    return SMALL_VARINTS[number] if number < SMALL_VARINT_COUNT else _encode_varint(number)


def encode_signed_varint(number: int) -> bytes:
    """Encode an integer of at most 64 bits; negative ones take ten bytes, in two's complement, even for int32."""
    return encode_varint(number & UINT64)


def field_tag(number: int, wire: int) -> bytes:
    """Return the tag of a field."""
    return encode_varint(number << 3 | wire)


def length_delimited(prefix: bytes, body: bytes) -> bytes:
    """Return a length-delimited field: its tag, the length, the bytes."""
    size = len(body)
    return prefix + (SMALL_VARINTS[size] if size < SMALL_VARINT_COUNT else _encode_varint(size)) + body


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the integer at `position` and its end; raises IndexError at the end of the data."""
    byte = data[position]
    if byte < 0x80:
        return byte, position + 1
    number, shift = byte & 0x7F, 7
    while shift < 64:
        position += 1
        byte = data[position]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & UINT64, position + 1
        shift += 7
    raise WireError("proto: integer overflow")


def skip_field(data: bytes, position: int, wire: int) -> int:
    """Return the end of an unknown field. Groups, which are deprecated, may be nested."""
    depth = 0
    while True:
        if wire == VARINT:
            _, position = read_varint(data, position)
        elif wire == FIXED64:
            position += 8
        elif wire == BYTES:
            length, position = read_varint(data, position)
            position += length
        elif wire == START_GROUP:
            depth += 1
        elif wire == END_GROUP:
            if not depth:
                raise WireError("proto: unexpected end of group")
            depth -= 1
        elif wire == FIXED32:
            position += 4
        else:
            raise WireError(f"proto: illegal wireType {wire}")
        if not depth:
            return position
        key, position = read_varint(data, position)
        wire = key & 7
