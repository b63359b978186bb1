"""The points of an experiment's grid with their numbers, and which of them are better than others.

Points are compared only if they have the same task and differ in schedulers or configurations. Numbers of different
workloads or platforms are not comparable. Runs of one seed had the same workload and the same random numbers, so two
points are compared pair by pair, which detects far smaller differences than a comparison of their intervals.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from batkube.experiments.figures.chart_data import observations, sample_in, values_in, without_duplicates
from batkube.experiments.results.comparability import RunsByKey, comparability_of_sets
from batkube.experiments.results.findings import Findings
from batkube.outputs.files.manifest import MANIFEST
from batkube.outputs.measures.comparisons.comparability import Comparability
from batkube.outputs.measures.intervals import Difference, Sample, difference_of, paired_difference_of
from batkube.outputs.measures.metric_columns import COMPLETED, MetricColumn

if TYPE_CHECKING:
    import pandas as pd

#: The mark of the best mean, of those without a clear difference to it, and of those that are better in most pairs.
BEST, TIED, CONTRARY = "★", "≈", "↕"
MEANINGS_OF_MARKS = {
    TIED: "no clear difference to the best: neither the interval nor the sign test shows one",
    CONTRARY: "better than the best mean in most pairs (sign test): few pairs decide the mean",
}
DIFFERENT_SEEDS = "Not all rows of one workload have the same seeds, so their means are of different random draws."
"""Remark if `have_different_seeds`."""

#: Keys of a scenario that define the task; runs with different tasks are not comparable.
_TASK_KEYS = ("workload", "platform", "resources", "latencies", "rules", "on-eviction", "on-failure", "events", "until")


@dataclass(frozen=True, slots=True)
class GridPoint:
    """The runs with the same label on every axis."""

    labels: Mapping[str, str]
    runs: int
    #: Seeds and repeats of the runs that failed.
    failures: Sequence[tuple[int, int]]
    #: Number of runs that are byte-identical to an earlier one.
    duplicates: int
    #: The task of its runs, as JSON; only points with the same task are comparable.
    task: str
    samples: Mapping[str, Sample]
    #: The completed runs, by seed and repeat: digest and numbers.
    completed: RunsByKey

    @property
    def count(self) -> int:
        """Number of runs that count as observations."""
        return self.runs - len(self.failures) - self.duplicates

    @property
    def count_text(self) -> str:
        """Number of runs that count, with the total if not all do."""
        return f"{self.count}" if self.count == self.runs else f"{self.count} of {self.runs}"


def grid_points(findings: Findings, columns: Sequence[MetricColumn]) -> list[GridPoint]:
    """Return the points of the grid that have runs, in its order."""
    frame, axes = findings.frame, list(findings.axes)
    if not axes:
        return [_point({}, frame, columns, findings)]
    order = {name: {label: number for number, label in enumerate(labels)} for name, labels in findings.axes.items()}
    groups = [(_labels(axes, key), rows) for key, rows in frame.groupby(axes, sort=False)]
    groups.sort(key=lambda group: [order[name].get(label, -1) for name, label in group[0].items()])
    return [_point(labels, rows, columns, findings) for labels, rows in groups]


def grouped_by_task(points: Sequence[GridPoint]) -> list[list[int]]:
    """Return groups of indices of the points with the same task."""
    groups: dict[str, list[int]] = {}
    for number, point in enumerate(points):
        groups.setdefault(point.task, []).append(number)
    return list(groups.values())


def comparability_of_points(points: Sequence[GridPoint]) -> list[Comparability]:
    """Return which points may be called better or worse than others of the same task."""
    result = [Comparability.COMPARABLE] * len(points)
    for group in grouped_by_task(points):
        done, failures = zip(*((points[number].completed, points[number].failures) for number in group), strict=True)
        for number, comparability in zip(group, comparability_of_sets(done, failures), strict=True):
            result[number] = comparability
    return result


def have_different_seeds(points: Sequence[GridPoint]) -> bool:
    """Return whether compared points have different seeds: some may be excluded, or not run yet."""
    comparability = comparability_of_points(points)
    for group in grouped_by_task(points):
        comparable = [number for number in group if comparability[number] is Comparability.COMPARABLE]
        if len({frozenset(points[number].completed) for number in comparable}) > 1:
            return True
    return False


def meaning_of_best(points: Sequence[GridPoint]) -> str:
    """Return the meaning of the mark of the best among these points."""
    return "the best mean for one workload and platform" if len(grouped_by_task(points)) > 1 else "the best mean"


def difference_between(first: GridPoint, second: GridPoint, column: MetricColumn) -> Difference | None:
    """Return the difference of the second point to the first, in the column's unit, paired by common seeds.

    Byte-identical pairs are one observation. None if the difference is unknown, as between single runs.
    """
    pairs: dict[tuple[object, object], tuple[pd.Series[Any], pd.Series[Any]]] = {}
    for key, row in first.completed.items():
        if (other := second.completed.get(key)) is None:
            continue
        digests = (row["digest"], other["digest"])
        pairs.setdefault(digests if all(digests) and not column.is_real_time else key, (row, other))
    values = [[member[column.name] * column.factor for member in pair] for pair in pairs.values()]
    values = [pair for pair in values if all(value == value for value in pair)]
    if column.name != COMPLETED and len(values) > 1:
        return paired_difference_of([pair[0] for pair in values], [pair[1] for pair in values])
    samples = first.samples.get(column.name), second.samples.get(column.name)
    return None if samples[0] is None or samples[1] is None else difference_of(samples[0], samples[1])


def marks_of_best(points: Sequence[GridPoint], column: MetricColumn) -> list[str]:
    """Return a mark for each point: ★ (the best), ≈ (no clear difference to it), ↕ (contrary), its sign, or none.

    Points that are not comparable are excluded: a scheduler that over-allocates, skips jobs or fails wins easily.
    """
    marks = [mark.sign if column.better else "" for mark in comparability_of_points(points)]
    for group in grouped_by_task(points) if column.better else ():
        members = [number for number in group if column.name in points[number].samples and not marks[number]]
        means = [points[number].samples[column.name].mean for number in members]
        top = max(means, default=0.0) if column.better > 0 else min(means, default=0.0)
        if len(members) < 2 or all(mean == top for mean in means):
            continue
        winner = points[members[means.index(top)]]
        for number, mean in zip(members, means, strict=True):
            difference = difference_between(winner, points[number], column)
            marks[number] = BEST if mean == top else _mark_of(difference)
    return marks


def _mark_of(difference: Difference | None) -> str:
    if difference is None:
        return ""
    return TIED if difference.is_unclear else CONTRARY if difference.is_contrary else ""


def _labels(axes: Sequence[str], key: Any) -> dict[str, str]:  # noqa: ANN401 - pandas gives one label or several
    return dict(zip(axes, (str(label) for label in (key if isinstance(key, tuple) else (key,))), strict=True))


def _point(
    labels: Mapping[str, str], rows: pd.DataFrame, columns: Sequence[MetricColumn], findings: Findings
) -> GridPoint:
    axes, done = list(findings.axes), rows[rows["state"] == "done"]
    samples = {}
    for column in columns:
        counted = observations(rows, column, axes)
        if len(counted):
            samples[column.name] = sample_in(column, values_in(column, counted))
    return GridPoint(
        labels=labels,
        runs=len(rows),
        failures=[_key(row) for _, row in rows[rows["state"] != "done"].iterrows()],
        duplicates=len(done) - len(without_duplicates(done, axes)),
        task=_task(findings, str(rows["run"].iloc[0]), labels) if len(rows) else "",
        samples=samples,
        completed={_key(row): row for _, row in done.iterrows()},
    )


def _key(row: pd.Series[Any]) -> tuple[int, int]:
    """Return seed and repeat, which identify a run of a point."""
    return int(row["seed"]), int(row["repeat"])


def _task(findings: Findings, run: str, labels: Mapping[str, str]) -> str:
    """Return the task of a run: from its manifest, since any axis may set a platform; otherwise from its labels."""
    try:
        scenario = json.loads((findings.run_folder(run) / MANIFEST).read_bytes())["scenario"]
    except (OSError, ValueError, KeyError, TypeError):
        scenario = labels
    return json.dumps([scenario.get(key) for key in _TASK_KEYS])
