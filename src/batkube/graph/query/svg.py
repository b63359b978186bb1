"""Draws a graph as SVG: nested boxes in the colours of the jobs.

A vertex that a job has exclusively is filled with the job's colour, paler if it is reserved. A
shared vertex has a border in the job's colour. A vertex that is down is grey. Leaves are small
squares, other vertices are boxes around their children.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from batkube.graph.matching.matcher import Matcher
from batkube.graph.resources import ResourceGraph
from batkube.kernel.errors import InputError

#: With more boxes, a browser takes seconds to show the drawing.
VERTICES_MAX = 50_000
_LEAF, _GAP, _HEAD, _WIDTH = 14, 4, 18, 1200
#: Twelve colours that are easy to distinguish. The thirteenth job has the first one again.
_COLOURS = (
    "#4477aa",
    "#ee6677",
    "#228833",
    "#ccbb44",
    "#66ccee",
    "#aa3377",
    "#ee7733",
    "#009988",
    "#cc3311",
    "#882255",
    "#997700",
    "#332288",
)


@dataclasses.dataclass(frozen=True, slots=True)
class _Box:
    """The position of a vertex relative to its parent's box."""

    vertex: int
    x: int
    y: int
    width: int
    height: int
    children: tuple[_Box, ...] = ()


def draw_graph(matcher: Matcher, source: Path, *, path: str = "") -> str:
    """Return an SVG of a matcher's graph and its jobs, of the whole or of the subtree at `path`.

    `source` is the file that error messages name. Raises InputError if there is nothing at `path`,
    or too much to draw.
    """
    graph, subsystem = matcher.graph, matcher.view.subsystem
    top = _top(graph, source, path, matcher.view.root)
    count = sum(1 for _ in graph.subtree(top, subsystem))
    if count > VERTICES_MAX:
        raise InputError(
            source,
            problem=f"has {count:,} vertices to draw, more than {VERTICES_MAX:,}",
            remedy="draw a part with --below",
        )
    box = _layout(graph, top, subsystem)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{box.width + 2}" height="{box.height + 2}" '
        f'viewBox="-1 -1 {box.width + 2} {box.height + 2}" font-family="sans-serif" font-size="11">'
    ]
    _draw(matcher, box, 0, 0, lines)
    return "\n".join([*lines, "</svg>", ""])


def _top(graph: ResourceGraph, source: Path, path: str, root: int) -> int:
    if not path:
        return root
    vertices = graph.at_path(path)
    if not vertices:
        raise InputError(
            source, problem=f"has no vertex at the path {path!r}", remedy=f"paths start with /{graph.name[root]}"
        )
    return vertices[0]


def _layout(graph: ResourceGraph, vertex: int, subsystem: str) -> _Box:
    """Return the box of a vertex at the origin: first leaves in a block, then boxes in rows."""
    children = list(dict.fromkeys(graph.children(vertex, subsystem)))
    if not children:
        return _Box(vertex, 0, 0, _LEAF, _LEAF)
    boxes = [_layout(graph, child, subsystem) for child in children]
    leaves = [box for box in boxes if not box.children]
    columns = max(1, math.ceil(math.sqrt(2 * len(leaves))))
    step = _LEAF + _GAP
    placed = [
        dataclasses.replace(box, x=_GAP + index % columns * step, y=_HEAD + index // columns * step)
        for index, box in enumerate(leaves)
    ]
    x, y = _GAP, _HEAD + math.ceil(len(leaves) / columns) * step
    row_height = 0
    for box in (box for box in boxes if box.children):
        if x > _GAP and x + box.width > _WIDTH:
            x, y, row_height = _GAP, y + row_height + _GAP, 0
        placed.append(dataclasses.replace(box, x=x, y=y))
        x += box.width + _GAP
        row_height = max(row_height, box.height)
    name_width = 7 * len(graph.name[vertex]) + 2 * _GAP
    width = max(name_width, *(box.x + box.width + _GAP for box in placed))
    return _Box(vertex, 0, 0, width, max(box.y + box.height + _GAP for box in placed), tuple(placed))


def _draw(matcher: Matcher, box: _Box, x: int, y: int, lines: list[str]) -> None:
    graph, left, upper = matcher.graph, x + box.x, y + box.y
    name = graph.name[box.vertex]
    fill, stroke, opacity, title = _style(matcher, box.vertex)
    label = f"{name} ({graph.size[box.vertex]} {graph.unit[box.vertex]})" if graph.size[box.vertex] > 1 else name
    lines.append(
        f'<rect x="{left}" y="{upper}" width="{box.width}" height="{box.height}" fill={quoteattr(fill)} '
        f'fill-opacity="{opacity}" stroke={quoteattr(stroke)}><title>{escape(label + title)}</title></rect>'
    )
    if box.children:
        lines.append(f'<text x="{left + _GAP}" y="{upper + _HEAD - 5}">{escape(name)}</text>')
    for child in box.children:
        _draw(matcher, child, left, upper, lines)


def _style(matcher: Matcher, vertex: int) -> tuple[str, str, float, str]:
    """Return fill, stroke, opacity, and the end of the title of a vertex."""
    if not matcher.graph.is_up[vertex]:
        return "#bbbbbb", "#555555", 1, ": down"
    entry = matcher.ledger.entries.get(vertex)
    if entry is None or not entry.tags:
        return "#ffffff", "#999999", 1, ""
    holders = sorted({*entry.allocations, *entry.reservations})
    jobs = ", ".join(str(job) for job in holders or sorted(entry.tags))
    if not holders:
        return "#ffffff", _colour(min(entry.tags)), 1, f": shared by job {jobs}"
    is_now = bool(entry.allocations)
    colour = _colour(min(entry.allocations or entry.reservations))
    verb = "held by" if is_now else "reserved for"
    return colour, "#333333", 1 if is_now else 0.4, f": {verb} job {jobs}"


def _colour(job: int) -> str:
    return _COLOURS[(job - 1) % len(_COLOURS)]
