"""Horizontal bars and boxes: a name per row, so that names of any length are readable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from batkube.experiments.figures.chart_data import Chart, ChartPoint, Panel, Series
from batkube.experiments.figures.marks import Mark
from batkube.experiments.figures.number_format import format_mean
from batkube.outputs.charts.axes import single_line, unit_factor
from batkube.outputs.measures.intervals import Sample
from batkube.outputs.pages.colours import LIGHT

_BAR_IN, _GAP_IN = 0.22, 0.16
#: Approximate width of the names beside the axis, and of a number beside a bar.
_NAMES_IN, _NUMBER_IN = 1.3, 0.95
#: With fewer runs, only dots are drawn, without a box.
_MIN_BOX_RUNS = 5


def bar_height_in(chart: Chart) -> float:
    """Return the height of a panel, in which each row has space for all its bars."""
    return max(0.7, len(chart.x.categories) * (_bars_per_row(chart) * _BAR_IN + _GAP_IN))


def draw_bars(axes: Axes, chart: Chart, panel: Panel, marks: dict[str, Mark]) -> None:
    """Draw a panel of a bar or box chart."""
    share = _bar_share(chart)
    maximum = _axis_maximum(panel, chart.kind)
    if chart.log_y:
        axes.set_xscale("log")
    for series, point, y in _bar_positions(chart, panel):
        if chart.kind == "box":
            _draw_box(axes, point, y, share, marks[series.label])
        else:
            _draw_bar(axes, point, y, share, marks[series.label])
    for level in panel.levels:
        mark = marks[level.label]
        axes.axvline(level.value, color=mark.colour, linestyle=mark.dashes, linewidth=1.3, zorder=4)
    names = chart.x.categories
    axes.set_yticks(range(len(names)), [single_line(name, 34) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    if not chart.log_y:
        low = 0.0 if chart.kind == "bar" else _axis_minimum(panel, maximum)
        # Numbers beside bars need a larger share of a narrow panel.
        margin = _label_margin(axes, len(chart.rows[0])) if chart.kind == "bar" else 0.05
        axes.set_xlim(low, maximum + (maximum - low) * margin or 1.0)
    axes.grid(axis="x", color=LIGHT["rule"], linewidth=0.6)


def label_bars(axes: Axes, chart: Chart, panel: Panel, unit: str) -> None:
    """Write the means beside the bars of a panel, in the unit of its axis."""
    factor = unit_factor(unit) if panel.column.is_time else 1.0
    column = replace(panel.column, decimals=3) if factor > 1 else panel.column
    for _, point, y in _bar_positions(chart, panel):
        axes.annotate(
            f"{format_mean(_in_unit(point.sample, factor), column)} {unit}",
            (max(point.sample.mean, point.sample.high), y),
            (5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            annotation_clip=False,
            # Grid lines must not cross a number.
            bbox={"facecolor": LIGHT["paper"], "edgecolor": "none", "pad": 0.5},
        )


def _in_unit(sample: Sample, factor: float) -> Sample:
    sd = None if sample.sd is None else sample.sd / factor
    return Sample(
        sample.n, sample.mean / factor, sd, sample.low / factor, sample.high / factor, has_interval=sample.has_interval
    )


def _bar_positions(chart: Chart, panel: Panel) -> Iterator[tuple[Series, ChartPoint, float]]:
    """Yield every bar of a panel with its position."""
    slots, depth = _slots(panel, chart), _bars_per_row(chart)
    for series in panel.series:
        for point in series.points:
            has_own_row = series.is_published and series.label in chart.x.categories
            yield (
                series,
                point,
                point.x if has_own_row else point.x + (slots[series.label] - (depth - 1) / 2) * _bar_share(chart),
            )


def _bar_share(chart: Chart) -> float:
    """Return the share of a row that one bar occupies."""
    return _BAR_IN / (_bars_per_row(chart) * _BAR_IN + _GAP_IN)


def _label_margin(axes: Axes, facets: int) -> float:
    """Return the space beyond the longest bar, as a share of the axis, for the numbers beside bars."""
    figure = axes.figure
    assert isinstance(figure, Figure)
    subplot = axes.get_subplotspec()
    columns = facets if subplot is None else subplot.get_gridspec().ncols
    panel_in = figure.get_size_inches()[0] / columns - _NAMES_IN / columns
    return float(max(0.22 + 0.14 * min(3, facets), _NUMBER_IN / max(0.6, panel_in - _NUMBER_IN)))


def _slots(panel: Panel, chart: Chart) -> dict[str, int]:
    """Return the position of each series within a row; 0 for one that has rows of its own."""
    labels = [
        series.label for series in panel.series if not (series.is_published and series.label in chart.x.categories)
    ]
    places = {label: number for number, label in enumerate(labels)}
    return places | {series.label: 0 for series in panel.series if series.label not in places}


def _bars_per_row(chart: Chart) -> int:
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


def _draw_box(axes: Axes, point: ChartPoint, y: float, share: float, mark: Mark) -> None:
    values = np.array(point.values)
    if len(values) >= _MIN_BOX_RUNS:
        low, middle, high = np.percentile(values, [25, 50, 75])
        height = share * 0.7
        axes.plot([values.min(), values.max()], [y, y], color=mark.colour, linewidth=1.0, zorder=2)
        axes.add_patch(
            Rectangle(
                (low, y - height / 2), high - low, height, facecolor=mark.colour, alpha=0.3, linewidth=0, zorder=2
            )
        )
        axes.plot([middle, middle], [y - height / 2, y + height / 2], color=mark.colour, linewidth=1.8, zorder=3)
    axes.plot(
        values,
        np.full(len(values), y),
        linestyle="none",
        marker=mark.marker,
        markersize=3.4,
        color=mark.colour,
        markerfacecolor="none" if mark.is_hollow else mark.colour,
        alpha=0.75,
        zorder=4,
        clip_on=False,
    )
