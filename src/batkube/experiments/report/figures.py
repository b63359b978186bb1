"""The figures of an experiment's report, each with a caption and a table of its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from batkube.experiments.figures.chart_data import Chart, Panel
from batkube.experiments.figures.gallery import charts_of
from batkube.experiments.report.cells import mean_cell
from batkube.experiments.results.findings import Findings
from batkube.outputs.charts.inline_svg import inline_figure
from batkube.outputs.charts.labels import FigureLabels
from batkube.outputs.pages.html_tables import Cell, Heading, html_table
from batkube.outputs.pages.markup import Markup, element, join
from batkube.outputs.pages.page import Section, collapsible, paragraph

_KINDS = {
    "line": "Points are means, bars and bands their 95 % confidence intervals.",
    "bar": "Bars are means, whiskers their 95 % confidence intervals.",
    "box": "Dots are runs. Boxes show the middle half of at least five runs, thick lines the median.",
    "scatter": "Every dot is a run.",
    "cdf": "Curves are means over runs of the share of finished jobs, bands their 95 % confidence intervals.",
}


def figures_section(findings: Findings, labels: FigureLabels | None = None) -> Section | None:
    """Return the figures, with the texts of `labels` for names; None if nothing varies, so nothing can be drawn."""
    charts, empty = charts_of(findings)
    if not charts and not empty:
        return None
    parts = [_figure(chart, number, labels) for number, chart in enumerate(charts, start=1)]
    parts += [paragraph(f"“{title}” is not drawn: no run has data for it.", class_="note") for title in empty]
    return Section("figures", "Figures", join(parts))


def _figure(chart: Chart, number: int, labels: FigureLabels | None) -> Markup:
    from batkube.experiments.figures.drawing import draw

    figure, description = draw(chart, with_title=False, labels=labels), chart_description(chart)
    drawing = inline_figure(figure, prefix=f"chart{number}", title=chart.title, description=description)
    caption = " ".join(filter(None, (chart.caption, remark_on_counts(chart), *chart.remarks)))
    return join(
        (
            element("h3", chart.title),
            element(
                "figure",
                element("div", drawing, class_="scroll", tabindex=0),
                element("figcaption", caption),
                class_="chart",
            ),
            collapsible("The numbers", _numbers(chart)) if chart.kind not in ("scatter", "cdf") else None,
        )
    )


def chart_description(chart: Chart) -> str:
    """Return a text description of the figure, for screen readers."""
    if chart.kind == "cdf":
        curves = ", ".join(label for label in chart.labels)
        return f"Distribution of {chart.x.label} over jobs: a curve each for {curves}."
    sentences = [f"A {chart.kind} chart over {chart.x.label}."]
    for panel in chart.panels:
        place = f" in {panel.facet}" if panel.facet else ""
        for series in panel.series:
            means = [point.sample.mean for point in series.points]
            sentences.append(
                f"{panel.column.label}{place}, {series.label}: from {min(means):,.6g} to {max(means):,.6g} "
                f"{panel.column.unit}".rstrip()
                + "."
            )
        sentences += [
            f"{level.label}{place}: {level.value:,.6g} {panel.column.unit}.".replace(" .", ".")
            for level in panel.levels
        ]
    return " ".join(sentences)


def remark_on_counts(chart: Chart) -> str:
    """Return what the marks of the figure mean, and the number of runs per point."""
    own, others = _run_counts(chart, published=False), _run_counts(chart, published=True)
    if chart.kind == "cdf" and own in ([], [1]):
        return "Curves are shares of finished jobs, of one run each."
    if chart.kind in ("line", "bar") and own in ([], [1]) and others in ([], [1]):
        return "Every value is of one run, so there are no intervals."
    sentences = [_KINDS[chart.kind]]
    if own and chart.kind != "scatter":
        of_published = f", of published data n = {_count_range(others)}" if others else ""
        sentences.append(f"n = {_count_range(own)} run{'s' * (own != [1])} each{of_published}.")
    return " ".join(sentences)


def _run_counts(chart: Chart, *, published: bool) -> list[int]:
    counts = {
        point.sample.n
        for panel in chart.panels
        for series in panel.series
        for point in series.points
        if series.is_published is published
    }
    return sorted(counts)


def _count_range(counts: Sequence[int]) -> str:
    return str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"


def _numbers(chart: Chart) -> Markup:
    has_facets = any(panel.facet for panel in chart.panels)
    headings = [Heading("")] + [Heading("panel")] * has_facets
    headings += [Heading("series"), Heading(chart.x.label, chart.x.unit, is_number=not chart.x.categories)]
    headings += [Heading("n", is_number=True), Heading("mean", is_number=True)]
    headings += [Heading("least", is_number=True), Heading("most", is_number=True)]
    rows = [row for panel in chart.panels for row in _rows(chart, panel, has_facets)]
    return html_table(headings, rows)


def _rows(chart: Chart, panel: Panel, has_facets: bool) -> list[list[Cell]]:
    column = panel.column
    head = [Cell(f"{column.label} ({column.unit})" if column.unit else column.label)]
    head += [Cell(panel.facet)] * has_facets
    rows = []
    for series in panel.series:
        for point in series.points:
            x = chart.x.categories[int(point.x)] if chart.x.categories else f"{point.x:,.10g}"
            ends = [Cell(f"{end:,.{column.decimals}f}", end) for end in (min(point.values), max(point.values))]
            place = Cell(x, None if chart.x.categories else point.x)
            rows.append(
                [
                    *head,
                    Cell(series.label, kind="label"),
                    place,
                    Cell(point.sample.n),
                    mean_cell(point.sample, column),
                    *ends,
                ]
            )
    for level in panel.levels:
        mean = (
            mean_cell(level.sample, column)
            if level.sample
            else Cell(f"{level.value:,.{column.decimals}f}", level.value)
        )
        count = Cell(level.sample.n if level.sample else "–")
        rows.append([*head, Cell(level.label, kind="label"), Cell("–"), count, mean, Cell("–"), Cell("–")])
    return rows
