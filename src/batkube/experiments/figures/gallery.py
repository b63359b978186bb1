"""The figures of an experiment: those in its file, or the default ones."""

from __future__ import annotations

import re
from pathlib import Path

from batkube.experiments.description.figures import FigureSpec, read_figures
from batkube.experiments.figures.chart_data import Chart
from batkube.experiments.figures.charts import chart_of
from batkube.experiments.figures.defaults import default_figures
from batkube.experiments.results.findings import Findings, read_findings
from batkube.kernel.errors import InputError
from batkube.outputs.charts.labels import FigureLabels

#: File formats of figures.
FORMATS = ("svg", "png", "pdf", "pgf")


def figure_specs(findings: Findings) -> list[FigureSpec]:
    """Return the figures in the experiment file, or the default ones. Raises InputError."""
    specs = read_figures(findings.description.get("figures"), findings.file, findings.axes)
    return specs or default_figures(findings.axes, has_failures=bool(findings.failed_runs))


def charts_of(findings: Findings) -> tuple[list[Chart], list[str]]:
    """Return the charts, and the titles of figures for which no run has data."""
    charts, empty = [], []
    for spec in figure_specs(findings):
        chart = chart_of(spec, findings)
        if chart is None:
            empty.append(spec.title)
        else:
            charts.append(chart)
    return charts, empty


def save_figures(
    folder: Path,
    target: Path,
    kind: str = "svg",
    width_in: float | None = None,
    labels: FigureLabels | None = None,
) -> list[Path]:
    """Write every figure of the experiment in `folder` into the folder `target`, and return the files.

    With `width_in` they are for print: of that width, and without a title, since a paper has captions. `labels` has the
    texts of names.
    """
    from batkube.experiments.figures.drawing import draw
    from batkube.outputs.charts.inline_svg import render_figure
    from batkube.outputs.files.derived_files import write_derived_file

    if kind not in FORMATS:
        raise InputError("--format", problem=f"{kind!r} is not one of {', '.join(FORMATS)}")
    charts, _ = charts_of(read_findings(folder))
    if not charts:
        raise InputError(folder, problem="has nothing to draw: nothing varies in it, or no run completed")
    paths = [target / f"{number:02}-{_file_name(chart.title)}.{kind}" for number, chart in enumerate(charts, start=1)]
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(target, problem=f"cannot be written: {error.strerror}") from error
    for chart, path in zip(charts, paths, strict=True):
        figure = draw(chart, with_title=width_in is None, width_in=width_in, labels=labels)
        write_derived_file(path, render_figure(figure, kind))
    return paths


def _file_name(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "figure"
