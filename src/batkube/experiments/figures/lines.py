"""Lines and scattered points over an x axis of numbers or of names."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.markers import CARETDOWNBASE

from batkube.experiments.figures.chart_data import Chart, Panel, Series
from batkube.experiments.figures.marks import Mark
from batkube.experiments.figures.plan import FigurePlan
from batkube.outputs.charts.axes import format_axis
from batkube.outputs.pages.colours import LIGHT

#: With more points, intervals are drawn as a band, and markers are small.
_MANY_POINTS = 25
#: Maximum number of ticks on the x axis, and the width of one.
_MAX_TICKS, _TICK_IN = 8, 0.75
#: Names with more characters in an inch of the panel do not fit side by side, and are slanted.
_CHARACTERS_PER_IN = 9.5


def draw_lines(axes: Axes, plan: FigurePlan, panel: Panel) -> None:
    """Draw a panel of a line or scatter chart."""
    chart, marks = plan.chart, plan.marks
    if chart.x.is_log:
        axes.set_xscale("log")
    if chart.log_y:
        axes.set_yscale("log")
    for series in panel.series:
        if chart.kind == "scatter" and not series.is_published:
            _scatter(axes, series, marks[series.label])
        else:
            gaps = [x for label, x in panel.undrawn if label == series.label]
            markers = plan.curve_markers(series.label) if chart.kind == "cdf" else None
            _line(axes, series, marks[series.label], gaps, markers)
    _mark_undrawn(axes, panel, marks)
    for level in panel.levels:
        mark = marks[level.label]
        if level.sample is not None and level.sample.has_interval:
            axes.axhspan(level.sample.low, level.sample.high, color=mark.colour, alpha=0.13, linewidth=0, zorder=1)
        # Above the frame, so that a level of 0 is visible; measured levels below the lines, theoretical ones above.
        above = 2.6 if level.sample is not None else 4
        axes.axhline(level.value, color=mark.colour, linestyle=mark.dashes, linewidth=1.3, zorder=above, clip_on=False)
    axes.grid(axis="y", color=LIGHT["rule"], linewidth=0.6)
    _limit_y(axes, chart, panel)
    _format_x_axis(axes, plan)


def _line(
    axes: Axes, series: Series, mark: Mark, gaps: Sequence[float], curve_markers: tuple[str, tuple[float, float]] | None
) -> None:
    """Draw a line, which is interrupted at the `gaps`; `curve_markers` are those of a curve of many points."""
    x = [point.x for point in series.points]
    y = [point.sample.mean for point in series.points]
    below = [point.sample.mean - point.sample.low for point in series.points]
    above = [point.sample.high - point.sample.mean for point in series.points]
    has_many_points = len(x) > _MANY_POINTS
    if has_many_points:
        lows = [point.sample.low for point in series.points]
        axes.fill_between(x, lows, [point.sample.high for point in series.points], color=mark.colour, alpha=0.16, lw=0)
    elif any(below) or any(above):
        axes.errorbar(
            x, y, yerr=(below, above), fmt="none", ecolor=mark.colour, elinewidth=1.0, capsize=2.6, capthick=1.0
        )
    marker, marked_at = (mark.marker, None) if curve_markers is None else curve_markers
    vertices = sorted([*zip(x, y, strict=True), *((gap, math.nan) for gap in gaps)])
    axes.plot(
        [vertex[0] for vertex in vertices],
        [vertex[1] for vertex in vertices],
        color=mark.colour,
        linestyle=mark.dashes,
        linewidth=1.1 if has_many_points else 1.4,
        marker=marker,
        markevery=marked_at,
        markersize=2.6 if has_many_points and curve_markers is None else 4.6,
        markerfacecolor="none" if mark.is_hollow else mark.colour,
        markeredgewidth=0.9,
        zorder=3,
        clip_on=False,
    )


def _mark_undrawn(axes: Axes, panel: Panel, marks: dict[str, Mark]) -> None:
    """Mark, at the lower edge, the points that a logarithmic axis cannot show."""
    for label, x in panel.undrawn:
        if label in marks and (x > 0 or axes.get_xscale() != "log"):
            axes.plot(
                x,
                0,
                color=marks[label].colour,
                marker=CARETDOWNBASE,
                markersize=6,
                transform=axes.get_xaxis_transform(),
                zorder=5,
                clip_on=False,
            )


def _scatter(axes: Axes, series: Series, mark: Mark) -> None:
    axes.plot(
        [point.x for point in series.points],
        [point.sample.mean for point in series.points],
        color=mark.colour,
        linestyle="none",
        marker=mark.marker,
        markersize=4.6,
        alpha=0.75,
        zorder=3,
    )


def _limit_y(axes: Axes, chart: Chart, panel: Panel) -> None:
    """Set limits that include all means, intervals and levels, and 0 if it is near."""
    samples = [point.sample for series in panel.series for point in series.points]
    samples += [level.sample for level in panel.levels if level.sample is not None]
    ends = [end for sample in samples for end in (sample.low, sample.high)] + [level.value for level in panel.levels]
    if chart.log_y:
        ends = [end for end in ends if end > 0] or [1.0]
        axes.set_ylim(min(ends) / 1.25, min(max(ends) * 1.25, _maximum(panel)))
        return
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    maximum = _maximum(panel)
    if chart.kind == "cdf":
        low, high = 0.0, 100.0
    if 0 <= low < high * 0.5 or low == high == 0:
        axes.set_ylim(0, min(high * 1.06 or 1.0, maximum))
        return
    margin = (high - low) * 0.08 or max(abs(high) * 0.01, 1e-9)
    axes.set_ylim(low - margin, min(high + margin, maximum))


def _maximum(panel: Panel) -> float:
    """Return the upper end of the axis: the largest possible value, unless a mean is beyond it."""
    means = [point.sample.mean for series in panel.series for point in series.points]
    means += [level.value for level in panel.levels]
    maximum = panel.column.maximum
    return math.inf if maximum is None or max(means, default=0.0) > maximum else maximum


def _format_x_axis(axes: Axes, plan: FigurePlan) -> None:
    chart, labels = plan.chart, plan.labels
    names, label = chart.x.categories, labels.text(chart.x.label, 48)
    if not names:
        positions = [point.x for panel in chart.panels for series in panel.series for point in series.points]
        max_ticks = max(3, min(_MAX_TICKS, int(plan.layout.width_in / plan.layout.columns / _TICK_IN)))
        format_axis(
            axes.xaxis,
            label,
            chart.x.unit,
            is_log=chart.x.is_log,
            max_ticks=max_ticks,
            preferred_ticks=positions,
        )
        return
    texts = [labels.text(name, 28) for name in names]
    slanted = sum(len(name) + 3 for name in texts) > _CHARACTERS_PER_IN * plan.layout.width_in / plan.layout.columns
    axes.set_xticks(range(len(names)), texts, rotation=30 if slanted else 0, ha="right" if slanted else "center")
    axes.set_xlim(-0.4, len(names) - 0.6)
    axes.set_xlabel(label)
