"""Comparison of runs: a row per metric, and job by job.

A comparison is meaningful only if the runs had the same workload, so differences of the workload are reported first.
Jobs are matched by id; if ids repeat within a run (several workloads), by workload and id.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd

from batkube.kernel.quantities import CPU
from batkube.outputs.job_statistics import CLASSES, PERCENTILES, UTILISATION_PREFIX
from batkube.outputs.measures.comparisons.comparability import Comparability, comparability_of, not_comparable
from batkube.outputs.measures.comparisons.run_labels import labels_of
from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.measures.metric_columns import MetricColumn, column_of
from batkube.outputs.measures.metrics import Metrics

#: jobs.csv has six decimals, and two programs may round the last one differently: smaller differences are ignored.
_RESOLUTION_S = 1.5e-6
#: Smaller workloads are examples, whose waits say nothing.
_FEW_JOBS = 30
#: Points in time, whose relative difference is meaningless.
_TIME_COLUMNS = ("measured_from", "measured_until")


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One number of one run, and its formatting."""

    column: MetricColumn
    #: As in the files, where shares are 0 to 1.
    raw: float | None

    @property
    def name(self) -> str:
        """Its label."""
        return self.column.label

    @property
    def unit(self) -> str:
        """The unit of `value` and `text`."""
        return self.column.unit

    @property
    def better(self) -> int:
        """-1 when less is better, 1 when more is better, 0 when neither."""
        return self.column.better

    @property
    def value(self) -> float | None:
        """The number, converted to `unit`."""
        return None if self.raw is None else self.raw * self.column.factor

    @property
    def text(self) -> str:
        """The formatted value; a dash if it is unknown."""
        return "–" if self.value is None else f"{self.value:,.{self.column.decimals}f}"


@dataclass(frozen=True, slots=True)
class JobDifferences:
    """How one run's jobs differ from the baseline's, over the common jobs."""

    label: str
    common: int
    #: Jobs that start at another time; the mean is over these, the largest difference is signed (later is positive).
    moved: int
    moved_s_mean: float
    moved_s_max: float
    moved_most: str
    #: Spearman's rank correlation of the starts; None if it is undefined (all start together).
    start_order: float | None
    #: Numbers of jobs on other machines, and with another final state.
    elsewhere: int
    ended_otherwise: int


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Several runs: a baseline, and others that are compared with it."""

    labels: list[str]
    baseline: int
    #: Whether each run may be called better or worse than others.
    comparability: list[Comparability]
    #: The rows of each run; position i is the same metric in every run.
    rows: list[list[MetricRow]]
    warnings: list[str]
    differences: list[JobDifferences]

    def change(self, run: int, row: int) -> float | None:
        """Return the relative difference to the baseline (0.1 is 10 % more); None if undefined or not comparable."""
        value, base = self.rows[run][row].value, self.rows[self.baseline][row].value
        if run == self.baseline or value is None or base is None or self.mark_of(run, row):
            return None
        if value == base:
            return 0.0
        is_instant = self.rows[run][row].column.name in _TIME_COLUMNS
        return (value - base) / abs(base) if base and not is_instant else None

    def mark_of(self, run: int, row: int) -> str:
        """Return the sign for the reason why a run is not compared with the baseline; empty if it is compared."""
        if not self.rows[run][row].better:
            return ""
        return self.comparability[run].sign or self.comparability[self.baseline].sign

    @property
    def headings(self) -> list[str]:
        """The labels, with a sign where a run cannot be compared."""
        return [value.marked(label) for label, value in zip(self.labels, self.comparability, strict=True)]

    @property
    def legend(self) -> list[str]:
        """Explanations of the signs, a line each."""
        return [f"{value.sign} {value.meaning}" for value in not_comparable(self.comparability)]

    def csv(self) -> str:
        """Return the metrics as CSV: metric, unit, a column per run; numbers unrounded, empty when unknown.

        Metrics have the names and units of schedule.csv and results.csv, where shares are 0 to 1.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["metric", "unit", *self.labels])
        for number, row in enumerate(self.rows[0]):
            values = [rows[number].raw for rows in self.rows]
            unit = "" if row.column.factor != 1 else row.unit
            writer.writerow([row.column.name, unit, *("" if value is None else repr(value) for value in values)])
        return out.getvalue()

    @property
    def frame(self) -> pd.DataFrame:
        """The metrics as a frame: a row per metric under its name in results.csv, a column per run, as in the CSV."""
        names = [row.column.name for row in self.rows[0]]
        values = {label: [row.raw for row in rows] for label, rows in zip(self.labels, self.rows, strict=True)}
        return pd.DataFrame(values, index=pd.Index(names, name="metric"), dtype="float64")

    def __repr__(self) -> str:
        """Return the comparison for a terminal: warnings, table, explanations of signs."""
        warnings = [f"warning: {warning}" for warning in self.warnings]
        return "\n".join([*warnings, self._display_frame.to_string(), *self.legend])

    def _repr_html_(self) -> str:
        """Return the comparison for a notebook, in the same order."""
        warnings = "".join(f"<p><b>warning:</b> {escape(warning)}</p>" for warning in self.warnings)
        signs = "".join(f"<p>{escape(line)}</p>" for line in self.legend)
        return f"<div>{warnings}{self._display_frame.to_html()}{signs}</div>"

    @property
    def _display_frame(self) -> pd.DataFrame:
        """The metrics that at least one run has, formatted, with the changes."""
        columns: dict[str, list[str]] = {"unit": [row.unit for row in self.rows[0]]}
        for run, label in enumerate(self.headings):
            columns[label] = [row.text for row in self.rows[run]]
            if run != self.baseline:
                columns[f"{label}, ±%"] = [self._change_text(run, number) for number in range(len(self.rows[run]))]
        table = pd.DataFrame(columns, index=[row.name.strip() for row in self.rows[0]])
        return table[[any(rows[number].value is not None for rows in self.rows) for number in range(len(table))]]

    def _change_text(self, run: int, row: int) -> str:
        change = self.change(run, row)
        return self.mark_of(run, row) if change is None else f"{change * 100:+.1f}"


