"""The report of one run: metrics, Gantt chart, distributions, users, stories, fidelity notes and sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from batkube.kernel.errors import InputError
from batkube.kernel.instants import human_duration, seconds
from batkube.outputs.charts.inline_svg import inline_figure
from batkube.outputs.charts.labels import FigureLabels
from batkube.outputs.charts.palette import STATES
from batkube.outputs.measures.comparisons.run_comparison import metric_rows
from batkube.outputs.measures.fairness import MEASURES, indices_of, users_frame
from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.measures.metrics import Metrics, users_table
from batkube.outputs.pages.html_tables import Cell, Heading, html_table
from batkube.outputs.pages.markup import Markup, element, join
from batkube.outputs.pages.page import Section, collapsible_if_long, paragraph, render_page, write_page
from batkube.outputs.report.audit import audit_section
from batkube.outputs.report.distributions import draw_distributions
from batkube.outputs.report.gangs import gangs_section
from batkube.outputs.report.gantt import gantt_figure
from batkube.outputs.report.heat_map import heat_map_section
from batkube.outputs.report.pods import pods_section
from batkube.outputs.report.run_details import notes_table
from batkube.outputs.report.schedulers import schedulers_section
from batkube.outputs.report.sources import sources_section
from batkube.outputs.report.stories import stories_section
from batkube.outputs.report.waits import waits_section

_MAX_OPEN_ROWS, _MAX_USERS = 12, 200


def write_run_report(path: Path, target: Path, *, title: str | None = None, labels: FigureLabels | None = None) -> Path:
    """Write the report of the run at `path` (its folder, or a jobs.csv) to `target`. Same run, same bytes.

    `labels` has the texts of names in figures.
    """
    return write_page(target, run_report(MeasuredRun(path), title=title, labels=labels))


def run_report(results: MeasuredRun, *, title: str | None = None, labels: FigureLabels | None = None) -> str:
    """Return the report as HTML."""
    sections: list[Section | None] = [
        _results_section(results),
        _gantt_section(results, labels),
        heat_map_section(results, labels),
        _distributions_section(results),
        waits_section(results, labels),
        _users_section(results),
        schedulers_section(results),
        gangs_section(results),
        pods_section(results),
        stories_section(results),
        audit_section(results),
        _fidelity_section(results),
        sources_section(results),
    ]
    return render_page(
        title or results.name, _introduction(results), [section for section in sections if section is not None]
    )


def run_summary(results: MeasuredRun) -> Markup:
    """Return the key figures of a run for another page, such as a notebook."""
    facts = [
        element("tr", element("th", label), element("td", value)) for label, value in _key_figures(results.metrics)
    ]
    return element("div", *_introduction(results), element("table", element("tbody", *facts)))


def _introduction(results: MeasuredRun) -> list[Markup]:
    metrics, count = results.metrics, results.machine_count
    scheduler = f"{results.scheduler}: " if results.scheduler else ""
    lead = [paragraph(f"{scheduler}{metrics.jobs:,} jobs on {count:,} machine{'s' * (count != 1)}.", class_="lead")]
    for remark in filter(None, (results.failure_remark, results.change_remark)):
        lead.append(paragraph(f"This run {remark}.", class_="bad"))
        reason = results.manifest.get("failure")
        if reason:
            lead.append(element("pre", str(reason), tabindex=0))
    if results.violation_remark:
        link = element("a", results.violation_remark, href="#fidelity")
        lead.append(paragraph("The scheduler ", link, ".", class_="bad"))
    if results.loss_remark:
        lead.append(paragraph(f"This run {results.loss_remark}.", class_="bad"))
    return lead


def _results_section(results: MeasuredRun) -> Section:
    metrics = results.metrics
    heads = [Heading("metric"), Heading("value", is_number=True), Heading("unit")]
    rows: list[list[Any]] = [
        [_metric_name(row.name), Cell(row.text, row.value), row.unit]
        for row in metric_rows(metrics)
        if row.value is not None
    ]
    note = "Means and percentiles are over the jobs that started and ended. Unknown metrics are left out."
    content = join(
        (_key_figures_table(metrics), html_table(heads, rows, sortable=False), paragraph(note, class_="note"))
    )
    return Section("results", "Results", content)


def _metric_name(name: str) -> str:
    """Return the label of a metric; final states have the same words as in charts."""
    state = STATES.get(name.strip().upper())
    return f"jobs that {state.label}" if state else name.strip()


def _key_figures_table(metrics: Metrics) -> Markup:
    """Return the key figures as a list."""
    items = [element("li", element("b", value), element("span", label)) for label, value in _key_figures(metrics)]
    return element("ul", *items, class_="headline")


def _key_figures(metrics: Metrics) -> list[tuple[str, str]]:
    """Return the label and the formatted value of each key figure."""
    facts = [("jobs finished", f"{metrics.finished:,} of {metrics.jobs:,}")]
    for label, value in (
        ("makespan", metrics.makespan_s),
        ("mean wait", metrics.wait_s_mean),
        ("longest wait", metrics.wait_s_max),
    ):
        if value is not None:
            facts.append((label, human_duration(seconds(value))))
    if metrics.slowdown_mean is not None:
        facts.append(("mean slowdown", f"{metrics.slowdown_mean:,.2f}"))
    if metrics.utilisation is not None:
        facts.append(("utilisation", f"{metrics.utilisation * 100:.1f} %"))
    return facts


def _gantt_section(results: MeasuredRun, labels: FigureLabels | None) -> Section:
    try:
        content = gantt_figure(results, prefix="gantt1", labels=labels)
    except InputError as error:
        content = paragraph(f"Not drawn: {error.problem}.", class_="note")
    return Section("gantt", "Gantt chart", content)


def _distributions_section(results: MeasuredRun) -> Section | None:
    figure = draw_distributions(results)
    if figure is None:
        return None
    count = results.metrics.finished
    drawing = inline_figure(
        figure,
        prefix="chart1",
        title="Distribution of wait and bounded slowdown",
        description=_distribution_text(results.metrics),
    )
    caption = (
        f"Over {count:,} finished jobs. Bounded slowdown is turnaround divided by run time, "
        "where a shorter run time counts as 10 s."
    )
    content = element(
        "figure",
        element("div", drawing, class_="scroll", tabindex=0),
        element("figcaption", caption),
        class_="chart",
    )
    return Section("distributions", "Waits and slowdowns", content)


def _distribution_text(metrics: Metrics) -> str:
    sentences = [
        f"{label} {value:,.6g} s"
        for label, value in (
            ("median wait", metrics.wait_s_median),
            ("90 % waited at most", metrics.wait_s_p90),
            ("longest wait", metrics.wait_s_max),
        )
        if value is not None
    ]
    return "; ".join(sentences) + "."


def _users_section(results: MeasuredRun) -> Section | None:
    users = users_table(results.jobs)
    if len(users) < 2:
        return None
    heads = [Heading("user"), Heading("jobs", is_number=True), Heading("finished", is_number=True)]
    heads += [Heading("mean wait", "s", is_number=True), Heading("mean bounded slowdown", is_number=True)]
    largest = users.sort_values("jobs", ascending=False, kind="stable").head(_MAX_USERS)
    rows: list[list[Any]] = []
    for name, row in largest.iterrows():
        cells: list[Any] = [str(name) or "(no user)", Cell(f"{row['jobs']:,.0f}", float(row["jobs"]))]
        cells.append(Cell(f"{row['finished']:,.0f}", float(row["finished"])))
        for column, decimals in (("wait_s_mean", 2), ("bounded_slowdown_mean", 3)):
            value = float(row[column])
            cells.append(Cell("–") if value != value else Cell(f"{value:,.{decimals}f}", value))
        rows.append(cells)
    more = len(users) - len(largest)
    note = paragraph(f"{more:,} users with fewer jobs are left out.", class_="note") if more else None
    remark = paragraph(f"{_fairness_text(results)} See `batkube fairness`.", class_="note")
    content = join((html_table(heads, rows), remark, note))
    section_content = collapsible_if_long(f"{len(users):,} users", content, count=len(rows), few=_MAX_OPEN_ROWS)
    return Section("users", "Users", section_content)


def _fairness_text(results: MeasuredRun) -> str:
    texts = [
        f"{MEASURES[index.measure]}: Jain {index.jain:.3f}, Gini {index.gini:.3f}"
        for index in indices_of(users_frame(results))
    ]
    return f"Fairness over users. {'; '.join(texts)}. These are 1 and 0 if all fare equally, well or badly."


def _fidelity_section(results: MeasuredRun) -> Section | None:
    if not results.beside("fidelity.json").is_file():
        return None
    content = paragraph("Everything that the run requested is modelled: there are no notes.")
    if results.notes:
        content = notes_table(results.notes)
    return Section("fidelity", "Fidelity", content)
