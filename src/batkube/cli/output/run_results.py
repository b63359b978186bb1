"""What a run came to, as the command line tells it: a table for people, or one name=value a line."""

from __future__ import annotations

import csv
import json
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from batkube.cluster.jobs.outcomes import FinalState
from batkube.kernel.fidelity import Severity
from batkube.kernel.instants import human_duration, seconds

#: What --quiet prints, by column of schedule.csv.
_QUIET_COLUMNS = (
    "nb_jobs",
    "nb_jobs_success",
    "nb_jobs_finished",
    "nb_jobs_failed",
    "nb_jobs_killed",
    "nb_jobs_rejected",
    "nb_violations",
    "makespan",
    "mean_waiting_time",
    "max_waiting_time",
    "mean_slowdown",
    "mean_utilisation",
)
#: How the states of jobs.csv are said in the report.
_STATE_WORDS = {
    FinalState.SUCCESS: "succeeded",
    FinalState.FAILED: "failed",
    FinalState.WALLTIME: "reached their walltime",
    FinalState.KILLED: "were killed",
    FinalState.REJECTED: "were rejected",
}
#: Of these, those of jobs that came to nothing.
_LOST_STATES = (FinalState.FAILED, FinalState.KILLED, FinalState.REJECTED)


def print_results(out: Path, ended: Counter[FinalState], quiet: bool, done: str = "simulated") -> int:
    """Print the results of a run's folder and return its violations; `done` says what was done with its time.

    Violations go to standard error in any case: a script that reads the numbers must not take them for a schedule.
    """
    with (out / "schedule.csv").open(encoding="utf-8", newline="") as file:
        summary = next(csv.DictReader(file))
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    notes = json.loads((out / "fidelity.json").read_text(encoding="utf-8"))
    violations = [note for note in notes if note["severity"] == Severity.VIOLATION]
    for note in violations:
        typer.echo(_note_line(note), err=True)
    if quiet:
        for name in _QUIET_COLUMNS:
            typer.echo(f"{name}={summary[name]}")
        typer.echo(f"digest={manifest['digest']}")
    else:
        warnings = [note for note in notes if note not in violations]
        for line in _report_lines(summary, manifest, warnings, ended, out, done):
            typer.echo(line)
    return sum(note["count"] for note in violations)


def _note_line(note: dict[str, Any]) -> str:
    often = "once" if note["count"] == 1 else f"{note['count']:,} times"
    return f"{note['severity']}: {note['subject']}: {note['message']} ({often}, e.g. {note['example']})"


def _report_lines(
    summary: dict[str, str],
    manifest: dict[str, Any],
    notes: list[dict[str, Any]],
    ended: Counter[FinalState],
    out: Path,
    done: str,
) -> Iterator[str]:
    """Yield the lines a person reads at the end of a run: first what to check, then the numbers."""
    for note in notes:
        yield _note_line(note)
    states = ", ".join(f"{ended[state]:,} {word}" for state, word in _STATE_WORDS.items() if ended[state])
    yield ""
    yield f"  jobs               {int(summary['nb_jobs']):>14,}     {states}"
    if manifest.get("objects") and "pods.csv" not in manifest.get("left_out", ()):
        yield f"  pods               {_pods(out)}"
    if int(summary["nb_jobs_finished"]):
        yield f"  makespan           {_time(summary['makespan'])}"
        lost = sum(ended[state] for state in _LOST_STATES)
        beside = f"   ({lost:,} of {int(summary['nb_jobs']):,} jobs came to nothing)" if lost else ""
        yield f"  mean wait          {_time(summary['mean_waiting_time'])}{beside}"
        yield f"  longest wait       {_time(summary['max_waiting_time'])}"
        yield f"  mean slowdown      {_number(summary['mean_slowdown'], 2)}{beside}"
        yield f"  mean utilisation   {_number(summary['mean_utilisation'], 1, 100)} %   {_window(summary)}".rstrip()
    if float(summary["work_lost"]):
        yield f"  work lost          {_time(summary['work_lost'])}"
    yield ""
    virtual_s, real_s = float(manifest.get("end_s", summary["makespan"] or 0)), manifest["real"]["run_s"]
    pace = f", {virtual_s / real_s:,.0f} times real time" if real_s else ""
    yield f"{manifest['scheduler']}: {human_duration(seconds(virtual_s))} {done} in {real_s:.2f} s{pace}"
    folder = shlex.quote(str(out))
    yield f"outputs in {out}; draw them with: batkube gantt {folder} -o gantt.svg"


def _pods(out: Path) -> str:
    """Say how many pods there were, and what became of them; a run of services has nothing else to tell."""
    with (out / "pods.csv").open(encoding="utf-8", newline="") as file:
        phases = Counter(row["phase"] for row in csv.DictReader(file))
    texts = ", ".join(f"{count:,} {phase.lower()}" for phase, count in sorted(phases.items()))
    return f"{phases.total():>14,}     {texts}"


def _window(summary: dict[str, str]) -> str:
    """Say which part of the run the means are of, unless it is all of it."""
    jobs, begin = int(summary["nb_jobs_measured"]), float(summary["measured_from"])
    if not begin and jobs == int(summary["nb_jobs_finished"]):
        return ""
    end = float(summary["measured_until"])
    return f"from {human_duration(seconds(begin))} to {human_duration(seconds(end))}; means of {jobs:,} {'job' if jobs == 1 else 'jobs'}"


def _number(text: str, decimals: int, factor: float = 1) -> str:
    """Return a number for a table; a dash where the run cannot tell it."""
    return f"{factor * float(text):>14,.{decimals}f}" if text else f"{'–':>14}"


def _time(text: str) -> str:
    """Return seconds for a table, and as a person says them where that is shorter to grasp."""
    if not text:
        return f"{_number(text, 1)} s"
    words = f"   {human_duration(seconds(text))}" if float(text) >= 60 else ""
    return f"{_number(text, 1)} s{words}"
