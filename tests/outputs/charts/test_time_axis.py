"""Ticks of time axes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.outputs.charts.time_axis import time_axis


@pytest.mark.parametrize(
    ("end_s", "unit", "labels"),
    [
        (10, "s", ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]),
        (0.5, "s", ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]),
        (2210, "min", ["0", "5", "10", "15", "20", "25", "30", "35"]),
        (32554, "h", ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]),
        (86400 * 30, "d", ["0", "5", "10", "15", "20", "25", "30"]),
        (86400 * 1268, "d", ["0", "200", "400", "600", "800", "1000", "1200"]),
    ],
)
def test_the_unit_is_readable(end_s: float, unit: str, labels: list[str]) -> None:
    axis = time_axis(0, end_s)

    assert axis.unit == unit
    assert list(axis.labels) == labels


@given(st.floats(0, 1e8), st.floats(1e-3, 1e9))
def test_a_time_axis_always_has_a_few_ticks_inside(start: float, length: float) -> None:
    axis = time_axis(start, start + length)

    assert len(axis.ticks_s) <= 12
    slack = (start + length) * 1e-6 + length * 1e-6
    assert all(start - slack <= tick <= start + length + slack for tick in axis.ticks_s)
