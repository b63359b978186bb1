"""Lines and scattered points over an x axis of numbers or of names."""

from __future__ import annotations

import math

from matplotlib.axes import Axes

from batkube.experiments.figures.chart_data import Chart, Panel, Series
from batkube.experiments.figures.marks import Mark
from batkube.outputs.charts.axes import format_axis, single_line
from batkube.outputs.pages.colours import LIGHT

#: With more points, intervals are drawn as a band, and markers are small.
_MANY_POINTS = 25
#: Maximum number of ticks on the x axis, with one, two and three panels side by side.
_MAX_TICKS = (8, 6, 5)
#: Names with more characters in total do not fit side by side, and are slanted.
_LETTERS_PER_PANEL = 70


def draw_lines(axes: Axes, chart: Chart, panel: Panel, marks: dict[str, Mark]) -> None:
    """Draw a panel of a line or scatter chart."""
    if chart.x.is_log:
        axes.set_xscale("log")
    if chart.log_y:
        axes.set_yscale("log")
    for series in panel.series:
        if chart.kind == "scatter" and not series.is_published:
            _scatter(axes, series, marks[series.label])
        else:
            _line(axes, series, marks[series.label], is_curve=chart.kind == "cdf")
    for level in panel.levels:
        mark = marks[level.label]
        if level.sample is not None and level.sample.has_interval:
            axes.axhspan(level.sample.low, level.sample.high, color=mark.colour, alpha=0.13, linewidth=0, zorder=1)
        # Above the frame, so that a level of 0 is visible; measured levels below the lines, theoretical ones above.
        above = 2.6 if level.sample is not None else 4
        axes.axhline(level.value, color=mark.colour, linestyle=mark.dashes, linewidth=1.3, zorder=above, clip_on=False)
    axes.grid(axis="y", color=LIGHT["rule"], linewidth=0.6)
    _limit_y(axes, chart, panel)
    _format_x_axis(axes, chart)


def _line(axes: Axes, series: Series, mark: Mark, *, is_curve: bool) -> None:
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
    axes.plot(
        x,
        y,
        color=mark.colour,
        linestyle=mark.dashes,
        linewidth=1.1 if has_many_points else 1.4,
        marker="" if is_curve else mark.marker,
        markersize=2.6 if has_many_points else 4.6,
        markerfacecolor="none" if mark.is_hollow else mark.colour,
        markeredgewidth=0.9,
        zorder=3,
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
        axes.set_ylim(min(ends) / 1.25, max(ends) * 1.25)
        return
    if chart.kind == "cdf":
        axes.set_ylim(0, 103)
        return
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    if 0 <= low < high * 0.5 or low == high == 0:
        axes.set_ylim(0, high * 1.06 or 1.0)
        return
    margin = (high - low) * 0.08 or max(abs(high) * 0.01, 1e-9)
    axes.set_ylim(low - margin, high + margin)


def _format_x_axis(axes: Axes, chart: Chart) -> None:
    names = chart.x.categories
    if not names:
        positions = [point.x for panel in chart.panels for series in panel.series for point in series.points]
        max_ticks = _MAX_TICKS[min(len(chart.rows[0]), len(_MAX_TICKS)) - 1]
        format_axis(
            axes.xaxis,
            chart.x.label,
            chart.x.unit,
            is_log=chart.x.is_log,
            max_ticks=max_ticks,
            preferred_ticks=positions,
        )
        return
    labels = [single_line(name, 28) for name in names]
    slanted = sum(len(name) + 3 for name in labels) > _LETTERS_PER_PANEL / math.sqrt(max(1, len(chart.rows[0])))
    axes.set_xticks(range(len(names)), labels, rotation=30 if slanted else 0, ha="right" if slanted else "center")
    axes.set_xlim(-0.4, len(names) - 0.6)
    axes.set_xlabel(single_line(chart.x.label))
