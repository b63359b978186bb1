"""Cumulative distributions of a run's waits and slowdowns, as a figure.

A mean hides whether all jobs waited a little or a few very long; the distribution shows every job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from batkube.outputs.charts.style import chart_style
from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.measures.metrics import bounded_slowdowns, finished_jobs
from batkube.outputs.measures.occupancy.stays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE_IN = (9.6, 2.9)
#: Curves of more jobs are reduced to this many steps, which is finer than print.
_MAX_STEPS = 1_000
#: If the values span more than the first factor, the axis is logarithmic, and spans at most the second factor.
_LOG_FROM_RATIO, _MAX_RATIO = 100, 1e6


def draw_distributions(results: MeasuredRun) -> Figure | None:
    """Return the distributions of wait and bounded slowdown over finished jobs; None when no job finished."""
    done = finished_jobs(results.jobs)
    if done.empty:
        return None
    with chart_style():
        from matplotlib.figure import Figure

        from batkube.outputs.pages.colours import SERIES

        figure = Figure(figsize=_SIZE_IN, dpi=160, facecolor="white", layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw(left, done["waiting_time"].to_numpy(), "wait", "s", SERIES[0])
        _draw(right, bounded_slowdowns(done), "bounded slowdown", "", SERIES[1])
        left.set_ylabel("share of jobs with at most x")
    return figure


def _draw(axes: Axes, values: Floats, label: str, unit: str, colour: str) -> None:
    from batkube.outputs.charts.axes import format_axis
    from batkube.outputs.pages.colours import LIGHT

    ordered = np.sort(values)
    shares = np.arange(1, len(ordered) + 1) / len(ordered)
    if len(ordered) > _MAX_STEPS:
        selected = np.unique(np.linspace(0, len(ordered) - 1, _MAX_STEPS).round().astype(np.int64))
        ordered, shares = ordered[selected], shares[selected]
    begin, end, is_log = _axis_range(ordered)
    if is_log:
        axes.set_xscale("log")
    axes.set_xlim(begin, end)
    # The curve starts at the share of values below the axis, such as jobs that did not wait.
    inside = ordered > begin
    x = np.concatenate(([begin], ordered[inside], [end]))
    y = np.concatenate(([float((values <= begin).mean())], shares[inside], [1.0]))
    axes.step(x, y, where="post", color=colour, linewidth=1.4)
    mean = float(values.mean())
    axes.axvline(mean, color=LIGHT["quiet"], linewidth=1.0, linestyle=(0, (1.2, 1.6)))
    axes.annotate("mean", (mean, 0.03), (4, 0), textcoords="offset points", fontsize=8, color=LIGHT["quiet"])
    axes.set_ylim(0, 1.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.grid(axis="both", color=LIGHT["rule"], linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    format_axis(axes.xaxis, label, unit, is_log=is_log, max_ticks=6)


def _axis_range(ordered: Floats) -> tuple[float, float, bool]:
    """Return where the axis of some sorted values begins and ends, and whether it is logarithmic."""
    low, high = float(ordered[0]), float(ordered[-1])
    positive = ordered[ordered > 0]
    smallest = max(float(positive[0]), high / _MAX_RATIO) if len(positive) else 0.0
    if smallest and high > _LOG_FROM_RATIO * smallest:
        return smallest / 1.15, high * 1.15, True
    margin = (high - low) * 0.04 or max(abs(high) * 0.05, 0.5)
    return low - margin, high + margin, False
