"""A run's Gantt chart as a part of a report, with details of each job on hover."""

from __future__ import annotations

from batkube.outputs.charts.inline_svg import inline_svg
from batkube.outputs.charts.labels import FigureLabels
from batkube.outputs.gantt.chart import gantt_svg
from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.pages.markup import Markup, element


def gantt_figure(
    results: MeasuredRun, *, prefix: str, title: str | None = None, labels: FigureLabels | None = None
) -> Markup:
    """Return the chart on a white sheet, since its colours stand for jobs and not for the page's. Raises InputError."""
    drawing = inline_svg(
        gantt_svg(results, title=title, labels=labels),
        prefix=prefix,
        title=f"Gantt chart: {title or results.name}",
        description="Jobs on machines over time; below, the cluster's utilisation and the number of waiting jobs.",
        recolour=False,
    )
    return element("figure", element("div", drawing, class_="scroll", tabindex=0), class_="sheet")
