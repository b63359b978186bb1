"""Parsing of long numbers: same results as Python's, in linear time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.numbers import parse_float, parse_int

DIGITS = st.text("0123456789", min_size=1, max_size=1500)


@given(st.sampled_from(["", "-", "+"]), DIGITS, DIGITS, st.sampled_from(["", "e5", "E-700", "e+1400", "e-99999999999"]))
def test_a_float_is_parsed_as_python_does(sign: str, whole: str, fraction: str, exponent: str) -> None:
    text = f"{sign}{whole * 2}.{fraction}{exponent}"

    assert parse_float(text) == float(text)


@pytest.mark.parametrize("tail", ["", "0" * 2000, "0" * 2000 + "1"])
def test_a_distant_digit_decides_between_two_floats(tail: str) -> None:
    text = "9007199254740993." + "0" * 900 + tail  # half way between two floats

    assert parse_float(text) == float(text)


@pytest.mark.parametrize("text", ["x" * 2000, "1" * 2000 + "x", "." + "e" * 2000, "1e" * 1000])
def test_an_invalid_number_of_any_length_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        parse_float(text)


def test_millions_of_digits_are_parsed_quickly() -> None:
    start = time.process_time()

    assert parse_float("9" * 3_000_000) == float("inf")
    assert parse_int("9" * 3_000_000) is None
    assert time.process_time() - start < 2


@pytest.mark.parametrize(("text", "number"), [("-5", -5), ("+7", 7), ("0" * 5000 + "3", 3), ("9" * 21, None)])
def test_an_integer_with_too_many_digits_is_none(text: str, number: int | None) -> None:
    assert parse_int(text) == number