#: Order of the metrics; utilisations of single resources are inserted before `throughput`.
_ORDER = (
    "nb_jobs_measured",
    "measured_from",
    "measured_until",
    "makespan",
    "mean_waiting_time",
    "median_waiting_time",
    *(f"p{rank}_waiting_time" for rank in PERCENTILES),
    "max_waiting_time",
    *(f"mean_waiting_time_{kind}" for kind in CLASSES),
    "mean_turnaround_time",
    "mean_slowdown",
    "max_slowdown",
    "mean_bounded_slowdown",
    "p95_bounded_slowdown",
    "mean_utilisation",
    "throughput",
    "fairness_by_user",
    "nb_evictions",
    "work_lost",
)


def metric_rows(
    metrics: Metrics, states: Sequence[str] | None = None, resources: Sequence[str] | None = None
) -> list[MetricRow]:
    """Return a run's numbers in display order.

    `states` and `resources` are the final states and the utilisation columns that get a row each: those that any of
    the compared runs has.
    """
    counts = metrics.states if states is None else {state: metrics.states.get(state, 0) for state in states}
    shares = utilisation_columns(metrics) if resources is None else resources
    names = [*_ORDER[: _ORDER.index("throughput")], *shares, *_ORDER[_ORDER.index("throughput") :], "nb_violations"]
    return [
        MetricRow(column_of("nb_jobs"), metrics.jobs),
        *(
            MetricRow(MetricColumn(f"nb_{state.lower()}", f"  {state.lower()}", decimals=0), count)
            for state, count in counts.items()
        ),
        *(MetricRow(column_of(name), metrics.columns.get(name)) for name in names),
    ]


def utilisation_columns(metrics: Metrics) -> list[str]:
    """Return the columns with the utilisation of single resources, except cpu."""
    names = [name for name in metrics.columns if name.startswith(UTILISATION_PREFIX)]
    return [name for name in names if name != f"{UTILISATION_PREFIX}{CPU}"]


def compare_runs(runs: Sequence[MeasuredRun], *, baseline: int = 0) -> Comparison:
    """Compare the runs with `runs[baseline]`."""
    metrics = [run.metrics for run in runs]
    states = sorted({state for run_metrics in metrics for state in run_metrics.states})
    resources = list(dict.fromkeys(name for run_metrics in metrics for name in utilisation_columns(run_metrics)))
    defaults = labels_of([run.path for run in runs])
    labels = [run.label or default for run, default in zip(runs, defaults, strict=True)]
    tables = _match_jobs([run.jobs for run in runs])
    others = [number for number in range(len(runs)) if number != baseline]
    warnings = [
        f"{label} {remark}"
        for label, run in zip(labels, runs, strict=True)
        for remark in (run.failure_remark, run.change_remark, run.violation_remark, run.loss_remark, run.window_remark)
        if remark
    ]
    warnings += [
        warning
        for number in others
        for warning in _workload_warnings(labels[baseline], labels[number], tables[baseline], tables[number])
    ]
    warnings += _sanity_warnings(runs, labels, tables, baseline)
    recorded_counts = [(label, run.machine_count_recorded) for label, run in zip(labels, runs, strict=True)]
    counts = {label: count for label, count in recorded_counts if count is not None}
    if len(set(counts.values())) > 1:
        sizes = ", ".join(f"{label} {count}" for label, count in counts.items())
        warnings.append(f"the runs have different numbers of machines: {sizes}")
    return Comparison(
        labels,
        baseline,
        comparability_of(
            [run.metrics.violations for run in runs], [run.metrics.jobs - run.metrics.finished for run in runs]
        ),
        [metric_rows(run_metrics, states, resources) for run_metrics in metrics],
        warnings,
        [_differences(labels[number], tables[baseline], tables[number]) for number in others],
    )


