"""Cumulative distributions of waits and slowdowns over the jobs of an experiment's runs.

A mean hides whether all jobs waited a little or a few very long. Each run gives a curve. The chart shows, at each x,
the mean of the curves of a point of the grid, with its interval over runs: runs are the observations, since jobs of one
run are not independent of each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from batkube.experiments.description.figures import FigureSpec
from batkube.experiments.figures.chart_data import AxisScale, Chart, ChartPoint, Panel, Series, without_duplicates
from batkube.experiments.results.findings import Findings
from batkube.kernel.errors import InputError
from batkube.outputs.measures.intervals import Sample, sample_of
from batkube.outputs.measures.metric_columns import MetricColumn, job_column_of
from batkube.outputs.measures.metrics import bounded_slowdowns, finished_jobs, jobs_in
from batkube.outputs.measures.occupancy.stays import Floats
from batkube.outputs.results import Results

if TYPE_CHECKING:
    import pandas as pd

#: Number of positions at which the curves are evaluated: finer than print.
_POSITION_COUNT = 160
#: If the values span more than the first factor, the axis is logarithmic, and spans at most the second factor.
_LOG_FROM_RATIO, _MAX_RATIO = 100, 1e6
_SHARE = MetricColumn("share_of_jobs", "share of jobs with at most x", "%", decimals=1)


def distribution_chart(
    spec: FigureSpec, findings: Findings, frame: pd.DataFrame, marks: Mapping[str, str], remarks: Sequence[str]
) -> Chart | None:
    """Return the curves of the runs in `frame`; None if none of their jobs finished."""
    done = without_duplicates(frame[frame["state"] == "done"], list(findings.axes))
    values = {str(run): _values(findings, str(run), spec.y[0]) for run in done["run"]}
    pooled = np.concatenate([of_run for of_run in values.values() if len(of_run)] or [np.empty(0)])
    if not len(pooled):
        return None
    positions, is_log = _curve_positions(pooled)
    column = job_column_of(spec.y[0])
    facets = _labels(done, spec.facet, findings)
    rows = []
    for facet in facets:
        facet_rows = done[done[spec.facet] == facet] if facet else done
        series = []
        for label in _labels(facet_rows, spec.by, findings):
            runs = map(str, (facet_rows[facet_rows[spec.by] == label] if label else facet_rows)["run"])
            curves = [_cumulative_shares(values[run], positions) for run in runs if len(values[run])]
            if curves:
                name = f"{label} {marks.get(label, '')}".strip()
                series.append(Series(name or "all runs", _points(positions, curves)))
        rows.append(Panel(facet, _SHARE, tuple(series)))
    scale = AxisScale(column.label, column.unit, is_log=is_log)
    return Chart(spec.title, spec.kind, scale, (tuple(rows),), caption=spec.caption, remarks=tuple(remarks))


def _labels(frame: pd.DataFrame, axis: str, findings: Findings) -> list[str]:
    """Return the labels of an axis that have runs, in the experiment's order; one empty label without an axis."""
    labels = set(frame[axis]) if axis else set()
    return [label for label in findings.axes[axis] if label in labels] if axis else [""]


def _values(findings: Findings, run: str, name: str) -> Floats:
    """Return a number of each finished job in a run's window, sorted; none if the run's files are missing."""
    try:
        results: Results = findings.results(run)
        done = jobs_in(results.window, finished_jobs(results.jobs))
    except InputError:
        return np.empty(0)
    values: Floats = bounded_slowdowns(done) if name == "bounded_slowdown" else done[name].to_numpy(dtype=np.float64)
    return np.sort(values)


def _curve_positions(pooled: Floats) -> tuple[Floats, bool]:
    """Return the positions at which curves are evaluated, ascending, and whether the axis is logarithmic."""
    high = float(pooled.max())
    positive = pooled[pooled > 0]
    minimum = max(float(positive.min()), high / _MAX_RATIO) if len(positive) else 0.0
    if minimum and high > _LOG_FROM_RATIO * minimum:
        return np.geomspace(minimum / 1.15, high, _POSITION_COUNT), True
    low = float(pooled.min())
    return np.linspace(low, high if high > low else low + 1.0, _POSITION_COUNT), False


def _cumulative_shares(ordered: Floats, positions: Floats) -> Floats:
    shares: Floats = np.searchsorted(ordered, positions, side="right") / len(ordered) * 100
    return shares


def _points(positions: Floats, curves: Sequence[Floats]) -> tuple[ChartPoint, ...]:
    points = []
    for number, position in enumerate(positions):
        values = [float(curve[number]) for curve in curves]
        sample = sample_of(values)
        # Near the ends, Student's interval may exceed the range of a share, 0 to 100.
        clipped = Sample(
            sample.n, sample.mean, sample.sd, max(0.0, sample.low), min(100.0, sample.high), sample.has_interval
        )
        points.append(ChartPoint(float(position), clipped, tuple(values)))
    return tuple(points)
