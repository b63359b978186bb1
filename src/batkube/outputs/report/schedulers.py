"""Section of a run's report on schedulers that shared the cluster: their jobs, and refused or rejected bindings."""

from __future__ import annotations

import csv
from typing import Any

from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.pages.html_tables import Cell, Heading, html_table
from batkube.outputs.pages.page import Section

_COUNTS = {
    "jobs": "jobs",
    "jobs_success": "succeeded",
    "bindings": "bindings",
    "bindings_refused": "bindings refused",
    "pods_rejected": "pods rejected by kubelets",
}


def schedulers_section(results: MeasuredRun) -> Section | None:
    """Return a row for each of several schedulers; None if there was one."""
    path = results.path / "schedulers.csv"
    if not path.is_file():
        return None
    heads = [Heading("scheduler"), *(Heading(title, is_number=True) for title in _COUNTS.values())]
    heads.append(Heading("mean wait", "s", is_number=True))
    lines: list[list[Any]] = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            counts = [Cell(f"{int(row[name]):,}", float(row[name])) for name in _COUNTS]
            wait = row["mean_waiting_time"]
            lines.append([row["scheduler"], *counts, Cell(f"{float(wait):,.2f}", float(wait)) if wait else Cell("–")])
    return Section("schedulers", "Schedulers", html_table(heads, lines))
