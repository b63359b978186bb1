"""How far the points of an experiment's grid are apart, with intervals: what a claim of "better" rests on."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from batkube.experiments.description.columns import TIMINGS
from batkube.experiments.figures.numbers import mean_and_spread
from batkube.experiments.report.grid_points import (
    GridPoint,
    by_task,
    difference_between,
    grid_points,
    standings_of,
)
from batkube.experiments.report.results import columns_with_numbers
from batkube.experiments.results.findings import Findings
from batkube.outputs.measures.intervals import Difference
from batkube.outputs.measures.number_columns import TROUBLES, Column
from batkube.outputs.measures.standings import Standing
from batkube.outputs.pages.markup import Markup, element, join
from batkube.outputs.pages.page import Section, folded_if_long, paragraph
from batkube.outputs.pages.tables import Cell, Heading, table

#: More rows than this are for looking up.
_FEW_ROWS = 60
#: Up to so many points with the same task are compared each with each, more of them each with the first.
_EACH_WITH_EACH = 4
#: No columns of this table: what to know of runs beforehand, and what they cost, in which a busy machine shows.
_UNTOLD = (*TROUBLES, *TIMINGS)
#: What marks a difference that is clear among all comparisons of its column, and one of which most pairs agree.
SURE, ONE_SIGN = "*", "§"


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """How far one point is from another with the same task."""

    labels: Mapping[str, str]
    #: What the other one has other than this.
    less: str
    pairs: int
    #: A difference for each column asked for; None where none can be told.
    differences: Sequence[Difference | None]


def differences_of(findings: Findings, columns: Sequence[Column]) -> list[DifferenceRow]:
    """Return how far points with the same task are apart, where any difference has an interval."""
    points = grid_points(findings, columns)
    return [row for group in by_task(points) for row in _rows([points[number] for number in group], columns)]


def differences_section(findings: Findings) -> Section | None:
    """Return the table of differences; None when nothing can be told apart."""
    columns = [one for one in columns_with_numbers(findings) if one.better and one.name not in _UNTOLD]
    found = differences_of(findings, columns)
    if not found:
        return None
    heads = [Heading(name.replace("_", " ")) for name in findings.axes] + [Heading("less")]
    heads.append(Heading("pairs", is_number=True))
    heads += [Heading(column.label, column.unit, is_number=True) for column in columns]
    counts = comparisons(found)
    rows: list[list[Any]] = []
    for row in found:
        cells: list[Any] = [Cell(label, kind="label") for label in (*row.labels.values(), row.less)]
        cells.append(Cell(row.pairs or "–"))
        cells += [_cell(*one) for one in zip(row.differences, columns, counts, strict=True)]
        rows.append(cells)
    legend = [_LEGEND, _LEGEND_OF_MANY.format(count=max(counts)) if max(counts) > 1 else "", _LEGEND_OF_SIGNS]
    content = folded_if_long(f"All {len(rows):,} differences", table(heads, rows), count=len(rows), few=_FEW_ROWS)
    return Section(
        "differences", "Differences", join((content, paragraph(" ".join(filter(None, legend)), class_="note")))
    )


_LEGEND = (
    "Each row less another with the same workload and platform, seed by seed, ± half the 95 % confidence interval of "
    "the mean difference. In bold where the interval leaves out 0. Rows without pairs are compared as independent "
    "samples (Welch). Who did what no cluster allows, ran fewer jobs than others, or failed where others completed, is "
    "left out."
)
_LEGEND_OF_MANY = (
    f"{SURE} where the interval leaves out 0 even when all {{count}} of its column are to hold at once (Bonferroni)."
)
_LEGEND_OF_SIGNS = (
    f"{ONE_SIGN} where pairs agree in which one is lower: the exact sign test has p < 0.05, however differences are "
    "distributed."
)


def signs_of(difference: Difference, count: int) -> str:
    """Return the marks of a difference among `count` of its column."""
    is_sure = count > 1 and difference.is_clear_among(count)
    return SURE * is_sure + ONE_SIGN * difference.has_one_sign


def _rows(group: Sequence[GridPoint], columns: Sequence[Column]) -> list[DifferenceRow]:
    """Return a row for each two fair points, or each but the first, if any of its differences has an interval."""
    fair = [point for point, one in zip(group, standings_of(group), strict=True) if one is Standing.FAIR]
    rows = []
    for first, point in itertools.combinations(fair, 2):
        if first is not fair[0] and len(fair) > _EACH_WITH_EACH:
            break
        differences = [difference_between(first, point, column) for column in columns]
        if any(differences):
            pairs = max(difference.pairs for difference in differences if difference)
            rows.append(DifferenceRow(point.labels, _name(first, point), pairs, differences))
    return rows


def comparisons(rows: Sequence[DifferenceRow]) -> list[int]:
    """Return how many comparisons there are in each column."""
    return [sum(one is not None for one in column) for column in zip(*(row.differences for row in rows), strict=True)]


def _name(first: GridPoint, point: GridPoint) -> str:
    """Return what the first point has other than the second."""
    return ", ".join(label for axis, label in first.labels.items() if point.labels[axis] != label)


def _cell(difference: Difference | None, column: Column, count: int) -> Cell:
    if difference is None:
        return Cell("–")
    mean, spread = mean_and_spread(difference.sample, column)
    signed = f"+{mean}" if difference.value > 0 else mean.replace("-", "−")
    text: Markup | str = join((signed, element("span", f" {spread}", class_="spread"), signs_of(difference, count)))
    return Cell(element("strong", text) if difference.is_clear else text, difference.value)
