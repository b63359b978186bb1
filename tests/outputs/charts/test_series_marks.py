"""Appearance of series in print."""

from __future__ import annotations

from batkube.outputs.charts.series_marks import curve_markers, series_mark


def test_64_series_differ_without_their_colours() -> None:
    marks = [series_mark(number) for number in range(64)]

    assert len({(mark.dashes, mark.marker) for mark in marks}) == 64
    for attribute in ("dashes", "marker", "hatch"):
        assert len({getattr(mark, attribute) for mark in marks[:8]}) == 8, attribute


def test_five_and_more_curves_have_markers_at_different_places() -> None:
    assert {curve_markers(number, 4)[0] for number in range(4)} == {""}
    assert len({curve_markers(number, 5) for number in range(5)}) == 5
    assert "" not in {curve_markers(number, 5)[0] for number in range(5)}
