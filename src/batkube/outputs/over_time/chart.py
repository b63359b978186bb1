"""Charts over time for papers (pdf, svg, pgf, png), in a given width."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from batkube.kernel.errors import InputError
from batkube.outputs.files.derived_files import write_derived_file
from batkube.outputs.measures.measured_run import MeasuredRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from batkube.outputs.charts.labels import FigureLabels
    from batkube.outputs.over_time.chart_kinds import ChartKind

_EXTENSIONS = (".svg", ".pdf", ".pgf", ".png")
#: The names of runs are the default title if they have at most so many characters together.
_MAX_TITLE = 80


def draw_chart(
    kind: ChartKind,
    runs: Sequence[MeasuredRun],
    *,
    title: str | None = None,
    window: tuple[float | None, float | None] = (None, None),
    width_in: float | None = None,
    labels: FigureLabels | None = None,
) -> Figure:
    """Return the chart of runs as a figure. For print it is `width_in` wide and has no title unless one is given."""
    from batkube.outputs.over_time.curves import end_of, panels_of
    from batkube.outputs.over_time.drawing import draw_panels

    start_s, end_s = window[0] or 0.0, end_of(runs) if window[1] is None else window[1]
    if not 0 <= start_s < end_s:
        problem = f"{start_s:g} s to {end_s:g} s is not a valid time range"
        raise InputError(runs[0].path, problem=problem, remedy=f"the last run ends at {end_of(runs):g} s")
    names = " and ".join(run.name for run in runs)
    default_title = "" if width_in is not None else names if len(names) <= _MAX_TITLE else f"{len(runs)} runs"
    panels = panels_of(kind, runs)
    heading = default_title if title is None else title
    return draw_panels(panels, start_s, end_s, title=heading, width_in=width_in, labels=labels)


def save_chart(
    kind: ChartKind,
    runs: Sequence[MeasuredRun],
    path: Path,
    *,
    title: str | None = None,
    window: tuple[float | None, float | None] = (None, None),
    width_in: float | None = None,
    labels: FigureLabels | None = None,
) -> None:
    """Write the chart of runs to `path`, whose extension selects the format. The same runs give the same bytes."""
    if path.suffix.lower() not in _EXTENSIONS:
        problem, remedy = "does not have the extension of an image format", f"use one of {', '.join(_EXTENSIONS)}"
        raise InputError(path, problem=problem, remedy=remedy)
    from batkube.outputs.charts.inline_svg import render_figure

    figure = draw_chart(kind, runs, title=title, window=window, width_in=width_in, labels=labels)
    write_derived_file(path, render_figure(figure, path.suffix.lower().removeprefix(".")))
