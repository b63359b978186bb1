"""Charts as matplotlib figures: layout, legend, and the parts that all kinds of chart share."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from batkube.experiments.figures.bars import bar_height_in, draw_bars, label_bars
from batkube.experiments.figures.chart_data import Chart, Panel
from batkube.experiments.figures.charts import OWN_SERIES
from batkube.experiments.figures.lines import draw_lines
from batkube.experiments.figures.marks import Mark, marks_of
from batkube.outputs.charts.axes import format_axis, single_line
from batkube.outputs.charts.style import chart_style

_WIDTH_IN = {1: 7.2, 2: 9.6, 3: 12.0}
_MAX_COLUMNS = 3
_LINE_PANEL_IN = 2.55
#: Narrower panels are not readable in print.
_MIN_PANEL_IN = 2.3
#: Panels whose values differ by no more than this factor have one unit.
_MAX_SCALE_RATIO = 20
_TITLE_IN, _LEGEND_ROW_IN, _MARGIN_IN, _FACET_IN, _AXIS_IN = 0.36, 0.24, 0.12, 0.26, 0.5


@dataclass(frozen=True, slots=True)
class _Legend:
    handles: list[Artist]
    columns: int

    @property
    def height_in(self) -> float:
        return math.ceil(len(self.handles) / self.columns) * _LEGEND_ROW_IN + 0.06 if self.handles else 0.0


def draw(chart: Chart, *, with_title: bool = True, width_in: float | None = None) -> Figure:
    """Return the chart as a figure; without its title if the page around it has one.

    For print it is `width_in` inches wide, with as many panels side by side as fit.
    """
    marks = marks_of(chart)
    facets = len(chart.rows[0])
    max_columns = _MAX_COLUMNS if width_in is None else max(1, int(width_in / _MIN_PANEL_IN))
    columns = math.ceil(facets / math.ceil(facets / max_columns))
    lines = [row[start : start + columns] for row in chart.rows for start in range(0, facets, columns)]
    width = _WIDTH_IN[columns] if width_in is None else width_in
    legend = _legend(chart, marks, width)
    panel_in = bar_height_in(chart) if chart.x.categories and chart.kind in ("bar", "box") else _LINE_PANEL_IN
    facet_in = _FACET_IN if any(panel.facet for panel in chart.panels) else 0.0
    line_in = panel_in + _AXIS_IN + facet_in
    top = _MARGIN_IN + (_TITLE_IN if with_title else 0.0) + legend.height_in
    height = top + line_in * len(lines)
    with chart_style():
        layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - top / height), h_pad=0.06, w_pad=0.06, wspace=0.04)
        figure = Figure(figsize=(width, height), dpi=160, facecolor="white", layout=layout)
        grid = figure.subplots(len(lines), columns, squeeze=False)
        for number, line in enumerate(lines):
            for place, axes in enumerate(grid[number]):
                if place < len(line):
                    _draw_panel(axes, chart, line[place], marks)
                else:
                    axes.set_visible(False)
        _format_value_axes(chart, [axes for axes in figure.axes if axes.get_visible()])
        if with_title:
            figure.text(0.012, 1 - 0.1 / height, single_line(chart.title, 90), fontsize=12, weight="bold", va="top")
        if legend.handles:
            offset = (_MARGIN_IN + (_TITLE_IN if with_title else 0.0) - 0.06) / height
            figure.legend(
                handles=legend.handles,
                loc="upper left",
                bbox_to_anchor=(0.0, 1 - offset),
                ncols=legend.columns,
                frameon=False,
                fontsize=8.5,
                handlelength=2.6,
                columnspacing=1.6,
                borderaxespad=0.2,
            )
    return figure


def _draw_panel(axes: Axes, chart: Chart, panel: Panel, marks: dict[str, Mark]) -> None:
    if chart.kind in ("bar", "box"):
        draw_bars(axes, chart, panel, marks)
    else:
        draw_lines(axes, chart, panel, marks)
    if panel.facet:
        axes.set_title(single_line(panel.facet), fontsize=9, weight="bold", loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _format_value_axes(chart: Chart, all_axes: list[Axes]) -> None:
    """Set the ticks of the value axes: panels of one column share a unit, unless their ranges differ too much."""
    is_horizontal = chart.kind in ("bar", "box")
    facets = len(chart.rows[0])
    for number, row in enumerate(chart.rows):
        value_axes = [
            axes.xaxis if is_horizontal else axes.yaxis for axes in all_axes[number * facets : (number + 1) * facets]
        ]
        ranges = [sorted(axis.get_view_interval()) for axis in value_axes]
        spans = [high - low for low, high in ranges]
        low, high = ranges[spans.index(max(spans))]
        shared = (low, high) if max(spans) <= _MAX_SCALE_RATIO * min(spans) else None
        for axis, panel in zip(value_axes, row, strict=True):
            unit = format_axis(
                axis,
                panel.column.label,
                panel.column.unit,
                is_log=chart.log_y,
                max_ticks=5 if is_horizontal else 6,
                is_whole=panel.column.decimals == 0,
                shared_limits=shared,
            )
            if chart.kind == "bar":
                label_bars(axis.axes, chart, panel, unit)


def _legend(chart: Chart, marks: dict[str, Mark], width_in: float) -> _Legend:
    series_labels = [series.label for panel in chart.panels for series in panel.series]
    # Series that are named beside the axis need no legend.
    labels = [label for label in chart.labels if label not in chart.x.categories]
    if labels == [OWN_SERIES]:
        labels = []
    handles = [_legend_handle(label, marks[label], chart.kind, label in series_labels) for label in labels]
    max_length = max((len(single_line(label)) for label in labels), default=1)
    columns = max(1, min(len(handles), int(width_in / (0.62 + 0.083 * max_length))))
    # matplotlib fills legends by columns, but they are read by rows.
    return _Legend([handle for column in range(columns) for handle in handles[column::columns]], columns)


def _legend_handle(label: str, mark: Mark, kind: str, is_series: bool) -> Artist:
    if kind == "bar" and is_series:
        return Patch(facecolor=mark.colour, hatch=mark.hatch, edgecolor="white", label=single_line(label))
    return Line2D(
        [],
        [],
        color=mark.colour,
        linestyle="none" if kind in ("scatter", "box") and is_series and not mark.is_hollow else mark.dashes,
        linewidth=1.5,
        marker="" if kind == "cdf" else mark.marker,
        markersize=4.5,
        markerfacecolor="none" if mark.is_hollow else mark.colour,
        label=single_line(label),
    )
