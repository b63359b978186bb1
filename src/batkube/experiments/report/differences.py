"""How far the points of an experiment's grid are apart, with intervals: what a claim of "better" rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from batkube.experiments.figures.numbers import mean_and_spread
from batkube.experiments.report.grid_points import GridPoint, by_task, difference_between, grid_points
from batkube.experiments.report.results import columns_with_numbers
from batkube.experiments.results.findings import Findings
from batkube.outputs.measures.intervals import Difference, Sample
from batkube.outputs.measures.number_columns import Column
from batkube.outputs.pages.markup import Markup, element, join
from batkube.outputs.pages.page import Section, folded_if_long, paragraph
from batkube.outputs.pages.tables import Cell, Heading, table

#: More rows than this are for looking up.
_FEW_ROWS = 60


def differences_section(findings: Findings) -> Section | None:
    """Return each point's differences to the first one with the same task; None when nothing can be told apart."""
    columns = [column for column in columns_with_numbers(findings) if column.better]
    points = grid_points(findings, columns)
    rows = [row for group in by_task(points) for row in _rows([points[number] for number in group], columns)]
    if not rows:
        return None
    heads = [Heading(name.replace("_", " ")) for name in findings.axes] + [Heading("less")]
    heads.append(Heading("pairs", is_number=True))
    heads += [Heading(column.label, column.unit, is_number=True) for column in columns]
    content = folded_if_long(f"All {len(rows):,} differences", table(heads, rows), count=len(rows), few=_FEW_ROWS)
    return Section("differences", "Differences", join((content, paragraph(_LEGEND, class_="note"))))


_LEGEND = (
    "Each row less the first one with the same workload and platform, seed by seed, ± half the 95 % confidence "
    "interval of the mean difference. In bold where the interval leaves out 0. Rows without pairs are compared as "
    "independent samples (Welch). Schedules that no cluster could have run are left out."
)


def _rows(group: Sequence[GridPoint], columns: Sequence[Column]) -> list[list[Any]]:
    """Return a row for each point but the first, if any of its differences has an interval."""
    possible = [point for point in group if point.is_possible]
    if not possible:
        return []
    first, rows = possible[0], []
    for point in possible[1:]:
        differences = [difference_between(first, point, column) for column in columns]
        if any(differences):
            cells: list[Any] = [Cell(label, kind="label") for label in point.labels.values()]
            cells.append(Cell(_name(first, point), kind="label"))
            cells.append(Cell(max(difference.pairs for difference in differences if difference) or "–"))
            cells += [_cell(difference, column) for difference, column in zip(differences, columns, strict=True)]
            rows.append(cells)
    return rows


def _name(first: GridPoint, point: GridPoint) -> str:
    """Return what the first point has other than the second."""
    return ", ".join(label for axis, label in first.labels.items() if point.labels[axis] != label)


def _cell(difference: Difference | None, column: Column) -> Cell:
    if difference is None:
        return Cell("–")
    low, high = difference.value - difference.half, difference.value + difference.half
    sample = Sample(difference.pairs, difference.value, difference.half, low, high, has_interval=True)
    mean, spread = mean_and_spread(sample, column)
    text: Markup | str = join(
        (f"+{mean}" if difference.value > 0 else mean, element("span", f" {spread}", class_="spread"))
    )
    return Cell(element("strong", text) if difference.is_clear else text, difference.value)
