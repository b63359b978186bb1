"""The tables of an experiment's report: means with their intervals for each point of the grid, and every run.

The best value of a column is marked among the points that differ only in what was tried (schedulers, configurations),
never between different workloads or platforms, whose numbers cannot be compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from batkube.experiments.description.column_labels import MAIN, Column, column_of
from batkube.experiments.description.columns import TIMINGS
from batkube.experiments.figures.data import observations, sample_in, values_in, without_copies
from batkube.experiments.report.cells import mean_cell, value_cell
from batkube.experiments.results.findings import Findings
from batkube.outputs.files.manifest import MANIFEST
from batkube.outputs.measures.intervals import Sample, difference_of
from batkube.outputs.pages.markup import join
from batkube.outputs.pages.page import Section, fold, folded_if_long, paragraph
from batkube.outputs.pages.tables import Cell, Heading, table

if TYPE_CHECKING:
    import pandas as pd

#: Keys of a scenario that say what is to be done, and not how: with others the numbers answer another question.
_TASK = ("workload", "platform", "resources", "latencies", "rules", "on-eviction")

#: More points than this are for looking up, and figures for looking at.
_FEW_POINTS = 60


@dataclass(frozen=True, slots=True)
class GridPoint:
    """The runs with the same label on every axis."""

    labels: Mapping[str, str]
    runs: int
    failed: int
    #: Runs that are the same to the byte as an earlier one.
    copies: int
    #: What its runs were to do; only points with the same task can be better or worse than each other.
    task: str
    samples: Mapping[str, Sample]


def grid_points(findings: Findings, columns: Sequence[Column]) -> list[GridPoint]:
    """Return the points of the grid that have runs, in its order."""
    frame, axes = findings.frame, list(findings.axes)
    if not axes:
        return [_point({}, frame, columns, findings)]
    order = {name: {label: number for number, label in enumerate(labels)} for name, labels in findings.axes.items()}
    groups = [(_labels(axes, key), rows) for key, rows in frame.groupby(axes, sort=False)]
    groups.sort(key=lambda group: [order[name].get(label, -1) for name, label in group[0].items()])
    return [_point(labels, rows, columns, findings) for labels, rows in groups]


def results_section(findings: Findings) -> Section:
    """Return the table of means."""
    columns = columns_with_numbers(findings)
    points = grid_points(findings, columns)
    axes = list(findings.axes)
    best = {column.name: best_of(points, column) for column in columns}
    heads = [Heading(name.replace("_", " ")) for name in axes] or [Heading("")]
    heads.append(Heading("n", "runs", is_number=True))
    heads += [Heading(column.label, column.unit, is_number=True) for column in columns]
    rows: list[list[Cell | Any]] = []
    for number, point in enumerate(points):
        cells: list[Any] = [Cell(point.labels[name], kind="label") for name in axes] or ["all runs"]
        cells.append(Cell(_count(point), float(point.runs - point.failed - point.copies)))
        cells += [mean_cell(point.samples.get(column.name), column, best[column.name][number]) for column in columns]
        rows.append(cells)
    means = folded_if_long(
        f"All {len(rows):,} points of the grid", table(heads, rows), count=len(rows), few=_FEW_POINTS
    )
    return Section("results", "Results", join((means, paragraph(_legend(points, columns), class_="note"))))


def columns_with_numbers(findings: Findings) -> list[Column]:
    """Return the main columns that say something: what is nought or full in every run does not."""
    frame = findings.frame
    dull = {"overallocations": 0.0, "success_rate": 1.0}
    names = [name for name in MAIN if name in frame and frame[name].notna().any()]
    return [column_of(name) for name in names if name not in dull or not (frame[name].dropna() == dull[name]).all()]


def runs_section(findings: Findings) -> Section:
    """Return the table of all runs, folded."""
    frame, axes = findings.frame, list(findings.axes)
    columns = [column_of(name) for name in MAIN if name in frame]
    heads = [Heading("run")] + [Heading(name.replace("_", " ")) for name in axes]
    heads += [Heading("seed", is_number=True), Heading("repeat", is_number=True), Heading("state")]
    heads += [Heading(column.label, column.unit, is_number=True) for column in columns] + [Heading("digest")]
    rows = []
    for record in frame.to_dict("records"):
        cells: list[Any] = [Cell(record["run"], kind="label"), *(Cell(record[name], kind="label") for name in axes)]
        cells += [f"{record['seed']:.0f}", f"{record['repeat']:.0f}"]
        cells.append(Cell(record["state"], kind="" if record["state"] == "done" else "bad"))
        cells += [value_cell(record[column.name], column) for column in columns]
        cells.append(Cell(str(record["digest"])[:12] or "–", kind="mono"))
        rows.append(cells)
    same = _remark_on_copies(findings)
    content = join((paragraph(same) if same else None, fold(f"All {len(rows):,} runs", table(heads, rows))))
    return Section("runs", "Every run", content)


def _labels(axes: Sequence[str], key: Any) -> dict[str, str]:  # noqa: ANN401 - pandas gives one label or several
    return dict(zip(axes, (str(one) for one in (key if isinstance(key, tuple) else (key,))), strict=True))


def _point(labels: Mapping[str, str], rows: pd.DataFrame, columns: Sequence[Column], findings: Findings) -> GridPoint:
    axes, done = list(findings.axes), rows[rows["state"] == "done"]
    samples = {}
    for column in columns:
        known = observations(rows, column, axes)
        if len(known):
            samples[column.name] = sample_in(column, values_in(column, known))
    return GridPoint(
        labels=labels,
        runs=len(rows),
        failed=len(rows) - len(done),
        copies=len(done) - len(without_copies(done, axes)),
        task=_task(findings, str(rows["run"].iloc[0]), labels) if len(rows) else "",
        samples=samples,
    )


def _task(findings: Findings, run: str, labels: Mapping[str, str]) -> str:
    """Return what a run was to do: from its manifest, as an axis of any name may set a platform; else by its labels."""
    try:
        scenario = json.loads((findings.run_folder(run) / MANIFEST).read_bytes())["scenario"]
    except (OSError, ValueError, KeyError, TypeError):
        scenario = labels
    return json.dumps([scenario.get(key) for key in _TASK])


def best_of(points: Sequence[GridPoint], column: Column) -> list[str]:
    """Return for each point `best`, `alike` (no clear difference to the best) or nothing."""
    marks = [""] * len(points)
    if not column.better:
        return marks
    groups: dict[str, list[int]] = {}
    for number, point in enumerate(points):
        if column.name in point.samples:
            groups.setdefault(point.task, []).append(number)
    for members in groups.values():
        means = [points[number].samples[column.name].mean for number in members]
        top = max(means) if column.better > 0 else min(means)
        if len(members) < 2 or all(mean == top for mean in means):
            continue
        winner = points[members[means.index(top)]].samples[column.name]
        for number, mean in zip(members, means, strict=True):
            difference = difference_of(winner, points[number].samples[column.name])
            marks[number] = "best" if mean == top else "alike" if difference and not difference.is_clear else ""
    return marks


def _count(point: GridPoint) -> str:
    """Return how many runs count, and of how many."""
    counted = point.runs - point.failed - point.copies
    return f"{counted}" if counted == point.runs else f"{counted} of {point.runs}"


def _legend(points: Sequence[GridPoint], columns: Sequence[Column]) -> str:
    several = len({point.task for point in points}) > 1
    sentences = [
        "Means over n runs ± half the 95 % confidence interval (Student's t). One run has no interval.",
        f"★ the best mean{' for one workload and platform' if several else ''}, ≈ no clear difference to it (Welch's "
        "interval of the difference holds 0).",
    ]
    if any(point.copies for point in points):
        sentences.append(
            "Runs that are identical to the byte are one observation and count once: there the seed changes nothing."
        )
    if any(column.name in TIMINGS for column in columns):
        sentences.append("Real time and speed are measured on the machine that ran this, every run counts.")
    return " ".join(sentences)


def _remark_on_copies(findings: Findings) -> str:
    """Say of repeats whether they were identical, as they are in a deterministic run."""
    frame = findings.frame[findings.frame["state"] == "done"]
    again = frame.groupby([*findings.axes, "seed"], sort=False)["digest"]
    several = again.nunique()[again.size() > 1]
    if several.empty:
        return ""
    differing = int((several > 1).sum())
    if not differing:
        return (
            f"Repeats are identical to the byte: one digest for each of the {len(several):,} points that were repeated."
        )
    return f"{differing:,} of the {len(several):,} points that were repeated have more than one digest."
