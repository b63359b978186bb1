"""Ranges are decimal: no step is lost to binary fractions, and labels are short."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.experiments.description.ranges import expand_range

UNITS = st.sampled_from(["", "ms", "s", "h"])


@given(
    first=st.integers(-50, 50), step=st.integers(1, 30), count=st.integers(1, 40), places=st.integers(0, 3), unit=UNITS
)
def test_a_range_contains_both_ends_and_every_step_between(
    first: int, step: int, count: int, places: int, unit: str
) -> None:
    low, by = Decimal(first).scaleb(-places), Decimal(step).scaleb(-places)
    high = low + (count - 1) * by

    values = expand_range({"from": f"{low}{unit}", "to": f"{high}{unit}", "step": f"{by}{unit}"})

    assert [Decimal(str(value).removesuffix(unit)) for value in values] == [low + n * by for n in range(count)]


def test_a_tenth_added_ten_times_is_one() -> None:
    assert expand_range({"from": 0, "to": 1, "step": 0.1}) == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]


def test_an_end_between_two_steps_is_excluded() -> None:
    assert expand_range({"from": 1, "to": 10, "step": 4}) == [1, 5, 9]


def test_durations_are_written_in_the_unit_of_the_step() -> None:
    assert expand_range({"from": 0, "to": "1s", "step": "250ms"}) == ["0ms", "250ms", "500ms", "750ms", "1000ms"]


def test_digits_give_a_value_each_per_decade() -> None:
    values = expand_range({"from": "10ms", "to": "2s", "digits": [1, 2, 5]})

    assert values == ["10ms", "20ms", "50ms", "100ms", "200ms", "500ms", "1000ms", "2000ms"]


@given(low=st.integers(-3, 3), decades=st.integers(0, 4))
def test_nine_digits_give_nine_values_per_decade(low: int, decades: int) -> None:
    first = Decimal(1).scaleb(low)

    values = expand_range({"from": str(first), "to": str(first.scaleb(decades) * 9), "digits": list(range(1, 10))})

    expected = [Decimal(digit).scaleb(low + power) for power in range(decades + 1) for digit in range(1, 10)]
    assert [Decimal(str(value)) for value in values] == expected


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"from": 1, "step": 1}, "needs 'to'"),
        ({"from": 1, "to": 2}, "either 'step' or 'digits'"),
        ({"from": 1, "to": 2, "step": 1, "digits": [1]}, "either 'step' or 'digits'"),
        ({"from": 3, "to": 2, "step": 1}, "before it starts"),
        ({"from": 1, "to": 2, "step": 0}, "more than 0"),
        ({"from": 1, "to": 2, "step": -1}, "more than 0"),
        ({"from": 0, "to": 1, "step": "1us"}, "mixes durations with plain numbers"),
        ({"from": "0s", "to": "1h", "step": "1us"}, "values; choose a larger step"),
        ({"from": "soon", "to": 2, "step": 1}, "neither a number nor a duration"),
        ({"from": True, "to": 2, "step": 1}, "neither a number nor a duration"),
        ({"from": 0, "to": 2, "digits": [1]}, "must start above 0"),
        ({"from": 1, "to": 2, "digits": [10]}, "from 1 to below 10"),
        ({"from": 1, "to": 2, "digits": [2, 1]}, "ascending"),
        ({"from": 1, "to": 2, "digits": []}, "ascending"),
    ],
)
def test_an_invalid_range_is_rejected_with_the_reason(content: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        expand_range(content)
