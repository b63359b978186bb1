"""The report of an experiment: one HTML file with its question, its results, and how to repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path

from batkube.experiments.report.differences import differences_section
from batkube.experiments.report.failures import failures_section, fidelity_section
from batkube.experiments.report.figures import figures_section
from batkube.experiments.report.gantt_charts import start_gantts
from batkube.experiments.report.results import results_section, runs_section
from batkube.experiments.report.sources import method_section, sources_section
from batkube.experiments.results.findings import Findings, read_findings
from batkube.experiments.running.worker_pool import InlineExecutor
from batkube.outputs.charts.labels import FigureLabels
from batkube.outputs.pages.markup import Markup, element
from batkube.outputs.pages.page import Section, default_page_path, paragraph, render_page, write_page


def write_report(
    folder: Path,
    target: Path | None = None,
    executor: Executor | None = None,
    baseline: Mapping[str, str] | None = None,
    labels: FigureLabels | None = None,
) -> Path:
    """Write the report of the experiment in `folder` and return its path, which is by default `folder`/report.html.

    Differences are to the points with the labels of the `baseline`; by default to the first point. `executor` draws the
    Gantt charts; by default this process. `labels` has the texts of names in figures. The same folder gives the same
    bytes. Raises InputError.
    """
    path = default_page_path(folder) if target is None else target
    return write_page(path, report_page(read_findings(folder, baseline), executor or InlineExecutor(), labels))


def preload_libraries() -> None:
    """Import the drawing libraries, ideally while runs are executing."""
    import batkube.experiments.figures.drawing  # noqa: F401


def report_page(findings: Findings, executor: Executor, labels: FigureLabels | None = None) -> str:
    """Return the report as HTML."""
    gantts = start_gantts(findings, executor, labels)
    sections: list[Section | None] = [
        failures_section(findings),
        results_section(findings),
        differences_section(findings),
        figures_section(findings, labels),
        gantts.section(),
        fidelity_section(findings),
        runs_section(findings),
        sources_section(findings),
        method_section(findings),
    ]
    return render_page(
        findings.title, _introduction(findings), [section for section in sections if section is not None]
    )


def _introduction(findings: Findings) -> list[Markup]:
    """Return the description, the shape of the grid, and how many runs are finished or failed."""
    text = str(findings.description.get("description") or "").strip()
    total = int(findings.description.get("total") or len(findings.runs))
    finished, failed = len(findings.runs), len(findings.failed_runs)
    shape = " × ".join(
        [f"{name.replace('_', ' ')} ({len(labels)})" for name, labels in findings.axes.items()]
        + [
            f"{count} {word}"
            for word, count in (
                ("seeds", len(findings.description.get("seeds") or ())),
                ("repeats", int(findings.description.get("repeats") or 1)),
            )
            if count > 1
        ]
    )
    lead = [paragraph(" ".join(part.split()), class_="lead") for part in text.split("\n\n") if part.strip()]
    summary = f"{finished:,} run{'s' * (finished != 1)}" + (f": {shape}" if shape else "")
    lead.append(paragraph(f"{summary}. Batkube {findings.description.get('batkube', '')}."))
    if finished < total:
        lead.append(paragraph(f"{total - finished:,} of {total:,} runs are not finished yet.", class_="warning"))
    if failed:
        link = element("a", f"{failed:,} of {finished:,} runs failed", href="#failures")
        lead.append(paragraph(link, " and are not counted below.", class_="bad"))
    return lead
