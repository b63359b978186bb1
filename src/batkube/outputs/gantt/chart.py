"""Gantt charts of a run, for papers (pdf, svg, png) and for looking around (html).

matplotlib takes a while to import, so it is imported only when something is drawn, and without the remarks it makes
on a machine where it runs for the first time (building its font cache, a home it may not write to).
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from batkube.kernel.errors import InputError
from batkube.outputs.files.products import write_product
from batkube.outputs.measures.measured_run import MeasuredRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from batkube.outputs.gantt.picture import Picture

Window = tuple[float | None, float | None]
"""The part of a run to show: from and to in seconds, None for the run's own begin or end."""

_PNG_DPI = 160
_BITMAP_DPI = 220


def draw_gantt(
    results: MeasuredRun,
    *,
    title: str | None = None,
    color_by: str = "job",
    window: Window | None = None,
    against: MeasuredRun | None = None,
) -> Figure:
    """Return the chart of a run as a figure; `color_by` is job, user, profile or state.

    Against another run, colours tell which jobs begin earlier or later than there.
    """
    from batkube.outputs.gantt.picture import picture_of

    picture = picture_of(results, title=title, color_by=color_by, window=window, against=against)
    with _quiet():
        from batkube.outputs.gantt.figure import build
    return build(picture)


def save_gantt(
    results: MeasuredRun,
    path: str | Path,
    *,
    title: str | None = None,
    color_by: str = "job",
    window: Window | None = None,
    against: MeasuredRun | None = None,
) -> None:
    """Write the chart of a run to `path`, whose ending says how. The same run gives the same bytes."""
    from batkube.outputs.gantt.picture import picture_of

    target = Path(path)
    kind = target.suffix.lower()
    if kind not in (".svg", ".png", ".pdf", ".html"):
        remedy = "end it in .svg, .pdf, .png or .html"
        raise InputError(target, problem="its ending names no kind of picture", remedy=remedy)
    picture = picture_of(results, title=title, color_by=color_by, window=window, against=against)
    content = _page(picture) if kind == ".html" else _rendered(picture, kind.removeprefix("."))
    write_product(target, content)


def gantt_svg(results: MeasuredRun, *, title: str | None = None, color_by: str = "job") -> str:
    """Return the chart of a run as an SVG element to be put into a page, with the jobs' stories under the pointer."""
    from batkube.outputs.gantt.picture import picture_of

    picture = picture_of(results, title=title, color_by=color_by, window=None)
    with _quiet():
        from batkube.outputs.gantt.page import with_stories
    return with_stories(picture, _rendered(picture, "svg").decode())


def _rendered(picture: Picture, kind: str) -> bytes:
    with _quiet():
        from batkube.outputs.charts.style import house_style
        from batkube.outputs.gantt.figure import build
    buffer = io.BytesIO()
    with house_style():
        # Neither a date nor a program version: the same run must give the same bytes.
        if kind == "svg":
            metadata: dict[str, None] = {"Date": None, "Creator": None}
            build(picture).savefig(buffer, format="svg", dpi=_BITMAP_DPI, metadata=metadata)
        elif kind == "pdf":
            unsaid = dict.fromkeys(("CreationDate", "ModDate", "Creator", "Producer"))
            build(picture).savefig(buffer, format="pdf", dpi=_BITMAP_DPI, metadata=unsaid)
        else:
            build(picture).savefig(buffer, format="png", dpi=_PNG_DPI, metadata={"Software": None})
    return buffer.getvalue()


def _page(picture: Picture) -> bytes:
    with _quiet():
        from batkube.outputs.gantt.page import page
    return page(picture, _rendered(picture, "svg").decode()).encode()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep matplotlib's remarks to itself while it is imported."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
