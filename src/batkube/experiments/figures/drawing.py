"""Charts as matplotlib figures: layout, legend, and the parts that all kinds of chart share."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from batkube.experiments.figures.bars import bars_per_row, draw_bars, label_bars
from batkube.experiments.figures.chart_data import Chart, Panel
from batkube.experiments.figures.charts import OWN_SERIES
from batkube.experiments.figures.layout import LEGEND_CHARACTER_IN, LEGEND_MARK_IN, FigureLayout, layout_of
from batkube.experiments.figures.lines import draw_lines
from batkube.experiments.figures.marks import marks_of
from batkube.experiments.figures.plan import FigurePlan
from batkube.outputs.charts.axes import format_axis
from batkube.outputs.charts.labels import FigureLabels, single_line
from batkube.outputs.charts.style import chart_style
from batkube.outputs.pages.colours import LIGHT

#: Panels whose values differ by no more than this factor have one unit.
_MAX_SCALE_RATIO = 20
#: Lower panels have fewer ticks.
_LOW_PANEL_IN = 1.3
_TITLE_CHARACTER_IN = 0.095
#: Narrower panels side by side have no room for a label each.
_LABELLED_IN = 1.1


def draw(
    chart: Chart, *, with_title: bool = True, width_in: float | None = None, labels: FigureLabels | None = None
) -> Figure:
    """Return the chart as a figure; without its title if the page around it has one.

    For print it is `width_in` inches wide, with as many panels side by side as fit. Raises InputError if names leave no
    room for bars.
    """
    labels, marks = labels or FigureLabels(), marks_of(chart)
    legend = _legend_names(chart)
    is_bars = bool(chart.x.categories) and chart.kind in ("bar", "box")
    legend_columns = _legend_columns(legend, labels, width_in)
    layout = layout_of(
        chart,
        labels,
        bars_per_row=bars_per_row(chart) if is_bars else 0,
        legend_rows=-(-len(legend) // legend_columns),
        with_title=with_title,
        width_in=width_in,
    )
    plan = FigurePlan(chart, marks, labels, layout)
    with chart_style():
        figure = _figure(layout)
        _draw_lines_of_panels(figure, plan)
        if with_title:
            figure.text(
                0.012, 1 - 0.1 / layout.height_in, single_line(chart.title), fontsize=12, weight="bold", va="top"
            )
        if legend:
            _draw_legend(figure, plan, legend, legend_columns)
    return figure


def _figure(layout: FigureLayout) -> Figure:
    height = layout.height_in
    engine = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - layout.top_in / height), h_pad=0.06, w_pad=0.06, wspace=0.04)
    return Figure(figsize=(layout.width_in, height), dpi=160, facecolor="white", layout=engine)


def _draw_lines_of_panels(figure: Figure, plan: FigurePlan) -> None:
    columns = plan.layout.columns
    lines = [row[start : start + columns] for row in plan.chart.rows for start in range(0, len(row), columns)]
    grid = figure.subplots(len(lines), columns, squeeze=False)
    for number, line in enumerate(lines):
        for place, axes in enumerate(grid[number]):
            if place < len(line):
                _draw_panel(axes, plan, line[place], is_first=place == 0)
            else:
                axes.set_visible(False)
    _format_value_axes(plan, [axes for axes in figure.axes if axes.get_visible()])


def _draw_legend(figure: Figure, plan: FigurePlan, names: Sequence[str], columns: int) -> None:
    handles = [_legend_handle(plan, name) for name in names]
    figure.legend(
        # matplotlib fills legends by columns, but they are read by rows.
        handles=[handle for column in range(columns) for handle in handles[column::columns]],
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - (plan.layout.legend_top_in - 0.06) / plan.layout.height_in),
        ncols=columns,
        frameon=False,
        fontsize=8.5,
        handlelength=3.4,
        columnspacing=1.6,
        borderaxespad=0.2,
    )


def _legend_names(chart: Chart) -> list[str]:
    """Return the series and levels that the legend names: those that are not beside the axis, unless it is only one."""
    names = [label for label in chart.labels if label not in chart.x.categories]
    return [] if names == [OWN_SERIES] else names


def _legend_text(labels: FigureLabels, name: str, width_in: float | None) -> str:
    max_length = 48 if width_in is None else min(48, int((width_in - LEGEND_MARK_IN) / LEGEND_CHARACTER_IN))
    return labels.text(name, max_length)


def _legend_columns(names: Sequence[str], labels: FigureLabels, width_in: float | None) -> int:
    max_length = max((len(_legend_text(labels, name, width_in)) for name in names), default=1)
    width = width_in or 7.2
    return max(1, min(len(names), int(width / (LEGEND_MARK_IN + LEGEND_CHARACTER_IN * max_length))))


def _draw_panel(axes: Axes, plan: FigurePlan, panel: Panel, *, is_first: bool) -> None:
    if plan.chart.kind in ("bar", "box"):
        draw_bars(axes, plan, panel, with_names=is_first)
    else:
        draw_lines(axes, plan, panel)
    if panel.facet:
        max_length = max(8, int(plan.layout.width_in / plan.layout.columns / _TITLE_CHARACTER_IN))
        axes.set_title(plan.labels.text(panel.facet, max_length), fontsize=9, weight="bold", loc="left")
    if panel.undrawn_count:
        values = f"{panel.undrawn_count} value{'s' * (panel.undrawn_count != 1)}"
        sign = "▾ " if panel.undrawn and plan.chart.kind in ("line", "scatter") else ""
        axes.set_title(f"{sign}{values} ≤ 0", fontsize=7.5, color=LIGHT["quiet"], loc="right")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _format_value_axes(plan: FigurePlan, all_axes: list[Axes]) -> None:
    """Set the ticks of the value axes: panels of one column share a unit, unless their ranges differ too much."""
    chart = plan.chart
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
                max_ticks=_max_ticks(plan, is_horizontal=is_horizontal),
                is_whole=panel.column.decimals == 0,
                shared_limits=shared,
                max_tick=panel.column.maximum,
            )
            if chart.kind == "bar" and plan.layout.has_numbers:
                label_bars(axis.axes, plan, panel, unit)
        if is_horizontal and plan.layout.axes_width_in < _LABELLED_IN:
            _remove_repeated_labels(value_axes, plan.layout.columns)


def _remove_repeated_labels(axes: Sequence[Axis], columns: int) -> None:
    """Remove the label of each axis whose left neighbour has the same one; it is wider than a narrow panel."""
    labels = [axis.get_label_text() for axis in axes]
    for place, axis in enumerate(axes):
        if place % columns and labels[place] == labels[place - 1]:
            axis.set_label_text("")


def _max_ticks(plan: FigurePlan, *, is_horizontal: bool) -> int:
    """Return the number of ticks that fit on the axis of values."""
    if is_horizontal:
        return max(3, min(5, int(plan.layout.axes_width_in / 0.45)))
    return 4 if plan.layout.panel_in < _LOW_PANEL_IN else 6


def _legend_handle(plan: FigurePlan, name: str) -> Artist:
    mark, kind = plan.marks[name], plan.chart.kind
    text = _legend_text(plan.labels, name, plan.layout.width_in if plan.layout.is_print else None)
    is_series = any(series.label == name for panel in plan.chart.panels for series in panel.series)
    if kind == "bar" and is_series:
        return Patch(facecolor=mark.colour, hatch=mark.hatch, edgecolor="white", label=text)
    return Line2D(
        [],
        [],
        color=mark.colour,
        linestyle="none" if kind in ("scatter", "box") and is_series and not mark.is_hollow else mark.dashes,
        linewidth=1.5,
        marker=plan.curve_markers(name)[0] if kind == "cdf" else mark.marker,
        markersize=4.5,
        markerfacecolor="none" if mark.is_hollow else mark.colour,
        label=text,
    )
