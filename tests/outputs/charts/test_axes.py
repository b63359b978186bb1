"""Ticks and labels of axes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from batkube.outputs.charts.axes import format_axis


def ticks(low: float, high: float, unit: str, **options: Any) -> tuple[list[str], str]:  # noqa: ANN401
    """Return the labels of the ticks of an axis between two values, and the label of the axis."""
    axes = Figure().subplots()
    if options.get("is_log"):
        axes.set_xscale("log")
    axes.set_xlim(low, high)
    format_axis(axes.xaxis, "wait", unit, **options)
    positions = [tick for tick in axes.xaxis.get_majorticklocs() if low <= tick <= high]
    return list(axes.xaxis.get_major_formatter().format_ticks(positions)), axes.get_xlabel()


@pytest.mark.parametrize(
    ("low", "high", "unit", "options", "labels", "name"),
    [
        (0, 0.1, "s", {}, ["0", "20", "40", "60", "80", "100"], "wait (ms)"),
        (2200, 2300, "s", {}, ["2,200", "2,220", "2,240", "2,260", "2,280", "2,300"], "wait (s)"),
        (0, 2400, "s", {}, ["0", "10", "20", "30", "40"], "wait (min)"),
        (0, 90000, "s", {}, ["0", "6", "12", "18", "24"], "wait (h)"),
        (0, 864000, "s", {}, ["0", "2", "4", "6", "8", "10"], "wait (d)"),
        (0, 100, "s", {"shared_limits": (0, 180)}, ["0", "0.25", "0.5", "0.75", "1", "1.25", "1.5"], "wait (min)"),
        (0, 4000, "s", {"shared_limits": (0, 9000)}, ["0", "10", "20", "30", "40", "50", "60"], "wait (min)"),
        (0, 4000, "s", {"shared_limits": (0, 11000)}, ["0", "0.2", "0.4", "0.6", "0.8", "1"], "wait (h)"),
        (0, 3, "", {"is_whole": True}, ["0", "1", "2", "3"], "wait"),
        (0.01, 9000, "s", {"is_log": True}, ["10 ms", "100 ms", "1 s", "10 s", "1 min", "10 min", "1 h"], "wait"),
        (1, 8, "", {"is_log": True}, ["1", "2", "5"], "wait"),
    ],
)
def test_ticks_are_round_numbers_in_a_readable_unit(
    low: float, high: float, unit: str, options: dict[str, Any], labels: list[str], name: str
) -> None:
    assert ticks(low, high, unit, **options) == (labels, name)


@settings(max_examples=25)
@given(st.floats(1e-3, 1e6), st.floats(1.5, 1e4))
def test_the_number_of_ticks_is_limited(low: float, factor: float) -> None:
    for unit in ("s", "%"):
        for is_log in (False, True):
            labels, _ = ticks(low, low * factor, unit, is_log=is_log)
            assert len(labels) <= 9
            assert len(set(labels)) == len(labels)


def test_no_tick_is_beyond_the_largest_possible_value() -> None:
    assert ticks(0, 140, "%", max_tick=100)[0] == ["0", "20", "40", "60", "80", "100"]
