"""Cells with numbers in the tables of a report."""

from __future__ import annotations

from batkube.experiments.figures.number_format import format_mean_and_interval
from batkube.experiments.report.grid_points import BEST, MEANINGS_OF_MARKS
from batkube.outputs.measures.comparisons.comparability import Comparability
from batkube.outputs.measures.intervals import Sample
from batkube.outputs.measures.metric_columns import MetricColumn
from batkube.outputs.pages.html_tables import Cell
from batkube.outputs.pages.markup import element, join

#: Meanings of the marks.
_MEANINGS = {
    BEST: "the best",
    **MEANINGS_OF_MARKS,
    **{comparability.sign: comparability.meaning or None for comparability in Comparability},
}


def mean_cell(sample: Sample | None, column: MetricColumn, mark: str = "") -> Cell:
    """Return a cell with a mean, its interval, and its mark."""
    if sample is None:
        return Cell("–")
    mean, spread = format_mean_and_interval(sample, column)
    content = join(
        (
            mean,
            element("span", f" {spread}", class_="spread") if spread else None,
            element("span", mark, class_="mark", title=_MEANINGS[mark]),
        )
    )
    return Cell(content, sample.mean, "best" if mark == BEST else "")


def value_cell(value: float, column: MetricColumn) -> Cell:
    """Return a cell with the number of one run."""
    if value != value:
        return Cell("–")
    number = value * column.factor
    return Cell(f"{number:,.{column.decimals}f}", number)
