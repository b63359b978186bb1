"""Stored quantities; checked against Kubernetes' own type."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.decoding.stored_quantities import InvalidQuantity, stored_quantity
from batkube.kernel.quantities import parse_quantity

QUANTITIES = st.from_regex(r"\A-?[1-9][0-9]{0,8}(\.[0-9]{1,4})?([numkMGTP]|[KMGT]i|e[1-6])?\Z")


@given(QUANTITIES)
def test_a_stored_quantity_has_the_same_value_and_is_stable(text: str) -> None:
    stored = stored_quantity(text)

    assert parse_quantity(stored) == parse_quantity(text)
    assert stored_quantity(stored) == stored


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("100m", "100m"),
        ("1000m", "1"),
        ("1.5", "1500m"),
        ("1.500", "1.500"),
        ("1e3", "1e3"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000Ki", "1000Ki"),
        ("100000", "100k"),
        ("0.1m", "100u"),
        ("05", "05"),
        ("+5", "+5"),
        ("00", "0"),
        ("m", "0"),
        ("+", "0"),
        ("16Ei", "9223372036854775807"),
    ],
)
def test_a_quantity_that_looks_canonical_to_kubernetes_keeps_its_text(text: str, stored: str) -> None:
    assert stored_quantity(text) == stored


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "regular expression"), ("abc", "regular expression"), ("1 Gi", "regular expression"), ("1e", "suffix")],
)
def test_an_invalid_quantity_is_reported(text: str, problem: str) -> None:
    with pytest.raises(InvalidQuantity, match=problem):
        stored_quantity(text)
