"""Runs side by side: a row per metric, and job by job.

A comparison only means something when the runs had the same workload, so what differs in it is told first.
Jobs are matched by their id; when ids repeat within a run (several workloads), by workload and id.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.measures.metrics import Metrics
from batkube.outputs.measures.run_labels import labels_of

#: jobs.csv has six decimals, and two programs may round the last one differently: less than this is no difference.
_RESOLUTION_S = 1.5e-6


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One number of one run, with how to write it."""

    name: str
    unit: str
    value: float | None
    decimals: int
    #: -1 when less is better, 1 when more is better, 0 when neither.
    better: int = 0

    @property
    def text(self) -> str:
        """The value as shown; a dash when it is unknown."""
        return "–" if self.value is None else f"{self.value:,.{self.decimals}f}"


@dataclass(frozen=True, slots=True)
class JobDifferences:
    """How one run's jobs differ from the baseline's, over the jobs both have."""

    label: str
    common: int
    #: Jobs that start at another time; the mean is over these, the largest is signed (later is positive).
    moved: int
    moved_s_mean: float
    moved_s_largest: float
    moved_most: str
    #: Spearman's rank correlation of the starts; None when it is not defined (all start together).
    start_order: float | None
    #: Jobs on other machines, and with another final state.
    elsewhere: int
    ended_otherwise: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Several runs, one of them the baseline that the others are measured against."""

    labels: list[str]
    baseline: int
    #: Whether each run's schedule could have been: one that violates the rules is neither better nor worse.
    is_possible: list[bool]
    #: For each run its rows; position i is the same metric in every run.
    rows: list[list[MetricRow]]
    warnings: list[str]
    differences: list[JobDifferences]

    def change(self, run: int, row: int) -> float | None:
        """Return the relative difference to the baseline (0.1 is 10 % more); None when there is none to tell."""
        value, base = self.rows[run][row].value, self.rows[self.baseline][row].value
        if run == self.baseline or value is None or base is None:
            return None
        if value == base:
            return 0.0
        return (value - base) / abs(base) if base else None

    def csv(self) -> str:
        """Return the metrics as CSV: metric, unit, a column per run; numbers unrounded, empty when unknown."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["metric", "unit", *self.labels])
        for number, row in enumerate(self.rows[0]):
            values = [rows[number].value for rows in self.rows]
            writer.writerow([row.name.strip(), row.unit, *("" if value is None else repr(value) for value in values)])
        return out.getvalue()


def metric_rows(metrics: Metrics, states: Sequence[str] | None = None) -> list[MetricRow]:
    """Return a run's numbers in the order they are shown; `states` are the final states to give a row each."""
    share = metrics.utilisation
    counts = metrics.states if states is None else {state: metrics.states.get(state, 0) for state in states}
    return [
        MetricRow("jobs", "", metrics.jobs, 0),
        *(MetricRow(f"  {state.lower()}", "", count, 0) for state, count in counts.items()),
        MetricRow("jobs measured", "", metrics.measured, 0),
        MetricRow("measured from", "s", metrics.measured_from_s, 2),
        MetricRow("measured until", "s", metrics.measured_until_s, 2),
        MetricRow("makespan", "s", metrics.makespan_s, 2, -1),
        MetricRow("mean wait", "s", metrics.wait_s_mean, 2, -1),
        MetricRow("median wait", "s", metrics.wait_s_median, 2, -1),
        MetricRow("p90 wait", "s", metrics.wait_s_p90, 2, -1),
        MetricRow("p95 wait", "s", metrics.wait_s_p95, 2, -1),
        MetricRow("p99 wait", "s", metrics.wait_s_p99, 2, -1),
        MetricRow("max wait", "s", metrics.wait_s_max, 2, -1),
        MetricRow("mean turnaround", "s", metrics.turnaround_s_mean, 2, -1),
        MetricRow("mean slowdown", "", metrics.slowdown_mean, 3, -1),
        MetricRow("max slowdown", "", metrics.slowdown_max, 3, -1),
        MetricRow("mean bounded slowdown", "", metrics.bounded_slowdown_mean, 3, -1),
        MetricRow("utilisation", "%", None if share is None else share * 100, 2, 1),
        MetricRow("throughput", "jobs/h", metrics.throughput_per_h, 2, 1),
        MetricRow("fairness by user", "", metrics.fairness, 4, 1),
        MetricRow("evictions", "", metrics.evictions, 0, -1),
        MetricRow("work lost", "s", metrics.work_lost_s, 2, -1),
        MetricRow("violations", "", metrics.violations, 0, -1),
    ]


