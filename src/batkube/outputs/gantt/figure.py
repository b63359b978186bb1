"""The Gantt chart as a matplotlib figure.

Built with matplotlib's objects only (no pyplot, no global state), under a fixed style, so that the same run gives the
same bytes whatever the user's own matplotlib settings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from batkube.outputs.charts.axes import short
from batkube.outputs.charts.shown import ShownFigure
from batkube.outputs.charts.style import house_style
from batkube.outputs.charts.time_axis import time_axis
from batkube.outputs.gantt.groups import row_names
from batkube.outputs.gantt.picture import Picture
from batkube.outputs.gantt.rows import ALARM, ALARM_HATCH, AWAY, AWAY_HATCH, AWAY_LINES, LOST, LOST_HATCH, draw_rows
from batkube.outputs.measures.occupation import Floats
from batkube.outputs.pages.colours import LIGHT

#: The most steps a curve of the lower panel shows; more are averaged.
MOST_STEPS = 1_000

_DPI = 160
_WIDTH_IN = 12.0
_HEADER_IN, _PANEL_IN, _GAP_IN, _AXIS_IN, _LEGEND_IN, _RIGHT_IN = 0.72, 1.05, 0.14, 0.52, 0.34, 0.68
#: How the curves of the run are drawn that another one is drawn against.
_OTHER = (0, (2.2, 1.2))
_UTILISATION, _QUEUE = "#33669A", "#B4442E"


@dataclass(frozen=True, slots=True)
class _Page:
    """Where things are on the page, in inches."""

    left: float
    width: float
    #: Of the rows of machines; above it the header, below it the panel, the time axis and the legend.
    rows_height: float
    legend_height: float

    @property
    def height(self) -> float:
        return _HEADER_IN + self.rows_height + _GAP_IN + _PANEL_IN + _AXIS_IN + self.legend_height


def build(picture: Picture) -> Figure:
    """Return the chart of a picture."""
    with house_style():
        page = _page(picture)
        figure = ShownFigure(figsize=(_WIDTH_IN, page.height), dpi=_DPI, facecolor="white")

        def axes(above_in: float, height_in: float) -> Axes:
            bottom = (page.height - above_in - height_in) / page.height
            return figure.add_axes((page.left / _WIDTH_IN, bottom, page.width / _WIDTH_IN, height_in / page.height))

        rows = axes(_HEADER_IN, page.rows_height)
        panel = axes(_HEADER_IN + page.rows_height + _GAP_IN, _PANEL_IN)
        draw_rows(rows, picture, width_in=page.width, height_in=page.rows_height)
        _draw_panel(panel, picture)
        _draw_time(rows, panel, picture)
        figure.align_ylabels([rows, panel])
        _draw_words(figure, picture, page)
    return figure


def box_outlines_pt(picture: Picture) -> Floats:
    """Return (x, y, width, height) of each box in the SVG's own units: points from the page's upper left corner."""
    page, boxes = _page(picture), picture.boxes
    second_pt = page.width * 72 / (picture.end_s - picture.start_s)
    row_pt = page.rows_height * 72 / len(picture.machine_names)
    return np.stack(
        (
            page.left * 72 + (boxes.left - picture.start_s) * second_pt,
            _HEADER_IN * 72 + boxes.top * row_pt,
            (boxes.right - boxes.left) * second_pt,
            (boxes.bottom - boxes.top) * row_pt,
        ),
        axis=1,
    )


def _page(picture: Picture) -> _Page:
    count = len(picture.machine_names)
    least, each = (3.4, 0.8) if picture.has_lanes else (1.4, 0.27)
    rows_height = min(max(count * each, least), 7.6)
    left = 0.55 + 0.065 * max(len(name) for _, name in row_names(picture.machine_names, rows_height).names)
    return _Page(
        left=left,
        width=_WIDTH_IN - left - _RIGHT_IN,
        rows_height=rows_height,
        legend_height=_LEGEND_IN if _legend_patches(picture) else 0.0,
    )


def _draw_words(figure: Figure, picture: Picture, page: _Page) -> None:
    left = page.left / _WIDTH_IN
    figure.text(left, 1 - 0.20 / page.height, picture.title, fontsize=12, weight="bold", va="top", parse_math=False)
    figure.text(left, 1 - 0.46 / page.height, picture.subtitle, fontsize=8, color="#555555", va="top", parse_math=False)
    legend = _legend_patches(picture)
    if legend:
        figure.legend(
            handles=legend, loc="lower center", ncols=len(legend), frameon=False, fontsize=7.5, handlelength=1.6
        )


def _draw_panel(axes: Axes, picture: Picture) -> None:
    axes.set_xlim(picture.start_s, picture.end_s)
    load = picture.utilisation.within(picture.start_s, picture.end_s, most=MOST_STEPS)
    axes.fill_between(load.times, load.values, step="post", color=_UTILISATION, alpha=0.22, linewidth=0)
    axes.step(load.times, load.values, where="post", color=_UTILISATION, linewidth=0.9)
    queue = picture.queue.within(picture.start_s, picture.end_s, most=MOST_STEPS)
    most_waiting = float(queue.values.max())
    right = axes.twinx()
    if picture.other is not None:
        # Drawn first, and broken: the run itself is what is looked at.
        there = picture.other.utilisation.within(picture.start_s, picture.end_s, most=MOST_STEPS)
        axes.step(there.times, there.values, where="post", color=_UTILISATION, linewidth=0.7, linestyle=_OTHER)
        waiting = picture.other.queue.within(picture.start_s, picture.end_s, most=MOST_STEPS)
        right.step(waiting.times, waiting.values, where="post", color=_QUEUE, linewidth=0.8, linestyle=_OTHER)
        most_waiting = max(most_waiting, float(waiting.values.max()))
    axes.set_ylim(0, max(1.0, float(load.values.max())) * 1.06)
    axes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"], fontsize=7)
    axes.set_ylabel("utilisation", color=_UTILISATION)
    right.step(queue.times, queue.values, where="post", color=_QUEUE, linewidth=1.0)
    right.set_ylim(0, max(1.0, most_waiting) * 1.06)
    right.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
    right.tick_params(axis="y", labelsize=7)
    right.set_ylabel("jobs waiting", color=_QUEUE)
    axes.spines["top"].set_visible(False)
    right.spines["top"].set_visible(False)


def _draw_time(rows: Axes, panel: Axes, picture: Picture) -> None:
    axis = time_axis(picture.start_s, picture.end_s)
    for axes in (rows, panel):
        axes.set_xticks(axis.ticks_s, axis.labels)
        axes.grid(axis="x", color=LIGHT["rule"], linewidth=0.6)
    rows.tick_params(axis="x", labelbottom=False, length=0)
    panel.set_xlabel(f"time ({axis.unit})")


def _legend_patches(picture: Picture) -> list[Artist]:
    def patch(fill: str, words: str, edge: str | None = None, hatch: str | None = None) -> Patch:
        return Patch(facecolor=fill, edgecolor=edge, hatch=hatch, label=short(words, 36))

    entries = picture.colouring.legend
    patches: list[Artist] = [
        patch(entry.fill, entry.words, ALARM, ALARM_HATCH) if entry.alarming else patch(entry.fill, entry.words)
        for entry in entries
    ]
    has_alarm = any(entry.alarming for entry in entries)
    if not has_alarm and (picture.alarming & ~picture.boxes.lost).any():
        patches.append(patch("white", "failed, killed or over its walltime", ALARM, ALARM_HATCH))
    if picture.boxes.lost.any():
        patches.append(patch("white", "evicted or lost, run again", LOST, LOST_HATCH))
    if picture.other is not None:
        words = short(f"below, broken lines: {picture.other.name}", 36)
        patches.append(Line2D([], [], color=LIGHT["ink"], linewidth=0.8, linestyle=_OTHER, label=words))
    if picture.absences:
        patches.append(patch(AWAY, "machine not available", AWAY_LINES, AWAY_HATCH))
    return patches
