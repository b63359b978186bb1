"""Sections of an experiment's report on failed runs and fidelity notes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from batkube.experiments.results.findings import Findings
from batkube.experiments.results.sanity_notes import sanity_notes
from batkube.outputs.pages.html_tables import Cell, Heading, html_table
from batkube.outputs.pages.markup import Markup, element, join
from batkube.outputs.pages.page import Section, collapsible, collapsible_if_long, paragraph, verbatim
from batkube.outputs.report.run_details import last_lines, notes_table

#: Maximum number of failed runs whose log is shown; for others, only the reason is.
_MAX_LOGS = 20
#: More failed runs are first grouped by reason.
_MAX_OPEN_ROWS = 12


def failures_section(findings: Findings) -> Section | None:
    """Return the failed runs, with reasons and the last lines of their logs; None if there are none."""
    failed = findings.failed_runs
    if not failed:
        return None
    headings = [
        Heading("run"),
        *(Heading(name) for name in findings.axes),
        Heading("seed", is_number=True),
        Heading("reason"),
    ]
    rows: list[list[Any]] = []
    for run in failed:
        labels = [Cell(str((run.get("axes") or {}).get(name, "")), kind="label") for name in findings.axes]
        reason = str(run.get("failure") or "failed")
        rows.append([run["run"], *labels, str(run.get("seed", "")), Cell(reason.splitlines()[0])])
    logs = [log for run in failed[:_MAX_LOGS] if (log := _failure_log(findings, run)) is not None]
    all_runs = collapsible_if_long(
        f"All {len(rows):,} runs that failed", html_table(headings, rows), count=len(rows), few=_MAX_OPEN_ROWS
    )
    return Section(
        "failures", "Failures", join((_reasons(failed) if len(rows) > _MAX_OPEN_ROWS else None, all_runs, *logs))
    )


def fidelity_section(findings: Findings) -> Section:
    """Return the fidelity notes of all runs, with the number of runs that have each."""
    totals: dict[tuple[str, str, str], dict[str, Any]] = {}
    for run in findings.runs:
        for note in _notes(findings.run_folder(str(run["run"]))):
            key = (str(note.get("severity")), str(note.get("subject")), str(note.get("message")))
            total = totals.setdefault(key, {**note, "count": 0, "runs": 0})
            total["count"] += int(note.get("count") or 0)
            total["runs"] += 1
    notes = sorted(totals.values(), key=lambda note: note["severity"] != "violation")
    if not notes:
        content: Markup = paragraph("Everything that the runs requested is modelled: there are no notes.")
    else:
        content = notes_table(notes, of_runs=len(findings.runs))
    warnings = [paragraph(f"{note[:1].upper()}{note[1:]}.", class_="warning") for note in sanity_notes(findings.folder)]
    return Section("fidelity", "Fidelity", join((*warnings, content)))


def _reasons(failed: list[dict[str, Any]]) -> Markup:
    counts: dict[str, int] = {}
    for run in failed:
        reason = str(run.get("failure") or "failed").splitlines()[0]
        counts[reason] = counts.get(reason, 0) + 1
    ordered = sorted(counts.items(), key=lambda entry: -entry[1])
    rows: list[list[Cell | str]] = [[reason, Cell(f"{count:,}", float(count))] for reason, count in ordered]
    return html_table([Heading("reason"), Heading("runs", is_number=True)], rows)


def _failure_log(findings: Findings, run: dict[str, Any]) -> Markup | None:
    """Return the whole reason and the last lines of the scheduler's logs, if they add to the table."""
    folder = findings.run_folder(str(run["run"]))
    reason = str(run.get("failure") or "")
    tails = [(log, last_lines(log)) for log in sorted(folder.glob("scheduler*/**/*.txt"))]
    parts = [verbatim(reason)] if len(reason.splitlines()) > 1 else []
    for log, lines in tails:
        if lines:
            name = log.relative_to(folder)
            parts += [paragraph("The last lines of ", element("code", str(name)), ":"), verbatim("\n".join(lines))]
    return collapsible(f"More on {run['run']}", *parts, class_="block") if parts else None


def _notes(folder: Path) -> list[dict[str, Any]]:
    try:
        content = json.loads((folder / "fidelity.json").read_bytes())
    except (OSError, ValueError):
        return []
    return [note for note in content if isinstance(note, dict)] if isinstance(content, list) else []
