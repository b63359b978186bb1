"""Section of a run's report on the audit: how the schedulers' view of the cluster differed from its real state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant, human_duration
from batkube.outputs.charts.inline_svg import inline_figure
from batkube.outputs.charts.style import chart_style
from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.pages.html_tables import Cell, Heading, html_table
from batkube.outputs.pages.markup import Markup, element, join
from batkube.outputs.pages.page import Section, paragraph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLE = "Schedulers' view of the cluster"
_SIZE_IN = (9.6, 2.4)
#: Meaning of each kind of difference, in the order of the table.
DIFFERENCE_KINDS = {
    "phantom": "the scheduler saw a pod on a node where it was not, or no longer",
    "blind spot": "the scheduler did not see a pod that was on a node",
    "offer": "a node's allocatable resources differed from the scheduler's view",
    "cache": "kube-scheduler found an inconsistency in its own cache",
    "left waiting": "a pod was pending since the previous audit although a node had room for it",
}
AuditLines = list[dict[str, Any]]


def audit_section(results: MeasuredRun) -> Section | None:
    """Return the auditor's findings; None for a run without an auditor."""
    path = results.beside("audit.jsonl")
    if not path.is_file():
        return None
    head, *lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    unanswered = f" A scheduler did not answer {head['unanswered']:,} times." if head["unanswered"] else ""
    unsettled_count = head.get("unsettled", 0)
    unsettled = f" The cluster changed too fast for a comparison {unsettled_count:,} times." if unsettled_count else ""
    count = f"{head['count']:,} times"
    text = f"The schedulers' view of the cluster was compared with its real state {count}.{unanswered}{unsettled}"
    lead = paragraph(text)
    if not lines:
        return Section("audit", _TITLE, join([lead, paragraph("There was no difference.")]))
    parts: list[Markup | None] = [lead, _summary(lines)]
    figure = _draw_differences(lines)
    if figure is not None:
        title = "Differences between the schedulers' view and the cluster over time"
        parts.append(element("figure", inline_figure(figure, prefix="audit", title=title)))
    return Section("audit", _TITLE, join(parts))


def _summary(lines: AuditLines) -> Markup:
    """Return a row per kind: the number of differences, the first one, and the mean duration of those that ended."""
    heads = [Heading("kind"), Heading("meaning"), Heading("count", is_number=True), Heading("first")]
    heads += [Heading("ended after", "s, mean", is_number=True)]
    rows: list[list[Any]] = []
    for kind, meaning in DIFFERENCE_KINDS.items():
        new = [line for line in lines if line["kind"] == kind and line.get("is", "new") == "new"]
        if not new:
            continue
        durations_s = [
            (line["at"] - line["since"]) / NANOSECONDS_PER_SECOND
            for line in lines
            if line["kind"] == kind and "since" in line
        ]
        first = new[0]
        place = " ".join(str(first[key]) for key in ("pod", "node", "what") if first.get(key))
        mean_s = sum(durations_s) / len(durations_s) if durations_s else None
        mean = Cell("–") if mean_s is None else Cell(f"{mean_s:,.1f}", mean_s)
        rows.append(
            [kind, meaning, Cell(f"{len(new):,}", len(new)), f"{human_duration(Instant(first['at']))}: {place}", mean]
        )
    return html_table(heads, rows, sortable=False)


def _draw_differences(lines: AuditLines) -> Figure | None:
    """Return a figure of the number of differences over time, by kind; None if none lasted."""
    kinds = [kind for kind in DIFFERENCE_KINDS if any(line["kind"] == kind and "is" in line for line in lines)]
    if not kinds:
        return None
    end_s = max(line["at"] for line in lines) / NANOSECONDS_PER_SECOND
    with chart_style():
        from matplotlib.figure import Figure

        from batkube.outputs.pages.colours import SERIES

        figure = Figure(figsize=_SIZE_IN, dpi=160, facecolor="white", layout="constrained")
        axes = figure.subplots()
        for number, kind in enumerate(kinds):
            times, counts = [0.0], [0]
            for line in lines:
                if line["kind"] == kind and "is" in line:
                    times.append(line["at"] / NANOSECONDS_PER_SECOND)
                    counts.append(counts[-1] + (1 if line["is"] == "new" else -1))
            axes.step([*times, end_s], [*counts, counts[-1]], where="post", label=kind, color=SERIES[number])
        axes.set_xlabel("time (s)")
        axes.set_ylabel("differences")
        axes.legend(loc="upper left", frameon=False)
    return figure
