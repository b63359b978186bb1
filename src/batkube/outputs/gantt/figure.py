"""The Gantt chart as a matplotlib figure.

It is built from matplotlib's objects only (no pyplot, no global state), with a fixed style. The same run therefore
gives the same bytes, whatever the user's matplotlib settings.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from batkube.outputs.charts.notebook_figure import NotebookFigure
from batkube.outputs.charts.style import house_style
from batkube.outputs.charts.time_axis import time_axis
from batkube.outputs.gantt.layout import Layout, layout_of
from batkube.outputs.gantt.model import GanttModel
from batkube.outputs.gantt.rows import (
    ABSENT_FILL,
    ABSENT_HATCH,
    ABSENT_LINES,
    FAILURE_COLOUR,
    FAILURE_HATCH,
    LOST_COLOUR,
    LOST_HATCH,
    OUTLINE_COLOUR,
    draw_rows,
)
from batkube.outputs.measures.occupancy.stays import Floats
from batkube.outputs.measures.occupancy.step_functions import StepFunction
from batkube.outputs.pages.colours import LIGHT

#: Maximum number of steps of a curve in the lower panel; more are averaged.
MAX_STEPS = 1_000

_DPI = 160
#: Line style of the reference run's curves.
_Dashes = Literal["-"] | tuple[float, tuple[float, ...]]
_REFERENCE_DASHES: _Dashes = (0, (2.2, 1.2))
_UTILISATION, _QUEUE = "#33669A", "#B4442E"
#: The same curves in print: one pale and one dark, since a reader may not see colours.
_PALE, _DARK = "#8FB3D6", "#7A2414"


class ChartArea(NamedTuple):
    """A part of the page, as shares of its width and height."""

    left: float
    width: float
    top: float
    height: float


def build(model: GanttModel, width_in: float | None = None) -> Figure:
    """Return the chart as a figure; `width_in` is its width in print."""
    with house_style():
        layout = _layout(model, width_in)
        figure = NotebookFigure(figsize=(layout.page_width, layout.height), dpi=_DPI, facecolor="white")

        def axes(above_in: float, height_in: float) -> Axes:
            page_width, bottom = layout.page_width, layout.height - above_in - height_in
            rectangle = (layout.left / page_width, bottom / layout.height, layout.width / page_width)
            return figure.add_axes((*rectangle, height_in / layout.height))

        rows = axes(layout.header, layout.rows_height)
        panel = axes(layout.panel_top, layout.panel_height)
        draw_rows(rows, model, width_in=layout.width, height_in=layout.rows_height)
        _draw_panel(panel, model, *((_UTILISATION, _QUEUE) if width_in is None else (_PALE, _DARK)))
        _draw_time(rows, panel, model, layout.max_ticks)
        figure.align_ylabels([rows, panel])
        _draw_header(figure, model, layout)
    return figure


def box_outlines_pt(model: GanttModel) -> Floats:
    """Return (x, y, width, height) of each box in the SVG's own units: points from the page's upper left corner."""
    layout, boxes = _layout(model), model.boxes
    second_pt = layout.width * 72 / (model.end_s - model.start_s)
    row_pt = layout.rows_height * 72 / len(model.machine_names)
    return np.stack(
        (
            layout.left * 72 + (boxes.left - model.start_s) * second_pt,
            layout.header * 72 + boxes.top * row_pt,
            (boxes.right - boxes.left) * second_pt,
            (boxes.bottom - boxes.top) * row_pt,
        ),
        axis=1,
    )


def chart_area(model: GanttModel) -> ChartArea:
    """Return the part of the page with the machines' rows and the curves."""
    layout = _layout(model)
    return ChartArea(
        left=layout.left / layout.page_width,
        width=layout.width / layout.page_width,
        top=layout.header / layout.height,
        height=(layout.panel_top + layout.panel_height - layout.header) / layout.height,
    )


def _layout(model: GanttModel, width_in: float | None = None) -> Layout:
    return layout_of(model, [str(patch.get_label()) for patch in _legend_patches(model)], width_in)


