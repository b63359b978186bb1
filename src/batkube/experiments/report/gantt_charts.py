"""A few Gantt charts for an experiment's report: typical runs of points that are as different as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path

from batkube.experiments.results.findings import Findings
from batkube.experiments.running.worker_pool import WorkerFailed
from batkube.kernel.errors import InputError
from batkube.outputs.charts.labels import FigureLabels
from batkube.outputs.pages.markup import Markup, element, join
from batkube.outputs.pages.page import Section, collapsible, paragraph
from batkube.outputs.report.gantt import gantt_figure
from batkube.outputs.results import Results

_MAX_CHARTS = 6
#: A chart of more jobs is a bitmap of megabytes, and slow to draw.
_MAX_JOBS = 20_000


@dataclass(frozen=True, slots=True)
class PendingGantts:
    """Charts that are being drawn, each with its title."""

    findings: Findings
    charts: list[tuple[str, Future[Markup]]]

    def section(self) -> Section | None:
        """Return the charts, all but the first collapsed; None if no run completed."""
        charts = [
            collapsible(labels, _result(chart), is_open=number == 0, class_="block")
            for number, (labels, chart) in enumerate(self.charts)
        ]
        if not charts:
            return None
        return Section("gantt", "Gantt charts", join((_explanation(self.findings, len(charts)), *charts)))


def start_gantts(findings: Findings, executor: Executor, labels: FigureLabels | None = None) -> PendingGantts:
    """Start drawing the charts in `executor`, which is most of the work for a report."""
    charts = [
        (point, executor.submit(_gantt, findings.run_folder(run), f"gantt{number}", point, labels))
        for number, (run, point) in enumerate(representative_runs(findings), start=1)
    ]
    return PendingGantts(findings, charts)


def _gantt(folder: Path, prefix: str, title: str, labels: FigureLabels | None) -> Markup:
    try:
        return gantt_figure(Results(folder), prefix=prefix, title=title, labels=labels)
    except InputError as error:
        return paragraph(str(error), class_="note")


def _result(chart: Future[Markup]) -> Markup:
    try:
        return chart.result()
    except WorkerFailed as failure:
        return paragraph(f"is not drawn: {failure}", class_="note")


def representative_runs(findings: Findings) -> list[tuple[str, str]]:
    """Return a few runs and their labels: the run with the median makespan of each selected point of the grid.

    Points are selected one by one. The next is the one with the most labels that no selected point has; ties are broken
    by the order of the grid.
    """
    frame = findings.frame
    done = frame[(frame["state"] == "done") & (frame["nb_jobs"] <= _MAX_JOBS) & (frame["nb_jobs_finished"] > 0)]
    typical: dict[tuple[str, ...], str] = {}
    axes = list(findings.axes)
    groups: dict[tuple[str, ...], list[tuple[float, int, str]]] = {}
    for number, record in enumerate(done.to_dict("records")):
        key = tuple(str(record[name]) for name in axes)
        groups.setdefault(key, []).append((float(record["makespan"]), number, str(record["run"])))
    for key, runs in groups.items():
        typical[key] = sorted(runs)[(len(runs) - 1) // 2][2]
    selected = _most_different(list(typical), _MAX_CHARTS)
    return [(typical[key], _labels_text(dict(zip(axes, key, strict=True))) or typical[key]) for key in selected]


def _most_different(points: Sequence[tuple[str, ...]], count: int) -> list[tuple[str, ...]]:
    selected: list[tuple[str, ...]] = []
    remaining = list(points)
    while remaining and len(selected) < count:
        labels = [[point[axis] for point in selected] for axis in range(len(remaining[0]))]

        def new_label_count(point: tuple[str, ...], labels: list[list[str]] = labels) -> int:
            return sum(label not in labels[axis] for axis, label in enumerate(point))

        best = max(remaining, key=new_label_count)
        selected.append(best)
        remaining.remove(best)
    return sorted(selected, key=points.index)


def _labels_text(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {label}" for name, label in labels.items())


def _explanation(findings: Findings, count: int) -> Markup:
    text = "Each is the run with the median makespan of its point of the grid"
    points = findings.frame.groupby(list(findings.axes)).ngroups if findings.axes else 1
    choice = f"; {count} points were chosen to show as many values of the axes as possible" if count < points else ""
    return paragraph(f"{text}{choice}. Draw others with ", _command(findings), ".", class_="note")


def _command(findings: Findings) -> Markup:
    return element("code", f"batkube gantt {findings.folder}/runs/RUN -o gantt.svg")
