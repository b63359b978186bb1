"""Print the results of a run: a table, or with --quiet one name=value per line."""

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

#: The columns of schedule.csv that --quiet prints.
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
#: The words for the states of jobs.csv.
_STATE_WORDS = {
    FinalState.SUCCESS: "succeeded",
    FinalState.FAILED: "failed",
    FinalState.WALLTIME: "reached their walltime",
    FinalState.KILLED: "were killed",
    FinalState.REJECTED: "were rejected",
}
#: The states of jobs without a result.
_LOST_STATES = (FinalState.FAILED, FinalState.KILLED, FinalState.REJECTED)


def print_results(out: Path, states: Counter[FinalState], quiet: bool, verb: str = "simulated") -> int:
    """Print the results in a run's folder and return the number of violations; `verb` precedes the real time.

    Violations always go to standard error, so that scripts do not mistake numbers of an invalid schedule for results.
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
        for line in _report_lines(summary, manifest, warnings, states, out, verb):
            typer.echo(line)
    return sum(note["count"] for note in violations)


def _note_line(note: dict[str, Any]) -> str:
    times = "once" if note["count"] == 1 else f"{note['count']:,} times"
    return f"{note['severity']}: {note['subject']}: {note['message']} ({times}, e.g. {note['example']})"


def _report_lines(
    summary: dict[str, str],
    manifest: dict[str, Any],
    notes: list[dict[str, Any]],
    states: Counter[FinalState],
    out: Path,
    verb: str,
) -> Iterator[str]:
    """Yield the lines of the table: first the warnings, then the numbers."""
    for note in notes:
        yield _note_line(note)
    state_texts = ", ".join(f"{states[state]:,} {word}" for state, word in _STATE_WORDS.items() if states[state])
    yield ""
    yield f"  jobs               {int(summary['nb_jobs']):>14,}     {state_texts}"
    if manifest.get("objects") and "pods.csv" not in manifest.get("left_out", ()):
        yield f"  pods               {_pods(out)}"
    if int(summary["nb_jobs_finished"]):
        yield f"  makespan           {_time(summary['makespan'])}"
        lost = sum(states[state] for state in _LOST_STATES)
        loss_remark = f"   ({lost:,} of {int(summary['nb_jobs']):,} jobs had no result)" if lost else ""
        yield f"  mean wait          {_time(summary['mean_waiting_time'])}{loss_remark}"
        yield f"  longest wait       {_time(summary['max_waiting_time'])}"
        yield f"  mean slowdown      {_number(summary['mean_slowdown'], 2)}{loss_remark}"
        yield f"  mean utilisation   {_number(summary['mean_utilisation'], 1, 100)} %   {_window(summary)}".rstrip()
    if float(summary["work_lost"]):
        yield f"  work lost          {_time(summary['work_lost'])}"
    yield ""
    virtual_s, real_s = float(manifest.get("end_s", summary["makespan"] or 0)), manifest["real"]["run_s"]
    pace = f", {virtual_s / real_s:,.0f} times real time" if real_s else ""
    yield f"{manifest['scheduler']}: {human_duration(seconds(virtual_s))} {verb} in {real_s:.2f} s{pace}"
    folder = shlex.quote(str(out))
    yield f"outputs in {out}; draw them with: batkube gantt {folder} -o gantt.svg"


def _pods(out: Path) -> str:
    """Return the number of pods by phase, the only result of a run of services."""
    with (out / "pods.csv").open(encoding="utf-8", newline="") as file:
        phases = Counter(row["phase"] for row in csv.DictReader(file))
    texts = ", ".join(f"{count:,} {phase.lower()}" for phase, count in sorted(phases.items()))
    return f"{phases.total():>14,}     {texts}"


def _window(summary: dict[str, str]) -> str:
    """Return the time window of the means; empty if it is the whole run."""
    jobs, begin = int(summary["nb_jobs_measured"]), float(summary["measured_from"])
    if not begin and jobs == int(summary["nb_jobs_finished"]):
        return ""
    end = float(summary["measured_until"])
    noun = "job" if jobs == 1 else "jobs"
    return f"from {human_duration(seconds(begin))} to {human_duration(seconds(end))}; means of {jobs:,} {noun}"


def _number(text: str, decimals: int, factor: float = 1) -> str:
    """Return a number for a table; a dash if it is absent."""
    return f"{factor * float(text):>14,.{decimals}f}" if text else f"{'–':>14}"


def _time(text: str) -> str:
    """Return seconds for a table; from a minute on, also in larger units."""
    if not text:
        return f"{_number(text, 1)} s"
    words = f"   {human_duration(seconds(text))}" if float(text) >= 60 else ""
    return f"{_number(text, 1)} s{words}"
