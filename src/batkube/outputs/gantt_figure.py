"""The Gantt chart as a matplotlib figure.

Built with matplotlib's objects only (no pyplot, no global state), under a fixed style, so that the same run gives the
same bytes whatever the user's own matplotlib settings. All boxes are a handful of collections, never an artist each;
beyond a few thousand they become one bitmap inside the SVG.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from batkube.outputs.gantt_picture import Picture
from batkube.outputs.lanes import Boxes
from batkube.outputs.occupation import Bools, Floats
from batkube.outputs.time_axis import time_axis

#: More boxes than this are drawn as a bitmap, and get no hover texts.
MOST_VECTOR_BOXES = 2_000
#: The most steps a curve of the lower panel shows; more are averaged.
MOST_STEPS = 1_000

_DPI = 160
_WIDTH_IN = 12.0
_HEADER_IN, _PANEL_IN, _GAP_IN, _AXIS_IN, _LEGEND_IN, _RIGHT_IN = 0.72, 1.05, 0.14, 0.52, 0.34, 0.68
_INK, _FAINT = "#222222", "#E4E4E4"
_ALARM, _ALARM_HATCH = "#882255", "/////"
_LOST, _LOST_HATCH = "#777777", "xxxx"
_UTILISATION, _QUEUE = "#33669A", "#B4442E"
_STYLE = {
    "font.family": ["DejaVu Sans"],
    "font.size": 8.0,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#888888",
    "axes.axisbelow": True,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "hatch.linewidth": 0.5,
    "svg.hashsalt": "batkube",
    "svg.fonttype": "path",
    "path.simplify": True,
}


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


@contextmanager
def house_style() -> Iterator[None]:
    """Make figures look the same whatever the user's matplotlibrc says; also needed while saving."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)  # type: ignore[arg-type]
        yield


