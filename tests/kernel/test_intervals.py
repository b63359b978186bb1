from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.intervals import format_intervals, lowest, mask_of, members, parse_intervals, runs

ids = st.sets(st.integers(0, 300))


@given(ids)
def test_a_set_round_trips_through_its_text(numbers: set[int]) -> None:
    mask = mask_of(numbers)

    assert parse_intervals(format_intervals(mask)) == mask
    assert list(members(mask)) == sorted(numbers)


@given(ids)
def test_intervals_are_maximal_disjoint_and_ascending(numbers: set[int]) -> None:
    intervals = list(runs(mask_of(numbers)))

    assert all(first <= last for first, last in intervals)
    assert all(last + 1 < following for (_, last), (following, _) in itertools.pairwise(intervals))


@given(ids.filter(bool), st.data())
def test_the_lowest_ids_are_the_smallest_ones(numbers: set[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(numbers)))

    assert list(members(lowest(mask_of(numbers), count))) == sorted(numbers)[:count]


def test_batsims_forms_are_parsed() -> None:
    assert format_intervals(parse_intervals("1-2 1-3 5")) == "1-3 5"
    assert parse_intervals("") == 0


@pytest.mark.parametrize("text", ["a", "3-1", "1-", "-2", "1--3"])
def test_an_invalid_interval_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="not an interval"):
        parse_intervals(text)
