"""The rows of a Gantt chart: its boxes, their labels and the machines' names.

Boxes are drawn as a few collections (one per hatch and kind), never as an artist each, and so are the absences of
machines. Beyond a few thousand boxes, the collections are rasterized into one bitmap inside the SVG.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba, to_rgba_array
from matplotlib.patheffects import withStroke

from batkube.outputs.charts.palette import FAILURE_HATCHES, lightness
from batkube.outputs.gantt.lanes import Boxes
from batkube.outputs.gantt.machine_labels import row_names
from batkube.outputs.gantt.model import MAX_VECTOR_BOXES, GanttModel
from batkube.outputs.measures.occupancy.stays import Bools, Floats
from batkube.outputs.pages.colours import LIGHT

FAILURE_COLOUR, FAILURE_HATCH = "#882255", "/////"
LOST_COLOUR, LOST_HATCH = "#777777", "xxxx"
ABSENT_FILL, ABSENT_LINES, ABSENT_HATCH = "#EEEEEE", "#BBBBBB", "\\\\\\\\"
#: Outline of boxes whose hatch distinguishes users or profiles and does not mark a failure.
OUTLINE_COLOUR = "#666666"
#: Labels on darker fills are white; at this lightness, black and white have about the same contrast.
_DARK = 0.45


def draw_rows(axes: Axes, model: GanttModel, *, width_in: float, height_in: float) -> None:
    """Draw the machines' rows with the boxes and their labels into `axes`, which have the given size."""
    count = len(model.machine_names)
    axes.set_xlim(model.start_s, model.end_s)
    axes.set_ylim(count, 0)
    row_pt = height_in * 72 / count
    point_s = (model.end_s - model.start_s) / (width_in * 72)
    _draw_absences(axes, model)
    _draw_boxes(axes, model, row_pt, point_s)
    if len(model.boxes) <= MAX_VECTOR_BOXES:
        _draw_labels(axes, model, row_pt, point_s)
    rows = row_names(model.machine_names, height_in, model.labels)
    axes.set_yticks([place for place, _ in rows.names], [name for _, name in rows.names], fontsize=7)
    axes.tick_params(axis="y", length=0 if rows.names_every_machine or rows.borders else 2.5)
    if rows.borders:
        axes.hlines(rows.borders, model.start_s, model.end_s, colors="white", linewidth=1.6, zorder=3.5)
        axes.hlines(rows.borders, model.start_s, model.end_s, colors=LIGHT["ink"], linewidth=0.6, zorder=3.6)
    if row_pt >= 8:
        axes.hlines(np.arange(1, count), model.start_s, model.end_s, colors=LIGHT["rule"], linewidth=0.5, zorder=0.5)
    axes.set_ylabel("machine")


def _draw_absences(axes: Axes, model: GanttModel) -> None:
    """Draw the absences of machines, behind the boxes."""
    corners = [
        ((start, machine), (start, machine + 1), (end, machine + 1), (end, machine))
        for machine, start, end in model.absences
    ]
    if corners:
        grey = PolyCollection(
            corners, facecolors=ABSENT_FILL, edgecolors=ABSENT_LINES, linewidths=0, hatch=ABSENT_HATCH, zorder=1
        )
        grey.set_rasterized(len(corners) > MAX_VECTOR_BOXES)
        axes.add_collection(grey, autolim=False)


def _draw_boxes(axes: Axes, model: GanttModel, row_pt: float, point_s: float) -> None:
    boxes = model.boxes
    dense = len(boxes) > MAX_VECTOR_BOXES
    inset = min(0.06, 0.9 / row_pt) if row_pt >= 4 else 0.0
    corners = _corners(boxes, inset)
    fills = to_rgba_array(model.colouring.fills)[boxes.job]
    edges = fills.copy() if dense else np.broadcast_to(to_rgba("white"), fills.shape).copy()
    # If dense, a hairline in the colour of the box keeps even the shortest job visible; an outline needs some space.
    has_outline = (boxes.right - boxes.left > 3 * point_s) | (not dense)
    failed = model.is_failure & ~boxes.lost
    hatches = _hatches(model, failed)
    edges[(hatches != "") & has_outline] = to_rgba(OUTLINE_COLOUR)
    edges[failed & has_outline] = to_rgba(FAILURE_COLOUR)
    edges[boxes.lost & has_outline] = to_rgba(LOST_COLOUR)
    for is_failed, hatch in sorted(set(zip(failed.tolist(), hatches.tolist(), strict=True))):
        selected = (failed == is_failed) & (hatches == hatch)
        collection = PolyCollection(
            # A whole array is a documented fast path (PolyCollection.set_verts).
            corners[selected],
            facecolors=fills[selected],
            edgecolors=edges[selected],
            linewidths=0.25 if dense else (0.9 if is_failed else 0.6),
            hatch=None if dense else (hatch or None),
            zorder=2,
        )
        collection.set_rasterized(dense)
        axes.add_collection(collection, autolim=False)


def _hatches(model: GanttModel, failed: Bools) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    """Return each box's hatch, "" for none; those of lost work and failures override those of users or profiles."""
    own = model.colouring.hatches or [""] * len(model.subjects)
    hatches = np.array(own, dtype="<U8")[model.boxes.job]
    hatches[failed & ~np.isin(hatches, sorted(FAILURE_HATCHES))] = FAILURE_HATCH
    hatches[model.boxes.lost] = LOST_HATCH
    return hatches


def _corners(boxes: Boxes, inset: float) -> Floats:
    """Return (box, corner, xy). Only edges on a machine's border are inset, so that lanes of one row touch."""
    top = boxes.top + np.where(boxes.top % 1 == 0, inset, 0.0)
    bottom = boxes.bottom - np.where(boxes.bottom % 1 == 0, inset, 0.0)
    x = np.stack((boxes.left, boxes.left, boxes.right, boxes.right), axis=1)
    y = np.stack((top, bottom, bottom, top), axis=1)
    return np.stack((x, y), axis=2)


def _draw_labels(axes: Axes, model: GanttModel, row_pt: float, point_s: float) -> None:
    """Write each job's id into its boxes where it fits, estimated from the font's average character width."""
    boxes, names = model.boxes, model.subjects["job_id"].tolist()
    hatched = _hatches(model, model.is_failure & ~boxes.lost) != ""
    for box in range(len(boxes)):
        text = names[boxes.job[box]]
        width_pt = (boxes.right[box] - boxes.left[box]) / point_s
        height_pt = (boxes.bottom[box] - boxes.top[box]) * row_pt
        size = min(7.0, height_pt / 1.35, (width_pt - 3) / (0.64 * len(text)))
        if size >= 4.5:
            fill = model.colouring.fills[boxes.job[box]]
            label = axes.text(
                (boxes.left[box] + boxes.right[box]) / 2,
                (boxes.top[box] + boxes.bottom[box]) / 2,
                text,
                fontsize=size,
                ha="center",
                va="center_baseline",
                color=_text_colour_on(fill),
                clip_on=True,
                zorder=3,
            )
            if hatched[box]:
                label.set_path_effects([withStroke(linewidth=2.5, foreground=fill)])


def _text_colour_on(fill: str) -> str:
    """Return the colour of a label on a fill: dark, or white if that is easier to read."""
    return LIGHT["ink"] if lightness(fill) > _DARK else "white"
