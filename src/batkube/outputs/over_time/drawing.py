"""Charts over time as matplotlib figures, readable without colours: by dashes, hatches and lightness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from batkube.outputs.charts.labels import FigureLabels, single_line
from batkube.outputs.charts.notebook_figure import NotebookFigure
from batkube.outputs.charts.palette import FILLS, HATCHES
from batkube.outputs.charts.series_marks import curve_markers, series_mark
from batkube.outputs.charts.style import chart_style
from batkube.outputs.charts.time_axis import time_axis
from batkube.outputs.measures.occupancy.step_functions import StepFunction
from batkube.outputs.over_time.curves import CurvePanel
from batkube.outputs.pages.colours import LIGHT

_WIDTH_IN, _PANEL_IN = 7.16, 1.55
#: Maximum number of steps per inch; more are averaged, since they would blur on paper.
_STEPS_PER_IN = 90
_TITLE_IN, _LEGEND_IN, _AXIS_IN = 0.32, 0.2, 0.42
#: Figures for print are at most as high as a page; panels are lower if there are many.
_MAX_HEIGHT_IN, _MIN_PANEL_IN = 9.0, 0.7
#: Width of a character of the legend, and of its lines with their distances.
_CHARACTER_IN, _HANDLE_IN = 0.085, 0.6
#: The fill and the hatch of each state, dark at the bottom of the stack.
_FILLS = {
    "computing": ("#33669A", None),
    "switching on": ("#9FC3E4", "////"),
    "switching off": ("#9FC3E4", "\\\\\\\\"),
    "sleeping": ("#C9C9C9", "...."),
    "idle": ("#F1F1F1", None),
    "not available": ("#FFFFFF", "xxxx"),
    "free": ("#9FC3E4", None),
}


def draw_panels(
    panels: Sequence[CurvePanel],
    start_s: float,
    end_s: float,
    *,
    title: str = "",
    width_in: float | None = None,
    labels: FigureLabels | None = None,
) -> Figure:
    """Return a figure with the panels below one another, over the same time range."""
    width = width_in or _WIDTH_IN
    curve_labels = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
    plan = _Plan(curve_labels, labels or FigureLabels(), width)
    top = (_TITLE_IN if title else 0.06) + _LEGEND_IN * plan.legend_rows
    panel_in = min(_PANEL_IN, max(_MIN_PANEL_IN, (_MAX_HEIGHT_IN - top - _AXIS_IN) / len(panels)))
    height = top + panel_in * len(panels) + _AXIS_IN
    with chart_style():
        layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - top / height), h_pad=0.05, w_pad=0.05)
        figure = NotebookFigure(figsize=(width, height), dpi=160, facecolor="white", layout=layout)
        grid: list[Axes] = list(figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0])
        for axes, panel in zip(grid, panels, strict=True):
            axes.set_xlim(start_s, end_s)
            steps = [curve.steps.within(start_s, end_s, max_steps=int(width * _STEPS_PER_IN)) for curve in panel.curves]
            _draw(axes, panel, steps, plan)
        axis = time_axis(start_s, end_s, max_ticks=int(width * 1.6))
        grid[-1].set_xticks(axis.ticks_s, axis.labels)
        grid[-1].set_xlabel(f"time ({axis.unit})")
        figure.align_ylabels(grid)
        if title:
            figure.text(0.012, 1 - 0.08 / height, single_line(title), fontsize=11, weight="bold", va="top")
        if plan.legend_rows:
            _legend(figure, grid, plan, (_TITLE_IN if title else 0.06) / height)
    return figure


@dataclass(frozen=True, slots=True)
class _Plan:
    """What all panels of a figure share."""

    #: All curves, each once: their positions determine their appearance.
    names: Sequence[str]
    labels: FigureLabels
    width_in: float

    def text(self, name: str) -> str:
        """Return the text of a curve in the legend, which is as wide as the figure."""
        return self.labels.text(name, int((self.width_in - _HANDLE_IN) / _CHARACTER_IN))

    @property
    def legend_columns(self) -> int:
        widest = max(len(self.text(name)) for name in self.names)
        return max(1, min(len(self.names), int(self.width_in / (_HANDLE_IN + _CHARACTER_IN * widest))))

    @property
    def legend_rows(self) -> int:
        return -(-len(self.names) // self.legend_columns) if len(self.names) > 1 else 0


def _legend(figure: Figure, grid: Sequence[Axes], plan: _Plan, above: float) -> None:
    handles: dict[str, Artist] = {}
    for axes in grid:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    figure.legend(
        [handles[name] for name in plan.names],
        [plan.text(name) for name in plan.names],
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - above),
        ncols=plan.legend_columns,
        frameon=False,
        fontsize=8,
        handlelength=3.2,
        borderaxespad=0.1,
    )


def _draw(axes: Axes, panel: CurvePanel, curves: Sequence[StepFunction], plan: _Plan) -> None:
    if panel.is_stacked:
        _draw_stacked(axes, panel, curves, plan)
    else:
        for curve, steps in zip(panel.curves, curves, strict=True):
            number = plan.names.index(curve.label)
            mark, (marker, marked_at) = series_mark(number), curve_markers(number, len(plan.names))
            axes.step(
                steps.times,
                steps.values,
                where="post",
                color=mark.colour,
                linestyle=mark.dashes,
                linewidth=1.1,
                marker=marker,
                markersize=4,
                markevery=marked_at,
                label=curve.label,
            )
    upper_limit = max([panel.top or 0.0, 1.0, *(float(steps.values.max()) for steps in curves)])
    axes.set_ylim(0, upper_limit if panel.is_stacked else upper_limit * 1.05)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    axes.set_ylabel(panel.unit)
    if not panel.is_stacked:
        axes.grid(axis="both", color=LIGHT["rule"], linewidth=0.6)
    if panel.title:
        axes.set_title(plan.labels.text(panel.title, int(plan.width_in * 12)), fontsize=9, weight="bold", loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _fill_of(label: str, labels: Sequence[str]) -> tuple[str, str | None]:
    """Return the fill and the hatch of an area: fixed ones for states, the next unused ones for users."""
    number = labels.index(label)
    return _FILLS.get(label) or (FILLS[number % len(FILLS)], HATCHES[number % len(HATCHES)] or None)


def _draw_stacked(axes: Axes, panel: CurvePanel, steps: Sequence[StepFunction], plan: _Plan) -> None:
    """Draw stacked curves, which all have the same times."""
    low = np.zeros(len(steps[0].times))
    for curve, curve_steps in zip(panel.curves, steps, strict=True):
        fill, hatch = _fill_of(curve.label, plan.names)
        high = low + curve_steps.values
        axes.fill_between(
            curve_steps.times,
            low,
            high,
            step="post",
            facecolor=fill,
            hatch=hatch,
            edgecolor=LIGHT["axis"],
            linewidth=0.3 if hatch else 0.0,
            label=curve.label,
        )
        low = high
