"""Instants, amounts and lists of names in sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.quantities import CPU, MEMORY
from batkube.outputs.explain.phrases import MAX_NAMES, amount_text, end_text, exact_time, name_list

_UNITS_S = {"h": 3600, "min": 60, "s": 1}


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 s"),
        (6_020_500_000_000, "1 h 40 min 20.5 s"),
        (3_600_000_000_000, "1 h"),
        (1_000, "0.000001 s"),
        (-90_000_000_000, "-1 min 30 s"),
    ],
)
def test_times_have_hours_minutes_and_seconds(ns: int, text: str) -> None:
    assert exact_time(ns) == text


@given(st.integers(0, 10**13))
def test_a_time_is_exact_to_the_microsecond(time_us: int) -> None:
    words = exact_time(time_us * 1000).split()

    total_us = sum(round(float(count) * _UNITS_S[unit] * 10**6) for count, unit in zip(*[iter(words)] * 2, strict=True))
    assert total_us == time_us


def test_an_open_end_is_the_end_of_the_run() -> None:
    assert (end_text(None), end_text(2 * 10**9)) == ("the end of the run", "2 s")


@pytest.mark.parametrize(
    ("names", "text"), [([], "nothing"), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_short_lists_are_complete(names: list[str], text: str) -> None:
    assert name_list(names) == text


def test_a_long_list_has_its_first_names_and_the_number_of_the_others() -> None:
    assert name_list([str(number) for number in range(MAX_NAMES + 3)]) == "0, 1, 2, 3, 4 and 3 more"


def test_amounts_are_cores_gibibytes_or_whole_units() -> None:
    assert amount_text(CPU, 1500) == "1.5"
    assert amount_text(MEMORY, 3 * 2**29) == "1.5 GiB"
    assert amount_text("nvidia.com/gpu", 12_000) == "12,000"
