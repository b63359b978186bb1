"""Protobuf's varints, tags and unknown fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.protobuf.varints import (
    BYTES,
    END_GROUP,
    FIXED32,
    FIXED64,
    START_GROUP,
    UINT64,
    VARINT,
    WireError,
    encode_signed_varint,
    encode_varint,
    field_tag,
    length_delimited,
    read_varint,
    skip_field,
)


@pytest.mark.parametrize(
    ("number", "encoded"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (150, "9601"), (300, "ac02"), (UINT64, "ff" * 9 + "01")],
)
def test_varints_are_encoded_as_in_the_documentation_of_protobuf(number: int, encoded: str) -> None:
    assert encode_varint(number).hex() == encoded


@given(st.integers(0, UINT64), st.binary(max_size=3), st.binary(max_size=3))
def test_a_varint_is_read_where_it_was_written(number: int, before: bytes, after: bytes) -> None:
    encoded = encode_varint(number)

    assert read_varint(before + encoded + after, len(before)) == (number, len(before) + len(encoded))


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_integers_are_in_twos_complement(number: int) -> None:
    encoded = encode_signed_varint(number)

    assert read_varint(encoded, 0)[0] == number % 2**64
    assert number >= 0 or len(encoded) == 10


def test_a_varint_of_more_than_ten_bytes_is_rejected() -> None:
    with pytest.raises(WireError, match="integer overflow"):
        read_varint(b"\xff" * 10 + b"\x01", 0)


def test_the_end_of_the_data_within_a_varint_raises_index_error() -> None:
    with pytest.raises(IndexError):
        read_varint(b"\x80\x80", 0)


def test_a_field_has_a_tag_and_bytes_have_a_length() -> None:
    assert length_delimited(field_tag(2, BYTES), b"testing").hex() == "120774657374696e67"


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (VARINT, encode_varint(300)),
        (FIXED64, bytes(8)),
        (FIXED32, bytes(4)),
        (BYTES, b"\x03abc"),
        (START_GROUP, field_tag(1, VARINT) + b"\x05" + field_tag(9, END_GROUP)),
        (
            START_GROUP,
            field_tag(1, START_GROUP)
            + field_tag(1, FIXED32)
            + bytes(4)
            + field_tag(1, END_GROUP)
            + field_tag(9, END_GROUP),
        ),
    ],
    ids=["varint", "fixed64", "fixed32", "bytes", "group", "nested group"],
)
def test_an_unknown_field_is_skipped_to_its_end(wire: int, body: bytes) -> None:
    assert skip_field(b"?" + body + b"rest", 1, wire) == 1 + len(body)


@pytest.mark.parametrize(("wire", "problem"), [(END_GROUP, "unexpected end of group"), (7, "illegal wireType 7")])
def test_an_invalid_field_is_rejected(wire: int, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        skip_field(b"\x00", 0, wire)
