"""`batkube run`: one scenario into one output folder."""

from __future__ import annotations

import csv
import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from batkube.cli.exit_codes import FAILED
from batkube.cli.progress import progress_display
from batkube.cluster.outcomes import FinalState
from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import Severity
from batkube.kernel.instants import human, seconds
from batkube.scenarios.files import read_scenario_file
from batkube.scenarios.keys import KEYS, make_scenario
from batkube.schedulers.catalogue import Catalogue
from batkube.simulation.run import execute

_Scenario = Annotated[
    Path | None,
    typer.Argument(metavar="SCENARIO.yaml", help="A scenario file (YAML); the options below override its keys."),
]
_Workload = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE", help="Batsim .json, .swf[.gz], Kubernetes .yaml or openb .csv; repeat for several workloads."
    ),
]
_Platform = Annotated[
    str | None,
    typer.Option(metavar="PLATFORM", help="SimGrid .xml, Node .yaml, openb .csv, or a shorthand such as '16x4,16Gi'."),
]
_Scheduler = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SCHEDULER",
        help="policy:NAME (see `batkube policies`), policy:./file.py:Class, a real scheduler by name "
        "(kube-scheduler@1.34.4; see `batkube schedulers list`) or the path of a program built for virtual time; "
        "repeat as NAME=SCHEDULER for more real ones, which serve the jobs that ask for NAME.",
    ),
]
_Arguments = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="name=value, handed to the scheduler; may be repeated.")
]
_Configuration = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration, handed to a real scheduler untouched."),
]
_Shares = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=SHARE,…",
        help="Which share of the jobs that ask for no scheduler goes to further ones, by lot: second=30%.",
    ),
]
_Attach = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PROGRAM",
        help="Another program on the run's clock, with its arguments, e.g. a descheduler; may be repeated.",
    ),
]
_Controllers = Annotated[
    str | None,
    typer.Option(
        metavar="WHICH",
        help="Who looks after Deployments, Jobs, …: ours, none, or kube-controller-manager@1.34.4, the real one on the "
        "run's clock; unless said, ours where a workload has any.",
    ),
]
_Until = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="End the run at this virtual time, e.g. 3d; needed where something never ends."),
]
_Audit = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="So often, e.g. 60s, compare what schedulers believe with what is so."),
]
_WarmUp = Annotated[
    str | None,
    typer.Option(metavar="TRIM", help="Leave out the beginning of means: 2d, 500jobs or 10% of the jobs."),
]
_CoolDown = Annotated[
    str | None, typer.Option(metavar="TRIM", help="Leave out the end of means: 2d, 500jobs or 10% of the jobs.")
]
_Deterministic = Annotated[
    bool | None,
    typer.Option(help="Make a real scheduler repeatable to the byte (one thread, seeded chance); on unless said."),
]
_Cost = Annotated[
    str | None,
    typer.Option(
        metavar="COST",
        help="How long a real scheduler's decisions take: zero, measured (its CPU time) or "
        "model:CONSTANT,PER-NODE,PER-PENDING-POD, such as model:5ms,10us.",
    ),
]
_Patience = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Give up when nothing is due and a real scheduler does nothing for so long (virtual; 1h)."
    ),
]
_Watchdog = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Give up on a real scheduler that is not idle for so long (real time; 2m)."),
]
_Time = Annotated[
    str | None,
    typer.Option(
        metavar="MODE",
        help="How virtual time moves: exact; paced[:timeout=20ms,max-step=20s,…], the rules of the 2020 prototype, "
        "also for programs not built for virtual time; realtime[:speed=1].",
    ),
]
_Catalogue = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Schedulers of your own, and what belongs to them (YAML)."),
]
_TimeLimit = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Stop a run that is not over after so long (real time), and keep what it has."),
]
_Resources = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="machines: a job's size counts machines; requests: pods share nodes; auto: by the workload.",
    ),
]
_Latencies = Annotated[Path | None, typer.Option(metavar="FILE", help="Start-up and completion delays (YAML).")]
_Rules = Annotated[Path | None, typer.Option(metavar="FILE", help="What containers do, by their image or pod (YAML).")]
_OnEviction = Annotated[
    str | None, typer.Option(metavar="ACTION", help="What becomes of an evicted job: resubmit or fail.")
]
_OnFailure = Annotated[
    str | None, typer.Option(metavar="ACTION", help="What becomes of a job whose node fails: resubmit or fail.")
]
_OnDeadlock = Annotated[
    str | None,
    typer.Option(metavar="ACTION", help="When half-started jobs wait for one another for good: fail at once, or wait."),
]
_SubmitAs = Annotated[
    str | None,
    typer.Option(
        metavar="FORM",
        help="What jobs are to the scheduler: pods, pod-group, volcano-job, indexed-job or kueue-job; "
        "unless said, what it wants.",
    ),
]
_Energy = Annotated[
    bool | None,
    typer.Option("--energy", "-E", help="Count the energy of machines and jobs; the platform says what machines draw."),
]
_Events = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="What happens to the cluster: nodes fail, are drained, come and go (YAML)."),
]


