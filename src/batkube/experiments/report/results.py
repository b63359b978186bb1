"""The tables of an experiment's report: means with their intervals for each point of the grid, and every run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from batkube.experiments.description.columns import TIMING_COLUMNS
from batkube.experiments.report.cells import mean_cell, value_cell
from batkube.experiments.report.grid_points import (
    BEST,
    DIFFERENT_SEEDS,
    MEANINGS_OF_MARKS,
    GridPoint,
    comparability_of_points,
    grid_points,
    have_different_seeds,
    marks_of_best,
    meaning_of_best,
)
from batkube.experiments.report.window_overlap import remark_on_windows
from batkube.experiments.results.findings import Findings
from batkube.outputs.measures.comparisons.comparability import not_comparable
from batkube.outputs.measures.metric_columns import FAILURE_COLUMNS, MAIN_COLUMNS, MetricColumn, column_of
from batkube.outputs.pages.html_tables import Cell, Heading, html_table
from batkube.outputs.pages.markup import join
from batkube.outputs.pages.page import Section, collapsible, collapsible_if_long, paragraph

#: Tables with more points are collapsed; figures show them better.
_MAX_OPEN_ROWS = 60
#: Columns that are hidden if they are 0 in every run.
_HIDDEN_WHEN_ZERO = (*FAILURE_COLUMNS, "nb_jobs_killed", "nb_evictions", "work_lost")


def results_section(findings: Findings) -> Section:
    """Return the table of means."""
    columns = columns_with_numbers(findings)
    points = grid_points(findings, columns)
    axes = list(findings.axes)
    best = {column.name: marks_of_best(points, column) for column in columns}
    headings = [Heading(name.replace("_", " ")) for name in axes] or [Heading("")]
    headings.append(Heading("n", "runs", is_number=True))
    headings += [Heading(column.label, column.unit, is_number=True) for column in columns]
    rows: list[list[Cell | Any]] = []
    for number, point in enumerate(points):
        cells: list[Any] = [Cell(point.labels[name], kind="label") for name in axes] or ["all runs"]
        cells.append(Cell(point.count_text, float(point.count)))
        cells += [mean_cell(point.samples.get(column.name), column, best[column.name][number]) for column in columns]
        rows.append(cells)
    means = collapsible_if_long(
        f"All {len(rows):,} points of the grid", html_table(headings, rows), count=len(rows), few=_MAX_OPEN_ROWS
    )
    legend = f"{_legend(points, columns)} {remark_on_windows(findings, points)}".strip()
    return Section("results", "Results", join((means, paragraph(legend, class_="note"))))


def columns_with_numbers(findings: Findings) -> list[MetricColumn]:
    """Return the main columns that have numbers, without counts that are 0 in every run."""
    frame = findings.frame
    names = [name for name in MAIN_COLUMNS if name in frame and frame[name].notna().any()]
    return [
        column_of(name) for name in names if name not in _HIDDEN_WHEN_ZERO or not (frame[name].dropna() == 0.0).all()
    ]


def runs_section(findings: Findings) -> Section:
    """Return the table of all runs, collapsed."""
    frame, axes = findings.frame, list(findings.axes)
    columns = [column_of(name) for name in MAIN_COLUMNS if name in frame]
    headings = [Heading("run")] + [Heading(name.replace("_", " ")) for name in axes]
    headings += [Heading("seed", is_number=True), Heading("repeat", is_number=True), Heading("state")]
    headings += [Heading(column.label, column.unit, is_number=True) for column in columns] + [Heading("digest")]
    rows = []
    for record in frame.to_dict("records"):
        cells: list[Any] = [Cell(record["run"], kind="label"), *(Cell(record[name], kind="label") for name in axes)]
        cells += [f"{record['seed']:.0f}", f"{record['repeat']:.0f}"]
        cells.append(Cell(record["state"], kind="" if record["state"] == "done" else "bad"))
        cells += [value_cell(record[column.name], column) for column in columns]
        cells.append(Cell(str(record["digest"])[:12] or "–", kind="mono"))
        rows.append(cells)
    remark = _remark_on_duplicates(findings)
    content = join(
        (paragraph(remark) if remark else None, collapsible(f"All {len(rows):,} runs", html_table(headings, rows)))
    )
    return Section("runs", "Every run", content)


def _legend(points: Sequence[GridPoint], columns: Sequence[MetricColumn]) -> str:
    sentences = [
        "Means over n runs ± half the 95 % confidence interval (Student's t). One run has no interval.",
        f"{BEST} {meaning_of_best(points)}.",
    ]
    marks = {mark for column in columns for mark in marks_of_best(points, column)}
    sentences += [f"{mark} {meaning}." for mark, meaning in MEANINGS_OF_MARKS.items() if mark in marks]
    sentences += [
        f"{comparability.sign} {comparability.meaning}."
        for comparability in not_comparable(comparability_of_points(points))
    ]
    if have_different_seeds(points):
        sentences.append(DIFFERENT_SEEDS)
    if any(point.duplicates for point in points):
        sentences.append(
            "Byte-identical runs are one observation and count once: the seed does not change anything in them."
        )
    if any(column.name in TIMING_COLUMNS for column in columns):
        sentences.append("Real time and speed are measured on the machine of the experiment; every run counts.")
    return " ".join(sentences)


def _remark_on_duplicates(findings: Findings) -> str:
    """Return a remark on whether repeats were byte-identical, as they are in deterministic runs."""
    frame = findings.frame[findings.frame["state"] == "done"]
    digests = frame.groupby([*findings.axes, "seed"], sort=False)["digest"]
    repeated = digests.nunique()[digests.size() > 1]
    if repeated.empty:
        return ""
    differing = int((repeated > 1).sum())
    if not differing:
        return f"Repeats are byte-identical: each of the {len(repeated):,} repeated points has one digest."
    return f"{differing:,} of the {len(repeated):,} repeated points have more than one digest."
