"""Horizontal bars and boxes: a name per row, so that names of any length are readable."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from batkube.experiments.figures.chart_data import Chart, ChartPoint, Panel, Series
from batkube.experiments.figures.layout import row_label
from batkube.experiments.figures.marks import Mark
from batkube.experiments.figures.number_format import format_mean
from batkube.experiments.figures.plan import FigurePlan
from batkube.outputs.charts.axes import unit_factor
from batkube.outputs.measures.intervals import Sample
from batkube.outputs.pages.colours import LIGHT

#: The gap between the bars of a row and those of the next, in bars.
_GAP = 0.73
#: With fewer runs, only dots are drawn, without a box.
_MIN_BOX_RUNS = 5


def draw_bars(axes: Axes, plan: FigurePlan, panel: Panel, *, with_names: bool) -> None:
    """Draw a panel of a bar or box chart; names are beside the first panel of a line."""
    chart, marks = plan.chart, plan.marks
    share, floor = _bar_share(chart), -math.inf
    if chart.log_y:
        axes.set_xscale("log")
        if chart.kind == "box":
            floor = _log_floor(panel)
            axes.set_xlim(floor, max(_axis_maximum(panel, chart.kind), floor) * 1.25)
    for series, point, y in _bar_positions(chart, panel):
        if chart.kind == "box":
            _draw_box(axes, point, y, share, marks[series.label], floor)
        else:
            _draw_bar(axes, point, y, share, marks[series.label])
    for level in panel.levels:
        mark = marks[level.label]
        axes.axvline(level.value, color=mark.colour, linestyle=mark.dashes, linewidth=1.3, zorder=4)
    names = [row_label(plan.labels, name, plan.layout.name_characters) for name in chart.x.categories]
    axes.set_yticks(range(len(names)), names if with_names else [""] * len(names), linespacing=1.0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    if chart.log_y:
        _mark_undrawn(axes, chart, panel)
    else:
        _limit_x(axes, plan, panel)
    axes.grid(axis="x", color=LIGHT["rule"], linewidth=0.6)


def _log_floor(panel: Panel) -> float:
    """Return the beginning of the logarithmic axis of a box chart, below the smallest value that it can show."""
    values = [value for series in panel.series for point in series.points for value in point.values if value > 0]
    return min([*values, *(level.value for level in panel.levels)], default=1.0) / 1.25


def _limit_x(axes: Axes, plan: FigurePlan, panel: Panel) -> None:
    """Set the limits of a linear axis; the axis of shares ends at 100 %, and numbers may be beyond it."""
    is_bar = plan.chart.kind == "bar"
    maximum = _axis_maximum(panel, plan.chart.kind)
    low = 0.0 if is_bar else _axis_minimum(panel, maximum)
    largest = panel.column.maximum
    points = [point for series in panel.series for point in series.points]
    numbers = [_number_text(point.sample, panel, panel.column.unit) for point in points]
    has_numbers = is_bar and plan.layout.has_numbers
    margin = plan.layout.number_share(max(numbers, key=len, default="")) if has_numbers else 0.05
    high = maximum + (maximum - low) * margin or 1.0
    if largest is not None and maximum <= largest < high:
        axes.spines["bottom"].set_bounds(low, largest)
        high = high if has_numbers else largest
    axes.set_xlim(low, high)


def label_bars(axes: Axes, plan: FigurePlan, panel: Panel, unit: str) -> None:
    """Write the means beside the bars of a panel, in the unit of its axis."""
    for _, point, y in _bar_positions(plan.chart, panel):
        axes.annotate(
            _number_text(point.sample, panel, unit),
            (max(point.sample.mean, point.sample.high), y),
            (5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            annotation_clip=False,
            # Grid lines must not cross a number.
            bbox={"facecolor": LIGHT["paper"], "edgecolor": "none", "pad": 0.5},
        )


def _number_text(sample: Sample, panel: Panel, unit: str) -> str:
    factor = unit_factor(unit) if panel.column.is_time else 1.0
    column = replace(panel.column, decimals=3) if factor > 1 else panel.column
    return f"{format_mean(_in_unit(sample, factor), column)} {unit}"


def _in_unit(sample: Sample, factor: float) -> Sample:
    sd = None if sample.sd is None else sample.sd / factor
    return Sample(
        sample.n, sample.mean / factor, sd, sample.low / factor, sample.high / factor, has_interval=sample.has_interval
    )


def _bar_positions(chart: Chart, panel: Panel) -> Iterator[tuple[Series, ChartPoint, float]]:
    """Yield every bar of a panel with its position."""
    for series in panel.series:
        for point in series.points:
            yield series, point, _bar_position(chart, panel, series, point.x)


def _bar_position(chart: Chart, panel: Panel, series: Series, x: float) -> float:
    if series.is_published and series.label in chart.x.categories:
        return x  # it has a row of its own
    return x + (_slots(panel, chart)[series.label] - (bars_per_row(chart) - 1) / 2) * _bar_share(chart)


def _mark_undrawn(axes: Axes, chart: Chart, panel: Panel) -> None:
    """Write, instead of each bar that a logarithmic axis cannot show, that its value is 0 or less."""
    by_label = {series.label: series for series in panel.series}
    for label, x in panel.undrawn:
        if label in by_label:
            axes.annotate(
                "≤ 0",
                (0, _bar_position(chart, panel, by_label[label], x)),
                (3, 0),
                xycoords=axes.get_yaxis_transform(),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=LIGHT["quiet"],
            )


def _bar_share(chart: Chart) -> float:
    """Return the share of a row that one bar occupies."""
    return 1 / (bars_per_row(chart) + _GAP)


def _slots(panel: Panel, chart: Chart) -> dict[str, int]:
    """Return the position of each series within a row; 0 for one that has rows of its own."""
    labels = [
        series.label for series in panel.series if not (series.is_published and series.label in chart.x.categories)
    ]
    places = {label: number for number, label in enumerate(labels)}
    return places | {series.label: 0 for series in panel.series if series.label not in places}


def bars_per_row(chart: Chart) -> int:
    """Return the number of bars in a row."""
    return max((place + 1 for panel in chart.panels for place in _slots(panel, chart).values()), default=1)


def _axis_maximum(panel: Panel, kind: str) -> float:
    points = [point for series in panel.series for point in series.points]
    # Bars show means and intervals; single runs may lie far beyond.
    values = [value for point in points for value in point.values] if kind == "box" else []
    ends = [max(point.sample.mean, point.sample.high) for point in points]
    return max([*ends, *values, *(level.value for level in panel.levels)], default=1.0)


def _axis_minimum(panel: Panel, maximum: float) -> float:
    values = [value for series in panel.series for point in series.points for value in point.values]
    low = min([*values, *(level.value for level in panel.levels)], default=0.0)
    return 0.0 if 0 <= low < maximum * 0.5 else low - max((maximum - low) * 0.08, abs(maximum) * 1e-3)


def _draw_bar(axes: Axes, point: ChartPoint, y: float, share: float, mark: Mark) -> None:
    sample = point.sample
    axes.barh(y, sample.mean, share * 0.86, color=mark.colour, hatch=mark.hatch, edgecolor="white", lw=0, zorder=2)
    if sample.has_interval and sample.half:
        error = ([sample.mean - sample.low], [sample.high - sample.mean])
        axes.errorbar(
            sample.mean, y, xerr=error, fmt="none", ecolor=LIGHT["ink"], elinewidth=1.0, capsize=2.6, zorder=3
        )


def _draw_box(axes: Axes, point: ChartPoint, y: float, share: float, mark: Mark, floor: float) -> None:
    """Draw the dots and the box of some runs; what is below the `floor` of a logarithmic axis ends there."""
    values = np.array(point.values)
    if len(values) >= _MIN_BOX_RUNS:
        low, middle, high = np.percentile(values, [25, 50, 75])
        least, box_low, height = max(float(values.min()), floor), max(low, floor), share * 0.7
        axes.plot([least, values.max()], [y, y], color=mark.colour, linewidth=1.0, zorder=2)
        axes.add_patch(
            Rectangle(
                (box_low, y - height / 2),
                max(0.0, high - box_low),
                height,
                facecolor=mark.colour,
                alpha=0.3,
                linewidth=0,
                zorder=2,
            )
        )
        if middle > floor:
            axes.plot([middle, middle], [y - height / 2, y + height / 2], color=mark.colour, linewidth=1.8, zorder=3)
    drawn = values[values > floor]
    axes.plot(
        drawn,
        np.full(len(drawn), y),
        linestyle="none",
        marker=mark.marker,
        markersize=3.4,
        color=mark.colour,
        markerfacecolor="none" if mark.is_hollow else mark.colour,
        alpha=0.75,
        zorder=4,
        clip_on=False,
    )
