"""Section of a run's report on jobs of many pods: waits by size, and jobs that waited for their own pods."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd

from batkube.kernel.instants import human_duration, seconds
from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.pages.html_tables import Cell, Heading, html_table
from batkube.outputs.pages.markup import Markup, element, join
from batkube.outputs.pages.page import Section, paragraph

#: The largest job of each class but the last.
_SIZE_CLASSES = (1, 4, 16, 64, 256)
_MAX_ROWS = 10


def gangs_section(results: MeasuredRun) -> Section | None:
    """Return waits and evictions by job size; None if no program placed the pods of jobs one by one."""
    jobs = results.jobs
    if "member_wait" not in jobs.columns:
        return None
    forms = ", ".join(sorted(form for form in jobs["submitted_as"].unique() if form))
    lead = paragraph(f"Jobs were submitted as {forms or 'pods'}. {_deadlock_text(results)}")
    waiting = jobs[jobs["member_wait"] > 0].sort_values("member_wait", ascending=False, kind="stable")
    parts: list[Markup | None] = [lead, _by_size(jobs)]
    if len(waiting):
        parts += [element("h3", "Held nodes while other pods of the job had none"), _longest(waiting)]
    return Section("gangs", "Jobs of many pods", join(parts))


def _deadlock_text(results: MeasuredRun) -> str:
    count = int(float(results.schedule.get("nb_jobs_deadlocked", 0)))
    return f"{count:,} of them were in a deadlock." if count else "None was in a deadlock."


def _by_size(jobs: pd.DataFrame) -> Markup:
    heads = [Heading("pods"), Heading("jobs", is_number=True), Heading("mean wait", "s", is_number=True)]
    heads += [Heading("mean wait for members", "s", is_number=True), Heading("evictions", is_number=True)]
    bounds = [0, *_SIZE_CLASSES, float("inf")]
    lines: list[list[Any]] = []
    for smallest, largest in itertools.pairwise(bounds):
        sizes = jobs["requested_number_of_resources"]
        rows = jobs[(sizes > smallest) & (sizes <= largest)]
        if len(rows):
            name = f"{smallest + 1:.0f}" if largest == smallest + 1 else f"{smallest + 1:.0f} to {largest:.0f}"
            name = f"more than {smallest:.0f}" if largest == float("inf") else name
            means = [_number(float(rows[column].mean())) for column in ("waiting_time", "member_wait")]
            evictions = float(rows["evictions"].sum())
            lines.append([name, Cell(f"{len(rows):,}", len(rows)), *means, Cell(f"{evictions:,.0f}", evictions)])
    return html_table(heads, lines, sortable=False)


def _number(value: float) -> Cell:
    return Cell("–") if value != value else Cell(f"{value:,.2f}", value)


def _longest(waiting: pd.DataFrame) -> Markup:
    """Return the jobs that waited longest for their own pods."""
    heads = [
        Heading("job"),
        Heading("pods", is_number=True),
        Heading("held for", is_number=True),
        Heading("total wait"),
    ]
    lines: list[list[Any]] = []
    for _, job in waiting.head(_MAX_ROWS).iterrows():
        held, wait = float(job["member_wait"]), float(job["waiting_time"])
        lines.append(
            [
                f"{job['workload_name']}!{job['job_id']}",
                Cell(f"{job['requested_number_of_resources']:,.0f}", float(job["requested_number_of_resources"])),
                Cell(human_duration(seconds(held)), held),
                "–" if wait != wait else human_duration(seconds(wait)),
            ]
        )
    rest = len(waiting) - len(lines)
    note = (
        paragraph(f"{rest:,} more jobs held nodes for a shorter time; jobs.csv has all.", class_="note")
        if rest
        else None
    )
    return join((html_table(heads, lines), note))