def _match_jobs(frames: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """Return the frames indexed so that the same job has the same index in each."""
    if all(frame["job_id"].is_unique for frame in frames):
        return [frame.set_index("job_id") for frame in frames]
    return [frame.set_index(frame["workload_name"] + "!" + frame["job_id"]) for frame in frames]


def _workload_warnings(base_label: str, label: str, base: pd.DataFrame, other: pd.DataFrame) -> list[str]:
    warnings = []
    missing, extra = len(base.index.difference(other.index)), len(other.index.difference(base.index))
    if missing or extra:
        warnings.append(f"{label} lacks {missing:,} jobs of {base_label} and has {extra:,} more")
    common = base.index.intersection(other.index)
    shift = (other.loc[common, "submission_time"] - base.loc[common, "submission_time"]).abs()
    moved = int((shift > _RESOLUTION_S).sum())
    if moved:
        warnings.append(
            f"{label} submits {moved} of {len(common)} jobs at other times than {base_label}, "
            f"by up to {f'{shift.max():,.6f}'.rstrip('0').rstrip('.')} s"
        )
    return warnings


def _sanity_warnings(
    runs: Sequence[MeasuredRun], labels: Sequence[str], tables: Sequence[pd.DataFrame], baseline: int
) -> list[str]:
    """Return warnings on comparisons without meaning: no job waited, or different schedulers gave the same schedule."""
    warnings = []
    waits = pd.concat([table["starting_time"] - table["submission_time"] for table in tables]).dropna()
    if len(tables[baseline]) >= _FEW_JOBS and (waits.abs() <= _RESOLUTION_S).all():
        warnings.append("no job waited in any of the runs, so the workload hardly distinguishes schedulers")
    schedulers = [run.manifest.get("scheduler") for run in runs]
    for number, label in enumerate(labels):
        if schedulers[number] == schedulers[baseline] or len(tables[baseline]) < _FEW_JOBS:
            continue
        difference = _differences(label, tables[baseline], tables[number])
        if difference.common == len(tables[baseline]) and not (difference.moved or difference.elsewhere):
            warnings.append(f"{label} has the same schedule as {labels[baseline]}, although their schedulers differ")
    return warnings


def rank_correlation(one: pd.Series[float], other: pd.Series[float]) -> float | None:
    """Return Spearman's rank correlation over the jobs that have both values; None if a side has equal values only."""
    has_both = one.notna() & other.notna()
    ranks, others = one[has_both].rank(), other[has_both].rank()
    if ranks.nunique() < 2 or others.nunique() < 2:
        return None
    return float(ranks.corr(others))


def _differences(label: str, base: pd.DataFrame, other: pd.DataFrame) -> JobDifferences:
    common = base.index.intersection(other.index, sort=False)
    base, other = base.loc[common], other.loc[common]
    shift = (other["starting_time"] - base["starting_time"]).dropna()
    moved = shift[shift.abs() > _RESOLUTION_S]
    most = int(moved.abs().to_numpy().argmax()) if len(moved) else 0
    are_known = (base["allocated_resources"] != "") & (other["allocated_resources"] != "")
    return JobDifferences(
        label=label,
        common=len(common),
        moved=len(moved),
        moved_s_mean=float(moved.abs().mean()) if len(moved) else 0.0,
        moved_s_max=float(moved.iloc[most]) if len(moved) else 0.0,
        moved_most=str(moved.index[most]) if len(moved) else "",
        start_order=rank_correlation(base["starting_time"], other["starting_time"]),
        elsewhere=int((are_known & (base["allocated_resources"] != other["allocated_resources"])).sum()),
        ended_otherwise=int((base["final_state"] != other["final_state"]).sum()),
    )