def build(picture: Picture) -> Figure:
    """Return the chart of a picture."""
    with house_style():
        page = _page(picture)
        figure = Figure(figsize=(_WIDTH_IN, page.height), dpi=_DPI, facecolor="white")

        def axes(above_in: float, height_in: float) -> Axes:
            bottom = (page.height - above_in - height_in) / page.height
            return figure.add_axes((page.left / _WIDTH_IN, bottom, page.width / _WIDTH_IN, height_in / page.height))

        rows = axes(_HEADER_IN, page.rows_height)
        panel = axes(_HEADER_IN + page.rows_height + _GAP_IN, _PANEL_IN)
        _draw_rows(rows, picture, page)
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
    left = 0.55 + 0.065 * max(len(_short(name)) for name in picture.machine_names)
    return _Page(
        left=left,
        width=_WIDTH_IN - left - _RIGHT_IN,
        rows_height=min(max(count * each, least), 7.6),
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


def _draw_rows(axes: Axes, picture: Picture, page: _Page) -> None:
    count = len(picture.machine_names)
    axes.set_xlim(picture.start_s, picture.end_s)
    axes.set_ylim(count, 0)
    row_pt = page.rows_height * 72 / count
    point_s = (picture.end_s - picture.start_s) / (page.width * 72)
    _draw_boxes(axes, picture, row_pt)
    if len(picture.boxes) <= MOST_VECTOR_BOXES:
        _draw_labels(axes, picture, row_pt, point_s)
    ticks = _machine_ticks(count, page.rows_height)
    axes.set_yticks([tick + 0.5 for tick in ticks], [_short(picture.machine_names[tick]) for tick in ticks], fontsize=7)
    axes.tick_params(axis="y", length=0 if len(ticks) == count else 2.5)
    if row_pt >= 8:
        axes.hlines(np.arange(1, count), picture.start_s, picture.end_s, colors=_FAINT, linewidth=0.5, zorder=0.5)
    axes.set_ylabel("machine")


def _draw_boxes(axes: Axes, picture: Picture, row_pt: float) -> None:
    boxes = picture.boxes
    dense = len(boxes) > MOST_VECTOR_BOXES
    inset = min(0.06, 0.9 / row_pt) if row_pt >= 4 else 0.0
    corners = _corners(boxes, inset)
    fills = to_rgba_array(picture.colouring.fills)[boxes.job]
    fine = ~picture.alarming & ~boxes.lost
    kinds: list[tuple[Bools, Floats | str, str | None, float]] = [
        # Dense: a hairline of the box's own colour keeps even the shortest job visible.
        (fine, fills[fine] if dense else "white", None, 0.25 if dense else 0.6),
        (picture.alarming & ~boxes.lost, _ALARM, None if dense else _ALARM_HATCH, 0.3 if dense else 0.9),
        (boxes.lost, _LOST, None if dense else _LOST_HATCH, 0.3 if dense else 0.6),
    ]
    for chosen, edge, hatch, line_pt in kinds:
        if not chosen.any():
            continue
        collection = PolyCollection(
            # A whole array is a documented fast path (PolyCollection.set_verts) that its annotations do not know.
            corners[chosen],  # type: ignore[arg-type]
            facecolors=fills[chosen],
            edgecolors=edge,
            linewidths=line_pt,
            hatch=hatch,
            zorder=2,
        )
        collection.set_rasterized(dense)
        axes.add_collection(collection, autolim=False)


def _corners(boxes: Boxes, inset: float) -> Floats:
    """Return (box, corner, xy). Only edges on a machine's border are inset, so that lanes of one row touch."""
    top = boxes.top + np.where(boxes.top % 1 == 0, inset, 0.0)
    bottom = boxes.bottom - np.where(boxes.bottom % 1 == 0, inset, 0.0)
    x = np.stack((boxes.left, boxes.left, boxes.right, boxes.right), axis=1)
    y = np.stack((top, bottom, bottom, top), axis=1)
    return np.stack((x, y), axis=2)


def _draw_labels(axes: Axes, picture: Picture, row_pt: float, point_s: float) -> None:
    """Write each job's id into its boxes where it fits, judging by the average width of the font's characters."""
    boxes = picture.boxes
    for box in range(len(boxes)):
        text = picture.job_ids[boxes.job[box]]
        wide_pt = (boxes.right[box] - boxes.left[box]) / point_s
        tall_pt = (boxes.bottom[box] - boxes.top[box]) * row_pt
        size = min(7.0, tall_pt / 1.35, (wide_pt - 3) / (0.64 * len(text)))
        if size >= 4.5:
            axes.text(
                (boxes.left[box] + boxes.right[box]) / 2,
                (boxes.top[box] + boxes.bottom[box]) / 2,
                text,
                fontsize=size,
                ha="center",
                va="center_baseline",
                color=_INK,
                clip_on=True,
                zorder=3,
                parse_math=False,
            )


def _draw_panel(axes: Axes, picture: Picture) -> None:
    axes.set_xlim(picture.start_s, picture.end_s)
    load = picture.utilisation.within(picture.start_s, picture.end_s, most=MOST_STEPS)
    axes.fill_between(load.times, load.values, step="post", color=_UTILISATION, alpha=0.22, linewidth=0)
    axes.step(load.times, load.values, where="post", color=_UTILISATION, linewidth=0.9)
    axes.set_ylim(0, max(1.0, float(load.values.max())) * 1.06)
    axes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"], fontsize=7)
    axes.set_ylabel("utilisation", color=_UTILISATION)
    queue = picture.queue.within(picture.start_s, picture.end_s, most=MOST_STEPS)
    right = axes.twinx()
    right.step(queue.times, queue.values, where="post", color=_QUEUE, linewidth=1.0)
    right.set_ylim(0, max(1.0, float(queue.values.max())) * 1.06)
    right.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
    right.tick_params(axis="y", labelsize=7)
    right.set_ylabel("jobs waiting", color=_QUEUE)
    axes.spines["top"].set_visible(False)
    right.spines["top"].set_visible(False)


def _draw_time(rows: Axes, panel: Axes, picture: Picture) -> None:
    axis = time_axis(picture.start_s, picture.end_s)
    for axes in (rows, panel):
        axes.set_xticks(axis.ticks_s, axis.labels)
        axes.grid(axis="x", color=_FAINT, linewidth=0.6)
    rows.tick_params(axis="x", labelbottom=False, length=0)
    panel.set_xlabel(f"time ({axis.unit})")


def _machine_ticks(count: int, height_in: float) -> range:
    """Return which rows get a name: all of them while there is room, else every 2nd, 5th, 10th…"""
    most = int(height_in * 72 / 9)
    if count <= most:
        return range(count)
    scale = 1
    while True:
        for factor in (1, 2, 5):
            if count / (factor * scale) <= min(most, 25):
                return range(0, count, factor * scale)
        scale *= 10


def _legend_patches(picture: Picture) -> list[Patch]:
    def patch(fill: str, words: str, edge: str | None = None, hatch: str | None = None) -> Patch:
        return Patch(facecolor=fill, edgecolor=edge, hatch=hatch, label=_short(words, 36))

    entries = picture.colouring.legend
    patches = [
        patch(entry.fill, entry.words, _ALARM, _ALARM_HATCH) if entry.alarming else patch(entry.fill, entry.words)
        for entry in entries
    ]
    told = any(entry.alarming for entry in entries)
    if not told and (picture.alarming & ~picture.boxes.lost).any():
        patches.append(patch("white", "failed, killed or over its walltime", _ALARM, _ALARM_HATCH))
    if picture.boxes.lost.any():
        patches.append(patch("white", "evicted, run again later", _LOST, _LOST_HATCH))
    return patches


def _short(name: str, most: int = 20) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
