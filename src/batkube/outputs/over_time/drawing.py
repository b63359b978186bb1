"""Charts over time as matplotlib figures, readable without colours: by dashes, hatches and lightness."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from batkube.outputs.charts.axes import shorten
from batkube.outputs.charts.notebook_figure import NotebookFigure
from batkube.outputs.charts.palette import FILLS, HATCHES
from batkube.outputs.charts.style import chart_style
from batkube.outputs.charts.time_axis import time_axis
from batkube.outputs.measures.occupancy.step_functions import StepFunction
from batkube.outputs.over_time.curves import CurvePanel
from batkube.outputs.pages.colours import LIGHT, SERIES

_WIDTH_IN, _PANEL_IN = 7.16, 1.55
#: Maximum number of steps per inch; more are averaged, since they would blur on paper.
_STEPS_PER_IN = 90
_TITLE_IN, _LEGEND_IN, _AXIS_IN = 0.32, 0.26, 0.42
_DASHES = ("-", (0, (6.0, 1.5)), (0, (1.2, 1.2)), (0, (7.0, 1.5, 1.2, 1.5)))
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
    panels: Sequence[CurvePanel], start_s: float, end_s: float, *, title: str = "", width_in: float | None = None
) -> Figure:
    """Return a figure with the panels below one another, over the same time range."""
    width = width_in or _WIDTH_IN
    labels = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
    legend_rows = -(-len(labels) // _legend_columns(labels, width)) if len(labels) > 1 else 0
    top = (_TITLE_IN if title else 0.06) + _LEGEND_IN * legend_rows
    height = top + _PANEL_IN * len(panels) + _AXIS_IN
    with chart_style():
        layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - top / height), h_pad=0.05, w_pad=0.05)
        figure = NotebookFigure(figsize=(width, height), dpi=160, facecolor="white", layout=layout)
        grid: list[Axes] = list(figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0])
        for axes, panel in zip(grid, panels, strict=True):
            axes.set_xlim(start_s, end_s)
            steps = [curve.steps.within(start_s, end_s, max_steps=int(width * _STEPS_PER_IN)) for curve in panel.curves]
            _draw(axes, panel, steps, labels)
        axis = time_axis(start_s, end_s, max_ticks=int(width * 1.6))
        grid[-1].set_xticks(axis.ticks_s, axis.labels)
        grid[-1].set_xlabel(f"time ({axis.unit})")
        figure.align_ylabels(grid)
        if title:
            figure.text(0.012, 1 - 0.08 / height, shorten(title, 80), fontsize=11, weight="bold", va="top")
        if legend_rows:
            _legend(figure, grid, labels, width, (_TITLE_IN if title else 0.06) / height)
    return figure


def _legend_columns(labels: Sequence[str], width: float) -> int:
    widest = max(len(shorten(label)) for label in labels)
    return max(1, min(len(labels), int(width / (0.6 + 0.085 * widest))))


def _legend(figure: Figure, grid: Sequence[Axes], labels: Sequence[str], width: float, above: float) -> None:
    handles: dict[str, Artist] = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        handles=[handles[shorten(label)] for label in labels],
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - above),
        ncols=_legend_columns(labels, width),
        frameon=False,
        fontsize=8,
        handlelength=2.6,
        borderaxespad=0.1,
    )


def _draw(axes: Axes, panel: CurvePanel, curves: Sequence[StepFunction], labels: Sequence[str]) -> None:
    if panel.is_stacked:
        _draw_stacked(axes, panel, curves, labels)
    else:
        for curve, steps in zip(panel.curves, curves, strict=True):
            number = labels.index(curve.label)
            axes.step(
                steps.times,
                steps.values,
                where="post",
                color=SERIES[number % len(SERIES)],
                linestyle=_DASHES[number % len(_DASHES)],
                linewidth=1.1,
                label=shorten(curve.label),
            )
    upper_limit = max([panel.top or 0.0, 1.0, *(float(steps.values.max()) for steps in curves)])
    axes.set_ylim(0, upper_limit if panel.is_stacked else upper_limit * 1.05)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    axes.set_ylabel(panel.unit)
    if not panel.is_stacked:
        axes.grid(axis="both", color=LIGHT["rule"], linewidth=0.6)
    if panel.title:
        axes.set_title(shorten(panel.title, 60), fontsize=9, weight="bold", loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _fill_of(label: str, labels: Sequence[str]) -> tuple[str, str | None]:
    """Return the fill and the hatch of an area: fixed ones for states, the next unused ones for users."""
    number = labels.index(label)
    return _FILLS.get(label) or (FILLS[number % len(FILLS)], HATCHES[number % len(HATCHES)] or None)


def _draw_stacked(axes: Axes, panel: CurvePanel, steps: Sequence[StepFunction], labels: Sequence[str]) -> None:
    """Draw stacked curves, which all have the same times."""
    low = np.zeros(len(steps[0].times))
    for curve, curve_steps in zip(panel.curves, steps, strict=True):
        fill, hatch = _fill_of(curve.label, labels)
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
            label=shorten(curve.label),
        )
        low = high