def _draw_header(figure: Figure, model: GanttModel, layout: Layout) -> None:
    left, height = layout.left / layout.page_width, layout.height
    figure.text(left, 1 - 0.20 / height, model.title, fontsize=12, weight="bold", va="top")
    figure.text(left, 1 - 0.46 / height, model.subtitle, fontsize=8, color="#555555", va="top")
    legend = _legend_patches(model)
    if legend:
        figure.legend(
            handles=legend,
            loc="lower center",
            ncols=layout.legend_columns,
            frameon=False,
            fontsize=7.5,
            handlelength=1.6,
            labelspacing=0.3,
            columnspacing=1.4,
            borderaxespad=0.2,
        )


def _draw_panel(axes: Axes, model: GanttModel, load_colour: str, queue_colour: str) -> None:
    axes.set_xlim(model.start_s, model.end_s)
    load = model.utilisation.within(model.start_s, model.end_s, max_steps=MAX_STEPS)
    axes.fill_between(load.times, load.values, step="post", color=load_colour, alpha=0.22, linewidth=0)
    _draw_steps(axes, load, load_colour, 0.9)
    queue = model.queue.within(model.start_s, model.end_s, max_steps=MAX_STEPS)
    max_waiting = float(queue.values.max())
    right = axes.twinx()
    if model.reference is not None:
        # Drawn first, and dashed, so that the run itself stands out.
        other_load = model.reference.utilisation.within(model.start_s, model.end_s, max_steps=MAX_STEPS)
        _draw_steps(axes, other_load, load_colour, 0.7, _REFERENCE_DASHES)
        other_queue = model.reference.queue.within(model.start_s, model.end_s, max_steps=MAX_STEPS)
        _draw_steps(right, other_queue, queue_colour, 0.8, _REFERENCE_DASHES)
        max_waiting = max(max_waiting, float(other_queue.values.max()))
    axes.set_ylim(0, max(1.0, float(load.values.max())))
    axes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"], fontsize=7)
    axes.set_ylabel("utilisation", color=_UTILISATION)
    _draw_steps(right, queue, queue_colour, 1.0)
    right.set_ylim(0, max(1.0, max_waiting) * 1.06)
    right.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
    right.tick_params(axis="y", labelsize=7)
    right.set_ylabel("jobs waiting", color=_QUEUE)
    axes.spines["top"].set_visible(False)
    right.spines["top"].set_visible(False)


def _draw_steps(axes: Axes, steps: StepFunction, colour: str, width: float, dashes: _Dashes = "-") -> None:
    # Unclipped, so that a line at the limit of its axis has its whole width.
    axes.step(steps.times, steps.values, where="post", color=colour, linewidth=width, linestyle=dashes, clip_on=False)


def _draw_time(rows: Axes, panel: Axes, model: GanttModel, max_ticks: int) -> None:
    axis = time_axis(model.start_s, model.end_s, max_ticks=max_ticks)
    for axes in (rows, panel):
        axes.set_xticks(axis.ticks_s, axis.labels)
        axes.grid(axis="x", color=LIGHT["rule"], linewidth=0.6)
    rows.tick_params(axis="x", labelbottom=False, length=0)
    panel.set_xlabel(f"time ({axis.unit})")


def _legend_patches(model: GanttModel) -> list[Artist]:
    def patch(fill: str, label: str, edge: str | None = None, hatch: str | None = None) -> Patch:
        return Patch(facecolor=fill, edgecolor=edge, hatch=hatch, label=model.labels.text(label, 36))

    entries = model.colouring.legend
    patches: list[Artist] = [
        patch(entry.fill, entry.label, FAILURE_COLOUR, entry.hatch or FAILURE_HATCH)
        if entry.is_failure
        else patch(entry.fill, entry.label, OUTLINE_COLOUR if entry.hatch else None, entry.hatch or None)
        for entry in entries
    ]
    has_failures = any(entry.is_failure for entry in entries)
    if not has_failures and (model.is_failure & ~model.boxes.lost).any():
        patches.append(patch("white", "failed, killed or over its walltime", FAILURE_COLOUR, FAILURE_HATCH))
    if model.boxes.lost.any():
        patches.append(patch("white", "evicted or lost, run again", LOST_COLOUR, LOST_HATCH))
    if model.reference is not None:
        label = f"against {model.labels.text(model.reference.name)} (below: dashed lines)"
        patches.append(Line2D([], [], color=LIGHT["ink"], linewidth=0.8, linestyle=_REFERENCE_DASHES, label=label))
    if model.absences:
        patches.append(patch(ABSENT_FILL, "machine not available", ABSENT_LINES, ABSENT_HATCH))
    return patches
