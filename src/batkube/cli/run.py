"""`batkube run`: one scenario into one output folder."""

from __future__ import annotations

import contextlib
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from batkube.cli.progress import progress_display
from batkube.kernel.errors import InputError
from batkube.kernel.instants import human, seconds
from batkube.simulation.run import execute
from batkube.simulation.scenario import make_scenario, read_scenario_file


def run(
    scenario: Annotated[
        Path | None, typer.Argument(help="A scenario file (YAML); the options below override its keys.")
    ] = None,
    workload: Annotated[
        list[Path] | None,
        typer.Option(help="Batsim .json, .swf[.gz], Kubernetes .yaml or openb .csv; repeat for several workloads."),
    ] = None,
    platform: Annotated[
        str | None, typer.Option(help="SimGrid .xml, Node .yaml, openb .csv, or a shorthand such as '16x4,16Gi'.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="policy:NAME (see `batkube policies`) or policy:./file.py:Class.")
    ] = None,
    scheduler_arg: Annotated[
        list[str] | None, typer.Option(help="name=value, handed to the policy; may be repeated.")
    ] = None,
    resources: Annotated[
        str | None,
        typer.Option(help="machines: a job's size counts machines; requests: pods share nodes; auto: by the workload."),
    ] = None,
    time: Annotated[str | None, typer.Option(help="How virtual time moves: exact.")] = None,
    seed: Annotated[int | None, typer.Option(help="The seed of every random stream.")] = None,
    latencies: Annotated[Path | None, typer.Option(help="Start-up and completion delays (YAML).")] = None,
    on_eviction: Annotated[str | None, typer.Option(help="What becomes of a preempted job: resubmit or fail.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder to write; must not exist yet.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output folder of an earlier run.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the results only, one name=value a line.")] = False,
) -> None:
    """Run a workload on a simulated cluster under a scheduler."""
    values = read_scenario_file(scenario) if scenario is not None else {}
    given = {
        "workload": [str(path) for path in workload or ()] or None,
        "platform": platform,
        "scheduler": scheduler,
        "scheduler-args": _arguments(scheduler_arg) if scheduler_arg else None,
        "resources": resources,
        "time": time,
        "seed": seed,
        "latencies": None if latencies is None else str(latencies),
        "on-eviction": on_eviction,
    }
    values |= {key: value for key, value in given.items() if value is not None}
    if out is None:
        raise InputError("batkube run", problem="no output folder given", remedy="add --out DIR")
    described = make_scenario(values, scenario if scenario is not None else "batkube run")
    with progress_display(quiet) as progress:
        execute(described, out, force=force, command=["batkube", *sys.argv[1:]], progress=progress)
    _print_results(out, quiet)


def _arguments(texts: list[str]) -> dict[str, str]:
    arguments: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"--scheduler-arg {text}", problem="is not of the form name=value")
        arguments[name] = value
    return arguments


def _print_results(out: Path, quiet: bool) -> None:
    with (out / "schedule.csv").open(encoding="utf-8", newline="") as file:
        summary = next(csv.DictReader(file))
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    if quiet:
        for name in ("makespan", "mean_waiting_time", "max_waiting_time", "mean_slowdown", "mean_utilisation"):
            typer.echo(f"{name}={summary[name]}")
        typer.echo(f"digest={manifest['digest']}")
        return
    for line in _report(summary, manifest, out):
        typer.echo(line)


def _report(summary: dict[str, str], manifest: dict[str, object], out: Path) -> Iterator[str]:
    def time_of(column: str) -> str:
        return f"{float(summary[column]):>14,.1f} s   {human(seconds(summary[column]))}"

    real = manifest["real"]
    real_s = real["run_s"] if isinstance(real, dict) else 0.0
    virtual_s = float(summary["makespan"])
    yield ""
    yield f"  jobs               {int(summary['nb_jobs']):>14,}     {summary['nb_jobs_success']} succeeded"
    yield f"  makespan           {time_of('makespan')}"
    yield f"  mean wait          {time_of('mean_waiting_time')}"
    yield f"  longest wait       {time_of('max_waiting_time')}"
    yield f"  mean slowdown      {float(summary['mean_slowdown']):>14,.2f}"
    yield f"  mean utilisation   {100 * float(summary['mean_utilisation']):>14.1f} %"
    yield ""
    pace = f", {virtual_s / real_s:,.0f} times real time" if real_s else ""
    yield f"{manifest['scheduler']}: {human(seconds(summary['makespan']))} simulated in {real_s:.2f} s{pace}"
    with contextlib.suppress(FileNotFoundError):
        notes = json.loads((out / "fidelity.json").read_text(encoding="utf-8"))
        for note in notes:
            often = f"{note['count']} times, e.g. {note['example']}"
            yield f"{note['severity']}: {note['subject']}: {note['message']} ({often})"
    yield f"outputs in {out}; draw them with: batkube gantt {out} -o gantt.svg"
