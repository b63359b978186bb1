"""Completion indexes of Indexed Jobs, as sets and as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.controllers.batch.completion_indexes import first_missing, format_indexes, parse_indexes
from batkube.kernel.intervals import mask_of, members


@given(st.frozensets(st.integers(0, 40)))
def test_the_text_of_indexes_round_trips(indexes: frozenset[int]) -> None:
    mask = mask_of(sorted(indexes))
    assert parse_indexes(format_indexes(mask), 41) == mask
    assert list(members(mask)) == sorted(indexes)


@pytest.mark.parametrize(("indexes", "text"), [([0, 1], "0,1"), ([1, 3, 4, 5, 7], "1,3-5,7"), ([], "")])
def test_indexes_are_formatted_as_the_real_controller_does(indexes: list[int], text: str) -> None:
    assert format_indexes(mask_of(indexes)) == text


def test_the_lowest_missing_indexes_are_used() -> None:
    assert first_missing(mask_of([0, 2]), 2, 5) == [1, 3]
    assert first_missing(mask_of([0, 2]), 9, 5) == [1, 3, 4]