def run(
    scenario: _Scenario = None,
    workload: _Workload = None,
    platform: _Platform = None,
    scheduler: _Scheduler = None,
    scheduler_arg: _Arguments = None,
    scheduler_config: _Configuration = None,
    shares: _Shares = None,
    catalogue: _Catalogue = None,
    attach: _Attach = None,
    controllers: _Controllers = None,
    until: _Until = None,
    audit: _Audit = None,
    deterministic: _Deterministic = None,
    decision_cost: _Cost = None,
    patience: _Patience = None,
    watchdog: _Watchdog = None,
    time_limit: _TimeLimit = None,
    resources: _Resources = None,
    time: _Time = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="The seed of every random stream.")] = None,
    latencies: _Latencies = None,
    rules: _Rules = None,
    on_eviction: _OnEviction = None,
    on_failure: _OnFailure = None,
    on_deadlock: _OnDeadlock = None,
    submit_as: _SubmitAs = None,
    events: _Events = None,
    energy: _Energy = None,
    warm_up: _WarmUp = None,
    cool_down: _CoolDown = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder to write; must not exist yet.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output folder of an earlier run.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if the scheduler did what no cluster allows.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the results only, one name=value a line.")] = False,
) -> None:
    """Run a workload on a simulated cluster."""
    options = dict(locals())
    values = read_scenario_file(scenario) if scenario is not None else {}
    values |= scenario_keys(options)
    if out is None:
        raise InputError("batkube run", problem="no output folder given", remedy="add --out DIR")
    described = make_scenario(values, scenario if scenario is not None else "batkube run")
    with progress_display(quiet) as progress:
        record = execute(
            described, out, force=force, command=["batkube", *sys.argv[1:]], progress=progress, builder=build_scheduler
        )
    violations = print_results(out, Counter(outcome.state for outcome in record.simulation.all_outcomes), quiet)
    if strict and violations:
        raise typer.Exit(FAILED)


def scenario_keys(options: Mapping[str, Any]) -> dict[str, object]:
    """Return what was said by options as the keys of a scenario; they have the same names, with dashes."""
    named = {name.replace("_", "-"): value for name, value in options.items()}
    named["scheduler-args"] = policy_arguments(named["scheduler-arg"] or [])
    named["workload"] = [str(path) for path in named["workload"] or ()]
    keys = {key: value for key, value in named.items() if key in KEYS and value not in (None, [], {})}
    return {key: str(value) if isinstance(value, Path) else value for key, value in keys.items()}


def build_scheduler(name: str, catalogue: Catalogue) -> Path:
    """Return the program of a scheduler's name, built on first use."""
    from batkube.schedulers.installed import installed

    return installed(name, catalogue, lambda text: typer.echo(text, err=True))


def policy_arguments(texts: list[str]) -> dict[str, str]:
    """Return the `name=value` texts of --scheduler-arg by name. Raises InputError."""
    arguments: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"--scheduler-arg {text}", problem="is not of the form name=value")
        arguments[name] = value
    return arguments


#: What --quiet prints, by column of schedule.csv.
_QUIET = (
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
_STATES = {
    FinalState.SUCCESS: "succeeded",
    FinalState.FAILED: "failed",
    FinalState.WALLTIME: "reached their walltime",
    FinalState.KILLED: "were killed",
    FinalState.REJECTED: "were rejected",
}
#: Of these, those of jobs that came to nothing.
_LOSSES = (FinalState.FAILED, FinalState.KILLED, FinalState.REJECTED)


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
        for name in _QUIET:
            typer.echo(f"{name}={summary[name]}")
        typer.echo(f"digest={manifest['digest']}")
    else:
        warnings = [note for note in notes if note not in violations]
        for line in _report(summary, manifest, warnings, ended, out, done):
            typer.echo(line)
    return sum(note["count"] for note in violations)


def _note_line(note: dict[str, Any]) -> str:
    often = "once" if note["count"] == 1 else f"{note['count']:,} times"
    return f"{note['severity']}: {note['subject']}: {note['message']} ({often}, e.g. {note['example']})"


def _report(
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
    states = ", ".join(f"{ended[state]:,} {word}" for state, word in _STATES.items() if ended[state])
    yield ""
    yield f"  jobs               {int(summary['nb_jobs']):>14,}     {states}"
    if int(summary["nb_jobs_finished"]):
        yield f"  makespan           {_time(summary['makespan'])}"
        lost = sum(ended[state] for state in _LOSSES)
        beside = f"   ({lost:,} of {int(summary['nb_jobs']):,} jobs came to nothing)" if lost else ""
        yield f"  mean wait          {_time(summary['mean_waiting_time'])}{beside}"
        yield f"  longest wait       {_time(summary['max_waiting_time'])}"
        yield f"  mean slowdown      {float(summary['mean_slowdown']):>14,.2f}{beside}"
        yield f"  mean utilisation   {100 * float(summary['mean_utilisation']):>14.1f} %   {_window(summary)}".rstrip()
    if float(summary["work_lost"]):
        yield f"  work lost          {_time(summary['work_lost'])}"
    yield ""
    virtual_s, real_s = float(manifest.get("end_s", summary["makespan"])), manifest["real"]["run_s"]
    pace = f", {virtual_s / real_s:,.0f} times real time" if real_s else ""
    yield f"{manifest['scheduler']}: {human(seconds(virtual_s))} {done} in {real_s:.2f} s{pace}"
    folder = shlex.quote(str(out))
    yield f"outputs in {out}; draw them with: batkube gantt {folder} -o gantt.svg"


def _window(summary: dict[str, str]) -> str:
    """Say which part of the run the means are of, unless it is all of it."""
    jobs, begin = int(summary["nb_jobs_measured"]), float(summary["measured_from"])
    if not begin and jobs == int(summary["nb_jobs_finished"]):
        return ""
    end = float(summary["measured_until"])
    return f"from {human(seconds(begin))} to {human(seconds(end))}; means of {jobs:,} jobs"


def _time(text: str) -> str:
    """Return seconds for a table, and as a person says them where that is shorter to grasp."""
    words = f"   {human(seconds(text))}" if float(text) >= 60 else ""
    return f"{float(text):>14,.1f} s{words}"
