"""Cells of a report's tables that hold a number of runs."""

from __future__ import annotations

from batkube.experiments.figures.numbers import mean_and_spread
from batkube.outputs.measures.intervals import Sample
from batkube.outputs.measures.number_columns import Column
from batkube.outputs.pages.markup import element, join
from batkube.outputs.pages.tables import Cell

#: What a mark looks like, and what it says.
_MARKS = {
    "best": ("★", "the best"),
    "alike": ("≈", "no clear difference to the best"),
    "void": ("✗", "over-allocated: no possible schedule"),
    "": ("", None),
}


def mean_cell(sample: Sample | None, column: Column, mark: str = "") -> Cell:
    """Return a cell with a mean, its interval, and the mark `best`, `alike` or `void`."""
    if sample is None:
        return Cell("–")
    mean, spread = mean_and_spread(sample, column)
    sign, meaning = _MARKS[mark]
    content = join(
        (
            mean,
            element("span", f" {spread}", class_="spread") if spread else None,
            element("span", sign, class_="mark", title=meaning),
        )
    )
    return Cell(content, sample.mean, "best" if mark == "best" else "")


def value_cell(value: float, column: Column) -> Cell:
    """Return a cell with the number of one run, as the tables of runs hold it."""
    if value != value:
        return Cell("–")
    number = value * column.factor
    return Cell(f"{number:,.{column.decimals}f}", number)
