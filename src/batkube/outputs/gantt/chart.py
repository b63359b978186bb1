"""Gantt charts of a run, for papers (pdf, pgf, svg, png) and for exploring (html).

matplotlib is slow to import, so it is imported only to draw a chart. Its log messages at the first import on a machine
(building the font cache, a home folder that is not writable) are suppressed.
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

    from batkube.outputs.charts.labels import FigureLabels
    from batkube.outputs.gantt.model import GanttModel
    from batkube.outputs.gantt.stepper import Stepper

Window = tuple[float | None, float | None]
"""The part of a run to draw: from and to in seconds, None for the beginning or end of the run."""

_PNG_DPI = 160
#: Resolution of rasterized boxes, on screen and in print, where the chart is not scaled.
_BITMAP_DPI, _PRINT_DPI = 220, 600
_EXTENSIONS = (".svg", ".pdf", ".pgf", ".png", ".html")


def draw_gantt(
    results: MeasuredRun,
    *,
    title: str | None = None,
    color_by: str = "job",
    window: Window | None = None,
    against: MeasuredRun | None = None,
    width_in: float | None = None,
    labels: FigureLabels | None = None,
) -> Figure:
    """Return the chart of a run as a figure; `color_by` is job, user, profile or state.

    With `against`, colours show which jobs start earlier or later than in that run. With `width_in`, the chart is for
    print: it has that width, no default title, and is readable without colours.
    """
    from batkube.outputs.gantt.model import gantt_model_of

    model = gantt_model_of(
        results,
        title=title,
        color_by=color_by,
        window=window,
        against=against,
        for_print=width_in is not None,
        labels=labels,
    )
    with _silence_matplotlib():
        from batkube.outputs.gantt.figure import build
    return build(model, width_in)


def save_gantt(
    results: MeasuredRun,
    path: str | Path,
    *,
    title: str | None = None,
    color_by: str = "job",
    window: Window | None = None,
    against: MeasuredRun | None = None,
    width_in: float | None = None,
    labels: FigureLabels | None = None,
) -> None:
    """Write the chart of a run to `path`, whose extension selects the format. The same run gives the same bytes."""
    from batkube.outputs.gantt.model import gantt_model_of

    target = Path(path)
    kind = target.suffix.lower()
    if kind not in _EXTENSIONS:
        remedy = f"use {', '.join(_EXTENSIONS[:-1])} or {_EXTENSIONS[-1]}"
        raise InputError(target, problem="does not have the extension of an image format", remedy=remedy)
    if kind == ".html" and width_in is not None:
        problem = "applies to print only: an HTML page is as wide as its window"
        raise InputError("--width", problem=problem, remedy="omit it, or write a .pdf")
    model = gantt_model_of(
        results,
        title=title,
        color_by=color_by,
        window=window,
        against=against,
        for_print=width_in is not None,
        labels=labels,
    )
    if kind == ".pgf":
        _check_pgf_size(target, model)
    content = _html_page(model) if kind == ".html" else _render(model, kind.removeprefix("."), width_in)
    write_derived_file(target, content)


def stepper_of(results: MeasuredRun, *, title: str | None = None, color_by: str = "job") -> Stepper:
    """Return the chart of a run with a slider for the time."""
    from batkube.outputs.gantt.model import gantt_model_of

    model = gantt_model_of(results, title=title, color_by=color_by, window=None)
    with _silence_matplotlib():
        from batkube.outputs.gantt.stepper import Stepper
    return Stepper(model, _render(model, "svg").decode())


def gantt_svg(
    results: MeasuredRun, *, title: str | None = None, color_by: str = "job", labels: FigureLabels | None = None
) -> str:
    """Return the chart of a run as an SVG element for a page, with details of each job on hover."""
    from batkube.outputs.gantt.model import gantt_model_of

    model = gantt_model_of(results, title=title, color_by=color_by, window=None, labels=labels)
    with _silence_matplotlib():
        from batkube.outputs.gantt.html_page import with_hover_texts
    return with_hover_texts(model, _render(model, "svg").decode())


def _check_pgf_size(target: Path, model: GanttModel) -> None:
    """Reject PGF of a rasterized chart: its bitmap would be a second file, whose path depends on the LaTeX document."""
    from batkube.outputs.gantt.model import MAX_VECTOR_BOXES

    count = max(len(model.boxes), len(model.absences))
    if count > MAX_VECTOR_BOXES:
        problem = f"has {count:,} boxes, but PGF supports at most {MAX_VECTOR_BOXES:,}"
        raise InputError(target, problem=problem, remedy="write a .pdf, or draw a part of the run with --from and --to")


def _render(model: GanttModel, kind: str, width_in: float | None = None) -> bytes:
    with _silence_matplotlib():
        from batkube.outputs.charts.inline_svg import render_figure
        from batkube.outputs.charts.style import house_style
        from batkube.outputs.gantt.figure import build
    bitmap_dpi = _BITMAP_DPI if width_in is None else _PRINT_DPI
    figure = build(model, width_in)
    if kind in ("pdf", "pgf"):
        return render_figure(figure, kind, dpi=bitmap_dpi)
    buffer = io.BytesIO()
    with house_style():
        # No date and no program version: the same run must give the same bytes.
        if kind == "svg":
            metadata: dict[str, None] = {"Date": None, "Creator": None}
            figure.savefig(buffer, format="svg", dpi=bitmap_dpi, metadata=metadata)
        else:
            dpi = _PNG_DPI if width_in is None else _PRINT_DPI
            figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()


def _html_page(model: GanttModel) -> bytes:
    with _silence_matplotlib():
        from batkube.outputs.gantt.html_page import gantt_page
    return gantt_page(model, _render(model, "svg").decode()).encode()


@contextmanager
def _silence_matplotlib() -> Iterator[None]:
    """Suppress matplotlib's log messages while it is imported."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
