"""Cells of a report's tables that hold a number of runs."""

from __future__ import annotations

from batkube.experiments.figures.numbers import mean_and_spread
from batkube.experiments.report.grid_points import ALIKE, BEST
from batkube.outputs.measures.intervals import Sample
from batkube.outputs.measures.number_columns import Column
from batkube.outputs.measures.standings import Standing
from batkube.outputs.pages.markup import element, join
from batkube.outputs.pages.tables import Cell

#: What a mark says.
_MEANINGS = {
    BEST: "the best",
    ALIKE: "no clear difference to the best",
    **{standing.sign: standing.meaning or None for standing in Standing},
}


def mean_cell(sample: Sample | None, column: Column, mark: str = "") -> Cell:
    """Return a cell with a mean, its interval, and its mark."""
    if sample is None:
        return Cell("–")
    mean, spread = mean_and_spread(sample, column)
    content = join(
        (
            mean,
            element("span", f" {spread}", class_="spread") if spread else None,
            element("span", mark, class_="mark", title=_MEANINGS[mark]),
        )
    )
    return Cell(content, sample.mean, "best" if mark == BEST else "")


def value_cell(value: float, column: Column) -> Cell:
    """Return a cell with the number of one run, as the tables of runs hold it."""
    if value != value:
        return Cell("–")
    number = value * column.factor
    return Cell(f"{number:,.{column.decimals}f}", number)
