"""How far the points of an experiment's grid are apart, with intervals: what a claim of "better" rests on."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from batkube.experiments.description.columns import TIMING_COLUMNS
from batkube.experiments.figures.number_format import format_mean_and_interval
from batkube.experiments.report.grid_points import (
    GridPoint,
    comparability_of_points,
    difference_between,
    grid_points,
    grouped_by_task,
)
from batkube.experiments.report.results import columns_with_numbers
from batkube.experiments.results.findings import Findings
from batkube.outputs.measures.comparisons.comparability import Comparability
from batkube.outputs.measures.intervals import Difference
from batkube.outputs.measures.metric_columns import FAILURE_COLUMNS, MetricColumn
from batkube.outputs.pages.html_tables import Cell, Heading, html_table
from batkube.outputs.pages.markup import Markup, element, join
from batkube.outputs.pages.page import Section, collapsible_if_long, paragraph

#: More rows than this are for looking up.
_FEW_ROWS = 60
#: Up to so many points with the same task are compared each with each, more of them each with the first.
_MAX_POINTS_FOR_ALL_PAIRS = 4
#: No columns of this table: what to know of runs beforehand, and what they cost, in which a busy machine shows.
_EXCLUDED_COLUMNS = (*FAILURE_COLUMNS, *TIMING_COLUMNS)
#: What marks a difference that is clear among all comparisons of its column, and one of which most pairs agree.
SIGNIFICANT, SIGN_TEST = "*", "§"


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """How far one point is from another with the same task."""

    labels: Mapping[str, str]
    #: What the other one has other than this.
    subtracted: str
    pairs: int
    #: A difference for each column asked for; None where none can be told.
    differences: Sequence[Difference | None]


def differences_of(findings: Findings, columns: Sequence[MetricColumn]) -> list[DifferenceRow]:
    """Return how far points with the same task are apart, where any difference has an interval."""
    points = grid_points(findings, columns)
    return [row for group in grouped_by_task(points) for row in _rows([points[number] for number in group], columns)]


def differences_section(findings: Findings) -> Section | None:
    """Return the table of differences; None when nothing can be told apart."""
    columns = [one for one in columns_with_numbers(findings) if one.better and one.name not in _EXCLUDED_COLUMNS]
    found = differences_of(findings, columns)
    if not found:
        return None
    heads = [Heading(name.replace("_", " ")) for name in findings.axes] + [Heading("less")]
    heads.append(Heading("pairs", is_number=True))
    heads += [Heading(column.label, column.unit, is_number=True) for column in columns]
    counts = comparison_counts(found)
    rows: list[list[Any]] = []
    for row in found:
        cells: list[Any] = [Cell(label, kind="label") for label in (*row.labels.values(), row.subtracted)]
        cells.append(Cell(row.pairs or "–"))
        cells += [_cell(*one) for one in zip(row.differences, columns, counts, strict=True)]
        rows.append(cells)
    legend = [_LEGEND, _LEGEND_OF_MANY.format(count=max(counts)) if max(counts) > 1 else "", _LEGEND_OF_SIGNS]
    content = collapsible_if_long(
        f"All {len(rows):,} differences", html_table(heads, rows), count=len(rows), few=_FEW_ROWS
    )
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
    f"{SIGNIFICANT}: the interval excludes 0, even if all {{count}} intervals of its column must hold at once "
    "(Bonferroni)."
)
_LEGEND_OF_SIGNS = (
    f"{SIGN_TEST} where pairs agree in which one is lower: the exact sign test has p < 0.05, however differences are "
    "distributed."
)


def signs_of(difference: Difference, count: int) -> str:
    """Return the marks of a difference among `count` of its column."""
    is_sure = count > 1 and difference.is_clear_among(count)
    return SIGNIFICANT * is_sure + SIGN_TEST * difference.passes_sign_test


def _rows(group: Sequence[GridPoint], columns: Sequence[MetricColumn]) -> list[DifferenceRow]:
    """Return a row for each two fair points, or each but the first, if any of its differences has an interval."""
    fair = [
        point
        for point, one in zip(group, comparability_of_points(group), strict=True)
        if one is Comparability.COMPARABLE
    ]
    rows = []
    for first, point in itertools.combinations(fair, 2):
        if first is not fair[0] and len(fair) > _MAX_POINTS_FOR_ALL_PAIRS:
            break
        differences = [difference_between(first, point, column) for column in columns]
        if any(differences):
            pairs = max(difference.pairs for difference in differences if difference)
            rows.append(DifferenceRow(point.labels, _subtracted_name(first, point), pairs, differences))
    return rows


def comparison_counts(rows: Sequence[DifferenceRow]) -> list[int]:
    """Return how many comparisons there are in each column."""
    return [sum(one is not None for one in column) for column in zip(*(row.differences for row in rows), strict=True)]


def _subtracted_name(first: GridPoint, point: GridPoint) -> str:
    """Return what the first point has other than the second."""
    return ", ".join(label for axis, label in first.labels.items() if point.labels[axis] != label)


def _cell(difference: Difference | None, column: MetricColumn, count: int) -> Cell:
    if difference is None:
        return Cell("–")
    mean, spread = format_mean_and_interval(difference.sample, column)
    signed = f"+{mean}" if difference.value > 0 else mean.replace("-", "−")
    text: Markup | str = join((signed, element("span", f" {spread}", class_="spread"), signs_of(difference, count)))
    return Cell(element("strong", text) if difference.is_clear else text, difference.value)
