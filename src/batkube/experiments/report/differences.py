"""Differences between the points of an experiment's grid, with intervals: the basis of a claim of "better"."""

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

#: Tables with more rows are collapsed.
_MAX_OPEN_ROWS = 60
#: Up to so many points with the same task are compared pairwise; more are compared with the first only.
_MAX_POINTS_FOR_ALL_PAIRS = 4
#: Columns without differences: failures, and real costs, which depend on the load of the machine.
_EXCLUDED_COLUMNS = (*FAILURE_COLUMNS, *TIMING_COLUMNS)
#: Marks of a difference that is clear among all comparisons of its column, and of one that passes the sign test.
SIGNIFICANT, SIGN_TEST = "*", "§"


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """Differences between two points with the same task."""

    labels: Mapping[str, str]
    #: The labels of the subtracted point that differ from this one's.
    subtracted: str
    pairs: int
    #: A difference per column; None if it is unknown.
    differences: Sequence[Difference | None]


def differences_of(findings: Findings, columns: Sequence[MetricColumn]) -> list[DifferenceRow]:
    """Return the differences of points with the same task, if any of them has an interval."""
    points = grid_points(findings, columns)
    groups = [[points[number] for number in group] for group in grouped_by_task(points)]
    return [row for group in groups for row in _rows(group, columns, findings.baseline)]


def differences_section(findings: Findings) -> Section | None:
    """Return the table of differences; None if no difference has an interval."""
    columns = [
        column for column in columns_with_numbers(findings) if column.better and column.name not in _EXCLUDED_COLUMNS
    ]
    differences = differences_of(findings, columns)
    if not differences:
        return None
    headings = [Heading(name.replace("_", " ")) for name in findings.axes] + [Heading("less")]
    headings.append(Heading("pairs", is_number=True))
    headings += [Heading(column.label, column.unit, is_number=True) for column in columns]
    counts = comparison_counts(differences)
    rows: list[list[Any]] = []
    for row in differences:
        cells: list[Any] = [Cell(label, kind="label") for label in (*row.labels.values(), row.subtracted)]
        cells.append(Cell(row.pairs or "–"))
        cells += [_cell(*arguments) for arguments in zip(row.differences, columns, counts, strict=True)]
        rows.append(cells)
    legend = [_LEGEND, _LEGEND_OF_MANY.format(count=max(counts)) if max(counts) > 1 else "", _LEGEND_OF_SIGNS]
    content = collapsible_if_long(
        f"All {len(rows):,} differences", html_table(headings, rows), count=len(rows), few=_MAX_OPEN_ROWS
    )
    return Section(
        "differences", "Differences", join((content, paragraph(" ".join(filter(None, legend)), class_="note")))
    )


_LEGEND = (
    "Each row minus another with the same workload and platform, seed by seed, ± half the 95 % confidence interval of "
    "the mean difference. Bold: the interval excludes 0. Rows without pairs are compared as independent samples "
    "(Welch). Schedulers that violated rules of every cluster, ran fewer jobs than others, or failed where others "
    "completed, are left out."
)
_LEGEND_OF_MANY = (
    f"{SIGNIFICANT} The interval excludes 0 even if all {{count}} intervals of its column have to hold at once "
    "(Bonferroni)."
)
_LEGEND_OF_SIGNS = (
    f"{SIGN_TEST} The pairs agree on which one is lower: the exact sign test has p < 0.05, whatever the distribution "
    "of the differences."
)


def signs_of(difference: Difference, count: int) -> str:
    """Return the marks of a difference; `count` is the number of comparisons in its column."""
    is_significant = count > 1 and difference.is_clear_among(count)
    return SIGNIFICANT * is_significant + SIGN_TEST * difference.passes_sign_test


def _rows(
    group: Sequence[GridPoint], columns: Sequence[MetricColumn], baseline: Mapping[str, str]
) -> list[DifferenceRow]:
    """Return a row per pair of comparable points, or per point and the first, if a difference has an interval.

    With a `baseline`, the points that have its labels are the only ones that are subtracted.
    """
    comparable = [
        point
        for point, comparability in zip(group, comparability_of_points(group), strict=True)
        if comparability is Comparability.COMPARABLE
    ]
    pairs_of_points = list(itertools.combinations(comparable, 2))
    if baseline:
        subtracted = [point for point in comparable if baseline.items() <= point.labels.items()]
        others = [point for point in comparable if not baseline.items() <= point.labels.items()]
        pairs_of_points = list(itertools.product(subtracted, others))
    elif len(comparable) > _MAX_POINTS_FOR_ALL_PAIRS:
        pairs_of_points = pairs_of_points[: len(comparable) - 1]
    rows = []
    for first, point in pairs_of_points:
        differences = [difference_between(first, point, column) for column in columns]
        if any(differences):
            pairs = max(difference.pairs for difference in differences if difference)
            rows.append(DifferenceRow(point.labels, _subtracted_name(first, point), pairs, differences))
    return rows


def comparison_counts(rows: Sequence[DifferenceRow]) -> list[int]:
    """Return the number of comparisons in each column."""
    return [
        sum(difference is not None for difference in column)
        for column in zip(*(row.differences for row in rows), strict=True)
    ]


def _subtracted_name(first: GridPoint, point: GridPoint) -> str:
    """Return the labels of the first point that differ from the second's."""
    return ", ".join(label for axis, label in first.labels.items() if point.labels[axis] != label)


def _cell(difference: Difference | None, column: MetricColumn, count: int) -> Cell:
    if difference is None:
        return Cell("–")
    mean, spread = format_mean_and_interval(difference.sample, column)
    signed = f"+{mean}" if difference.value > 0 else mean.replace("-", "−")
    text: Markup | str = join((signed, element("span", f" {spread}", class_="spread"), signs_of(difference, count)))
    return Cell(element("strong", text) if difference.is_clear else text, difference.value)
