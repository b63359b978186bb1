"""Integers as protobuf writes them: seven bits a byte, the lowest first, the high bit set on all but the last."""

from __future__ import annotations

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)
"""The wire types, the low three bits of every tag: how to find the end of the field."""

#: What a varint can hold.
UINT64 = (1 << 64) - 1


class WireError(ValueError):
    """The bytes are not a message of the expected type; the text is what Go says of them."""


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


#: Most lengths and many values are small, and looked up.
_SMALL_VARINTS = [_encode_varint(number) for number in range(1 << 11)]


def encode_varint(number: int) -> bytes:
    """Return a number that is not negative."""
    return _SMALL_VARINTS[number] if number < 1 << 11 else _encode_varint(number)


def encode_signed_varint(number: int) -> bytes:
    """Return a number of at most 64 bits; negative ones take ten bytes, as two's complement, int32 too."""
    return encode_varint(number & UINT64)


def field_tag(number: int, wire: int) -> bytes:
    """Return what precedes the field `number`."""
    return encode_varint(number << 3 | wire)


def length_delimited(prefix: bytes, body: bytes) -> bytes:
    """Return a field whose length is told: its tag, the length, the bytes."""
    return prefix + encode_varint(len(body)) + body


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number at `position` and where it ends; raises IndexError at the end of the data."""
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
    """Return where a field that nobody knows ends; groups, long out of use, may nest."""
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
