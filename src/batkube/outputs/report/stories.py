"""Section of a run's report: why some of its jobs were where they were, in the words of `batkube explain`."""

from __future__ import annotations

import itertools

import pandas as pd

from batkube.kernel.errors import InputError
from batkube.kernel.instants import human_duration, seconds
from batkube.outputs.explain.explanation import Explainer
from batkube.outputs.explain.text import lines_of
from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.pages.markup import Markup, element, join
from batkube.outputs.pages.page import Section, collapsible, paragraph

_TITLE = ("stories", "Stories of jobs")
_INPUTS = ("journal.jsonl", "pods.csv")
#: Jobs of each kind: never started, waited longest, and failed.
_MAX_UNSTARTED, _MAX_LONGEST, _MAX_FAILED = 4, 8, 4
#: Reading more than this takes longer than the rest of the report.
_MAX_BYTES = 8_000_000


def stories_section(results: MeasuredRun) -> Section | None:
    """Return the explanations of some jobs; None for files that are not of a run, or of one that left them out."""
    if any(map(results.left_out, _INPUTS)):
        return None
    files = list(map(results.beside, _INPUTS))
    if not all(file.is_file() for file in files) or results.jobs.empty:
        return None
    command = element("code", "batkube explain DIR NAME")
    if sum(file.stat().st_size for file in files) > _MAX_BYTES:
        return Section(*_TITLE, paragraph("The run is large: ", command, " explains its jobs.", class_="note"))
    try:
        explainer = Explainer(results.jobs_path.parent)
        stories = [_story(explainer, row) for _, row in selected_jobs(results.jobs).iterrows()]
    except InputError as error:
        return Section(*_TITLE, paragraph(f"Not explained: {error.problem}.", class_="note"))
    text = "Jobs that never started, waited longest, or failed. "
    lead = paragraph(text, command, " explains any other job, pod or node.", class_="note")
    return Section(*_TITLE, join((lead, *stories)))


def selected_jobs(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the jobs that are explained, each once: never started, longest waits, failures."""
    unstarted = jobs[jobs["starting_time"].isna()].head(_MAX_UNSTARTED)
    waits = jobs[jobs["waiting_time"] > 0].sort_values("waiting_time", ascending=False, kind="stable")
    failed = jobs[jobs["starting_time"].notna() & (jobs["final_state"] != "COMPLETED_SUCCESSFULLY")]
    parts = (unstarted, waits.head(_MAX_LONGEST), failed.head(_MAX_FAILED))
    return jobs.loc[list(dict.fromkeys(itertools.chain.from_iterable(part.index for part in parts)))]


def _story(explainer: Explainer, job: pd.Series[str]) -> Markup:
    name = f"{job['workload_name']}!{job['job_id']}"
    wait = float(job["waiting_time"])
    started = f"waited {human_duration(seconds(wait))}" if wait == wait else "never started"
    text = "\n".join(lines_of(explainer.explain(name)))
    return collapsible(f"{name}: {started}", element("pre", text, tabindex=0))
