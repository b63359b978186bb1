"""Gantt charts of a run, for papers (pdf, pgf, svg, png) and for looking around (html).

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
from batkube.outputs.files.derived_files import write_derived_file
from batkube.outputs.measures.measured_run import MeasuredRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from batkube.outputs.gantt.model import GanttModel
    from batkube.outputs.gantt.stepper import Stepper

Window = tuple[float | None, float | None]
"""The part of a run to show: from and to in seconds, None for the run's own begin or end."""

_PNG_DPI = 160
#: Of boxes that are too many to be drawn one by one; on paper the chart is as large as it is drawn.
_BITMAP_DPI, _PRINT_DPI = 220, 600
_ENDINGS = (".svg", ".pdf", ".pgf", ".png", ".html")


def draw_gantt(
    results: MeasuredRun,
    *,
    title: str | None = None,
    color_by: str = "job",
    window: Window | None = None,
    against: MeasuredRun | None = None,
    width_in: float | None = None,
) -> Figure:
    """Return the chart of a run as a figure; `color_by` is job, user, profile or state.

    Against another run, colours tell which jobs begin earlier or later than there. With a width it is for print: so
    wide, without a title unless one is given, and nothing in it needs colours to be told apart.
    """
    from batkube.outputs.gantt.model import gantt_model_of

    picture = gantt_model_of(
        results, title=title, color_by=color_by, window=window, against=against, for_print=width_in is not None
    )
    with _silence_matplotlib():
        from batkube.outputs.gantt.figure import build
    return build(picture, width_in)


def save_gantt(
    results: MeasuredRun,
    path: str | Path,
    *,
    title: str | None = None,
    color_by: str = "job",
    window: Window | None = None,
    against: MeasuredRun | None = None,
    width_in: float | None = None,
) -> None:
    """Write the chart of a run to `path`, whose ending says how. The same run gives the same bytes."""
    from batkube.outputs.gantt.model import gantt_model_of

    target = Path(path)
    kind = target.suffix.lower()
    if kind not in _ENDINGS:
        remedy = f"end it in {', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}"
        raise InputError(target, problem="its ending names no kind of picture", remedy=remedy)
    if kind == ".html" and width_in is not None:
        problem = "is for print, and a page is as wide as its window"
        raise InputError("--width", problem=problem, remedy="leave it out, or write a .pdf")
    picture = gantt_model_of(
        results, title=title, color_by=color_by, window=window, against=against, for_print=width_in is not None
    )
    if kind == ".pgf":
        _check_pgf_size(target, picture)
    content = _html_page(picture) if kind == ".html" else _render(picture, kind.removeprefix("."), width_in)
    write_derived_file(target, content)


def stepper_of(results: MeasuredRun, *, title: str | None = None, color_by: str = "job") -> Stepper:
    """Return the chart of a run with a slider for the time, from one instant to the next."""
    from batkube.outputs.gantt.model import gantt_model_of

    picture = gantt_model_of(results, title=title, color_by=color_by, window=None)
    with _silence_matplotlib():
        from batkube.outputs.gantt.stepper import Stepper
    return Stepper(picture, _render(picture, "svg").decode())


def gantt_svg(results: MeasuredRun, *, title: str | None = None, color_by: str = "job") -> str:
    """Return the chart of a run as an SVG element to be put into a page, with the jobs' stories under the pointer."""
    from batkube.outputs.gantt.model import gantt_model_of

    picture = gantt_model_of(results, title=title, color_by=color_by, window=None)
    with _silence_matplotlib():
        from batkube.outputs.gantt.html_page import with_hover_texts
    return with_hover_texts(picture, _render(picture, "svg").decode())


def _check_pgf_size(target: Path, picture: GanttModel) -> None:
    """Refuse PGF of what is drawn as a bitmap: that would be a second file, at a place only LaTeX's author knows."""
    from batkube.outputs.gantt.model import MOST_VECTOR_BOXES

    count = max(len(picture.boxes), len(picture.absences))
    if count > MOST_VECTOR_BOXES:
        problem = f"has {count:,} boxes, and PGF holds a chart of at most {MOST_VECTOR_BOXES:,}"
        raise InputError(target, problem=problem, remedy="write a .pdf, or a part of the run: --from, --to")


def _render(picture: GanttModel, kind: str, width_in: float | None = None) -> bytes:
    with _silence_matplotlib():
        from batkube.outputs.charts.inline_svg import render_figure
        from batkube.outputs.charts.style import house_style
        from batkube.outputs.gantt.figure import build
    bitmap_dpi = _BITMAP_DPI if width_in is None else _PRINT_DPI
    figure = build(picture, width_in)
    if kind in ("pdf", "pgf"):
        return render_figure(figure, kind, dpi=bitmap_dpi)
    buffer = io.BytesIO()
    with house_style():
        # Neither a date nor a program version: the same run must give the same bytes.
        if kind == "svg":
            metadata: dict[str, None] = {"Date": None, "Creator": None}
            figure.savefig(buffer, format="svg", dpi=bitmap_dpi, metadata=metadata)
        else:
            dpi = _PNG_DPI if width_in is None else _PRINT_DPI
            figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()


def _html_page(picture: GanttModel) -> bytes:
    with _silence_matplotlib():
        from batkube.outputs.gantt.html_page import gantt_page
    return gantt_page(picture, _render(picture, "svg").decode()).encode()


@contextmanager
def _silence_matplotlib() -> Iterator[None]:
    """Keep matplotlib's remarks to itself while it is imported."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
