"""Indexes of Jobs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.groups.batch.job_policies import BadIndexes, parse_indexes


@given(st.sets(st.integers(0, 50)))
def test_formatted_indexes_parse_back(indexes: set[int]) -> None:
    ordered = sorted(indexes)
    text = ",".join(str(index) for index in ordered)

    assert parse_indexes(text, 51) == [(index, index) for index in ordered]


@pytest.mark.parametrize("text", ["3,2", "1-1", "9", "a", "1-2-3"])
def test_indexes_out_of_order_or_range_are_rejected(text: str) -> None:
    with pytest.raises(BadIndexes):
        parse_indexes(text, 9)