def compare_runs(runs: Sequence[MeasuredRun], *, baseline: int = 0) -> Comparison:
    """Return the runs side by side, measured against `runs[baseline]`."""
    metrics = [run.metrics for run in runs]
    states = sorted({state for each in metrics for state in each.states})
    labels = labels_of([run.path for run in runs])
    tables = _matched([run.jobs for run in runs])
    others = [number for number in range(len(runs)) if number != baseline]
    warnings = [
        f"{label} {remark}"
        for label, run in zip(labels, runs, strict=True)
        for remark in (run.failure_remark, run.violation_remark)
        if remark
    ]
    warnings += [
        warning
        for number in others
        for warning in _workload_warnings(labels[baseline], labels[number], tables[baseline], tables[number])
    ]
    stated = [(label, run.machine_count_stated) for label, run in zip(labels, runs, strict=True)]
    counts = {label: count for label, count in stated if count is not None}
    if len(set(counts.values())) > 1:
        sizes = ", ".join(f"{label} {count}" for label, count in counts.items())
        warnings.append(f"the runs have different numbers of machines: {sizes}")
    return Comparison(
        labels,
        baseline,
        [not each.violations for each in metrics],
        [metric_rows(each, states) for each in metrics],
        warnings,
        [_differences(labels[number], tables[baseline], tables[number]) for number in others],
    )


def _matched(frames: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """Return the frames indexed so that the same job has the same index in each."""
    if all(frame["job_id"].is_unique for frame in frames):
        return [frame.set_index("job_id") for frame in frames]
    return [frame.set_index(frame["workload_name"] + "!" + frame["job_id"]) for frame in frames]


def _workload_warnings(base_label: str, label: str, base: pd.DataFrame, other: pd.DataFrame) -> list[str]:
    warnings = []
    missing, added = len(base.index.difference(other.index)), len(other.index.difference(base.index))
    if missing or added:
        warnings.append(f"{label} lacks {missing:,} jobs of {base_label} and has {added:,} more")
    common = base.index.intersection(other.index)
    shift = (other.loc[common, "submission_time"] - base.loc[common, "submission_time"]).abs()
    moved = int((shift > _RESOLUTION_S).sum())
    if moved:
        warnings.append(
            f"{label} submits {moved} of {len(common)} jobs at other times than {base_label}, "
            f"by up to {shift.max():g} s"
        )
    return warnings


def rank_correlation(one: pd.Series[float], other: pd.Series[float]) -> float | None:
    """Return Spearman's rank correlation over the jobs of which both tell; None when one of them tells no order."""
    known = one.notna() & other.notna()
    ranks, others = one[known].rank(), other[known].rank()
    if ranks.nunique() < 2 or others.nunique() < 2:
        return None
    return float(ranks.corr(others))


def _differences(label: str, base: pd.DataFrame, other: pd.DataFrame) -> JobDifferences:
    common = base.index.intersection(other.index, sort=False)
    base, other = base.loc[common], other.loc[common]
    shift = (other["starting_time"] - base["starting_time"]).dropna()
    moved = shift[shift.abs() > _RESOLUTION_S]
    most = int(moved.abs().to_numpy().argmax()) if len(moved) else 0
    known = (base["allocated_resources"] != "") & (other["allocated_resources"] != "")
    return JobDifferences(
        label=label,
        common=len(common),
        moved=len(moved),
        moved_s_mean=float(moved.abs().mean()) if len(moved) else 0.0,
        moved_s_largest=float(moved.iloc[most]) if len(moved) else 0.0,
        moved_most=str(moved.index[most]) if len(moved) else "",
        start_order=rank_correlation(base["starting_time"], other["starting_time"]),
        elsewhere=int((known & (base["allocated_resources"] != other["allocated_resources"])).sum()),
        ended_otherwise=int((base["final_state"] != other["final_state"]).sum()),
    )
