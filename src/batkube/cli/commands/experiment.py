"""`batkube experiment`: run a grid of scenarios into one folder and one table."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batkube.cli.commands.run import build_scheduler
from batkube.cli.options.trust import Trust, confirmation
from batkube.kernel.errors import InputError
from batkube.schedulers.catalogue import Catalogue
from batkube.schedulers.installed import cache_folder

if TYPE_CHECKING:
    from batkube.experiments.plan.runs import Plan, PlannedRun
    from batkube.experiments.running.folder import ExperimentFolder
    from batkube.experiments.running.orchestrator import Progress, ProgressListener

_File = Annotated[
    Path, typer.Argument(metavar="EXPERIMENT.yaml", help="The experiment file; see docs/reference/experiments.md.")
]
_Jobs = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="The number of parallel runs; by default one per core.")
]
_Limit = Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N runs of the grid, for a trial.")]
_Only = Annotated[
    list[str] | None,
    typer.Option(metavar="AXIS=LABEL,…", help="Only runs with these labels, seeds or repeats; may be repeated."),
]
_Executor = Annotated[
    str, typer.Option(metavar="NAME", help="The executor of runs: processes, dask-local, or dask://HOST:PORT.")
]
_TimeLimit = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Stop each run after this real time; it then counts as failed."),
]
_Retry = Annotated[bool, typer.Option("--retry-failed", help="Repeat the runs that failed.")]
_Force = Annotated[bool, typer.Option("--force", help="Delete all runs in the folder, and start over.")]
_Keep = Annotated[
    bool, typer.Option("--keep-finished", help="Keep finished runs even if Batkube's code has changed since.")
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list the runs and their states.")]
_Report = Annotated[bool, typer.Option(help="Write report.html into the folder at the end.")]
_Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress, and print only the counts.")]
#: The maximum number of lines per failure; experiment.json has all of them.
_MAX_FAILURE_LINES = 14
#: The maximum number of different failures to print.
_MAX_FAILURES = 5


def experiment(
    file: _File,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder for all runs and tables; an existing experiment is resumed."),
    ] = None,
    jobs: _Jobs = None,
    limit: _Limit = None,
    only: _Only = None,
    executor: _Executor = "processes",
    time_limit: _TimeLimit = None,
    retry_failed: _Retry = False,
    force: _Force = False,
    keep_finished: _Keep = False,
    dry_run: _DryRun = False,
    trust: Trust = False,
    report: _Report = True,
    quiet: _Quiet = False,
) -> None:
    """Run every scenario of a grid, and collect the results."""
    if out is None:
        raise InputError("batkube experiment", problem="the output folder is missing", remedy="add --out DIR")
    from batkube.cli.output.experiment_progress import experiment_display
    from batkube.experiments.description.experiment_file import read_experiment, with_time_limit
    from batkube.experiments.experiment import run_experiment
    from batkube.experiments.plan.grid_selection import parse_selection
    from batkube.experiments.plan.runs import make_plan
    from batkube.experiments.running.executors import open_executors
    from batkube.experiments.running.folder import ExperimentFolder
    from batkube.policies.registry.catalogue import check_policy

    description = with_time_limit(read_experiment(file), time_limit)
    folder = ExperimentFolder(out)
    grid_selection = parse_selection(only or [])
    if dry_run:
        _print_plan(make_plan(description, _planned_program, limit, grid_selection, check_policy), folder)
        return
    plan = make_plan(description, build_scheduler, limit, grid_selection, confirm=confirmation(trust))
    command = ["batkube", *sys.argv[1:]]
    try:
        with open_executors(executor, plan, jobs) as workers:
            with experiment_display(quiet) as listener:
                run_experiment(
                    plan,
                    folder,
                    workers.runs,
                    force=force,
                    retry_failed=retry_failed,
                    keep_finished=keep_finished,
                    command=command,
                    listener=_with_report_preparation(listener) if report else listener,
                )
            if report:
                from batkube.experiments.report.document import write_report

                write_report(out, executor=workers.charts)
    except KeyboardInterrupt:
        unfinished = sum(folder.finished_run(run.name) is None for run in plan.runs)
        typer.echo(f"{len(plan.runs) - unfinished} of {len(plan.runs)} runs are finished and kept in {out}", err=True)
        typer.echo(
            f"resume with: {_resume_command(file, out, jobs, limit, only or [], executor, time_limit, keep_finished)}",
            err=True,
        )
        raise
    _print_results(plan, folder, quiet, report)


def _with_report_preparation(listener: ProgressListener) -> ProgressListener:
    """Return a listener that also imports the libraries of the report while runs execute."""

    def listen_and_preload(progress: Progress) -> None:
        listener(progress)
        if progress.running:
            from batkube.experiments.report.document import preload_libraries

            preload_libraries()

    return listen_and_preload


def _resume_command(
    file: Path,
    out: Path,
    jobs: int | None,
    limit: int | None,
    only: list[str],
    executor: str,
    time_limit: str | None,
    keep_finished: bool,
) -> str:
    """Return the command that resumes the experiment: the same one, without --force and --retry-failed."""
    words = ["batkube", "experiment", str(file), "--out", str(out)]
    words += ["--jobs", str(jobs)] if jobs else []
    words += ["--limit", str(limit)] if limit else []
    words += [word for text in only for word in ("--only", text)]
    words += ["--executor", executor] if executor != "processes" else []
    words += ["--time-limit", time_limit] if time_limit else []
    words += ["--keep-finished"] if keep_finished else []
    return shlex.join(words)


def _planned_program(name: str, catalogue: Catalogue) -> Path:
    """Return the path that a program will have, without building it."""
    from batkube.schedulers.build.builder import build_path
    from batkube.schedulers.named_programs import find_recipe

    return build_path(find_recipe(name, catalogue), cache_folder())


def _print_plan(plan: Plan, folder: ExperimentFolder) -> None:
    for run in plan.runs:
        finished_run = folder.finished_run(run.name)
        repeat = f", repeat={run.point.repeat}" if plan.experiment.repeats > 1 else ""
        state = "to do" if finished_run is None else finished_run.state.value
        typer.echo(f"{state:<7} {run.name}  {run.point.describe()}{repeat}")


def _print_results(plan: Plan, folder: ExperimentFolder, quiet: bool, report: bool) -> None:
    """Print the results; exit with 1 if a run failed."""
    failures: dict[str, list[PlannedRun]] = {}
    for run in plan.runs:
        finished_run = folder.finished_run(run.name)
        if finished_run is not None and finished_run.failure is not None:
            failures.setdefault(finished_run.failure, []).append(run)
    failed = sum(map(len, failures.values()))
    done = len(plan.runs) - failed
    if quiet:
        typer.echo(f"done={done}\nfailed={failed}")
    else:
        from batkube.experiments.results.sanity_notes import sanity_notes

        for note in sanity_notes(folder.path):
            typer.echo(f"note: {note}", err=True)
        typer.echo(f"{done:,} of {len(plan.runs):,} runs done; results in {folder.path / 'results.csv'}")
        typer.echo(
            f"report: {folder.path / 'report.html'}"
            if report
            else f"write a report with: batkube report {shlex.quote(str(folder.path))}"
        )
    for failure, runs in list(failures.items())[:_MAX_FAILURES]:
        typer.echo(_failure_text(failure, runs), err=True)
    if failures:
        typer.echo(
            f"{failed:,} of {len(plan.runs):,} runs failed; see {folder.path / 'experiment.json'} for all errors",
            err=True,
        )
        typer.echo("fix the cause, and repeat these runs with --retry-failed", err=True)
        raise typer.Exit(1)


def _failure_text(failure: str, runs: list[PlannedRun]) -> str:
    """Return the error that several runs have in common, with their names."""
    lines = failure.splitlines()
    if len(lines) > _MAX_FAILURE_LINES:
        half = _MAX_FAILURE_LINES // 2
        lines = [*lines[:half], "…", *lines[-half:]]
    others = f" and {len(runs) - 1:,} more" if len(runs) > 1 else ""
    return "\n    ".join([f"failed: {runs[0].name} ({runs[0].point.describe()}){others}:", *lines])
