"""`batkube run`: run one scenario into one output folder."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from batkube.cli.options.page import PageOption, PageSession, PausedOption, page_of_cluster, run_clock_of
from batkube.cli.options.trust import Trust, confirmation
from batkube.cli.output.run_results import print_results
from batkube.cli.process.exit_codes import FAILED
from batkube.kernel.errors import InputError
from batkube.scenarios.files import read_scenario_file
from batkube.scenarios.keys import KEYS, make_scenario
from batkube.scenarios.scenario import Scenario
from batkube.schedulers.catalogue import Catalogue
from batkube.simulation.preparation.named_code import code_of_scenario
from batkube.simulation.progress import progress_display
from batkube.simulation.run import execute
from batkube.simulation.run_record import RunRecord
from batkube.timing.run_clock import PausableClock

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
        "repeat as NAME=SCHEDULER for more real ones, which schedule the jobs with schedulerName NAME.",
    ),
]
_Arguments = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="An argument of the scheduler; may be repeated.")
]
_Configuration = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration, which a real scheduler gets unchanged."),
]
_Shares = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=SHARE,…",
        help="The random share of jobs without a scheduler that goes to additional schedulers: second=30%.",
    ),
]
_Attach = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PROGRAM",
        help="Another program in virtual time, with its arguments, e.g. a descheduler; may be repeated.",
    ),
]
_Controllers = Annotated[
    str | None,
    typer.Option(
        metavar="WHICH",
        help="The controllers of Deployments, Jobs, …: ours, none, or kube-controller-manager@1.34.4, the real one in "
        "virtual time; by default ours if the workload has such objects.",
    ),
]
_Api = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VERSION",
        help="Enable an optional API version, e.g. admissionregistration.k8s.io/v1beta1; may be repeated.",
    ),
]
_Kubernetes = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        help="The version of Kubernetes whose API is served: 1.34 to 1.37; by default 1.34, or what a program needs.",
    ),
]
_Until = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="End the run at this virtual time, e.g. 3d; required if something never ends."),
]
_Audit = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Compare the caches of schedulers with the cluster at this interval, e.g. 60s."),
]
_WarmUp = Annotated[
    str | None, typer.Option(metavar="TRIM", help="Exclude the beginning from means: 2d, 500jobs or 10% of the jobs.")
]
_CoolDown = Annotated[
    str | None, typer.Option(metavar="TRIM", help="Exclude the end from means: 2d, 500jobs or 10% of the jobs.")
]
_Deterministic = Annotated[
    bool | None,
    typer.Option(help="Make a real scheduler deterministic (one thread, seeded random numbers); on by default."),
]
_Cost = Annotated[
    str | None,
    typer.Option(
        metavar="COST",
        help="The virtual time of a real scheduler's decisions: zero, measured (its CPU time) or "
        "model:CONSTANT,PER-NODE,PER-PENDING-POD, such as model:5ms,10us.",
    ),
]
_Patience = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Stop if no event is due and a real scheduler does nothing for this virtual time (1h)."
    ),
]
_Watchdog = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Fail if a real scheduler is busy without a pause for this real time (2m)."),
]
_Time = Annotated[
    str | None,
    typer.Option(
        metavar="MODE",
        help="How virtual time advances: exact; paced[:timeout=20ms,max-step=20s,…], the rules of the 2020 prototype, "
        "also for programs not built for virtual time; realtime[:speed=1].",
    ),
]
_Catalogue = Annotated[Path | None, typer.Option(metavar="FILE", help="A catalogue with your own schedulers (YAML).")]
_TimeLimit = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Stop the run after this real time, and keep its outputs so far."),
]
_Resources = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="machines: a job's size counts machines; requests: pods share nodes; auto: by the workload.",
    ),
]
_Latencies = Annotated[Path | None, typer.Option(metavar="FILE", help="Start-up and completion delays (YAML).")]
_Rules = Annotated[Path | None, typer.Option(metavar="FILE", help="Rules for the behaviour of containers (YAML).")]
_OnEviction = Annotated[
    str | None, typer.Option(metavar="ACTION", help="The action for an evicted job: resubmit or fail.")
]
_OnFailure = Annotated[
    str | None, typer.Option(metavar="ACTION", help="The action for a job whose node fails: resubmit or fail.")
]
_OnDeadlock = Annotated[
    str | None,
    typer.Option(metavar="ACTION", help="The action if partly started jobs wait for each other forever: fail or wait."),
]
_SubmitAs = Annotated[
    str | None,
    typer.Option(
        metavar="FORM",
        help="The objects of a job: pods, pod-group, volcano-job, indexed-job or kueue-job; "
        "by default the scheduler's own.",
    ),
]
_Energy = Annotated[
    bool | None,
    typer.Option("--energy", "-E", help="Account for the energy of machines and jobs; the platform has their power."),
]
_Explain = Annotated[
    bool | None,
    typer.Option("--explain", help="Record why the schedulers decide as they do, for `batkube explain`."),
]
_Engine = Annotated[str | None, typer.Option(metavar="ENGINE", help="batsim[:ENDPOINT]: a real Batsim executes jobs.")]
_Events = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Events of the cluster: nodes fail, are drained, added or removed (YAML)."),
]
_Disturb = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="Disturb a real scheduler in real time, to check that results do not depend on real time: some of "
        "cuts,pauses,slow-server,slow-program,wake-ups.",
    ),
]
_Outputs = Annotated[
    str | None,
    typer.Option(
        metavar="FILES",
        help="The optional files to write: all, none, or some of pods,machine_states,journal.",
    ),
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
    api: _Api = None,
    kubernetes: _Kubernetes = None,
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
    explain: _Explain = None,
    engine: _Engine = None,
    warm_up: _WarmUp = None,
    cool_down: _CoolDown = None,
    disturb: _Disturb = None,
    outputs: _Outputs = None,
    pack: Annotated[bool, typer.Option("--pack", help="Copy the inputs into the folder, for `batkube rerun`.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder to write; must not exist yet.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output folder of an earlier run.")] = False,
    trust: Trust = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if the scheduler violated a rule that every cluster enforces.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the results, one name=value per line.")] = False,
    page: PageOption = False,
    paused: PausedOption = False,
) -> None:
    """Run a workload on a simulated cluster."""
    options = dict(locals())
    file_values = read_scenario_file(scenario) if scenario is not None else {}
    typed = scenario_keys(options)
    values = file_values | typed
    if out is None:
        raise InputError("batkube run", problem="the output folder is missing", remedy="add --out DIR")
    parsed_scenario = make_scenario(values, scenario if scenario is not None else "batkube run")
    if paused and not page:
        raise InputError("--paused", problem="needs --page, where the run is resumed", remedy="add --page, or omit it")
    clock = run_clock_of(parsed_scenario.time, is_paused=paused) if page else None
    confirmation(trust)(code_of_scenario(parsed_scenario, scenario or Path(), file_values.keys() - typed.keys()))
    with page_of_cluster(out) if page else contextlib.nullcontext() as live_page:
        record = _execute(parsed_scenario, out, live_page, clock, force=force, pack=pack, quiet=quiet)
        violations = print_results(out, Counter(outcome.state for outcome in record.simulation.all_outcomes), quiet)
        if live_page is not None:
            live_page.wait_for_interrupt(out)
    if strict and violations:
        raise typer.Exit(FAILED)


def _execute(
    scenario: Scenario,
    out: Path,
    live_page: PageSession | None,
    clock: PausableClock | None,
    *,
    force: bool,
    pack: bool,
    quiet: bool,
) -> RunRecord:
    """Execute a scenario with a progress display and, with --page, its page."""
    with progress_display(quiet) as progress:
        return execute(
            scenario,
            out,
            force=force,
            pack=pack,
            command=["batkube", *sys.argv[1:]],
            progress=progress,
            builder=build_scheduler,
            on_assembled=None if live_page is None else lambda simulation: live_page.start(simulation, clock),
            run_clock=clock,
        )


def scenario_keys(options: Mapping[str, Any]) -> dict[str, object]:
    """Convert options to scenario keys, which have the same names with dashes."""
    named = {name.replace("_", "-"): value for name, value in options.items()}
    named["scheduler-args"] = policy_arguments(named["scheduler-arg"] or [])
    named["workload"] = [str(path) for path in named["workload"] or ()]
    keys = {key: value for key, value in named.items() if key in KEYS and value not in (None, [], {})}
    return {key: str(value) if isinstance(value, Path) else value for key, value in keys.items()}


def build_scheduler(name: str, catalogue: Catalogue) -> Path:
    """Return the program of a scheduler; build it on first use."""
    from batkube.schedulers.installed import installed_program

    return installed_program(name, catalogue, lambda text: typer.echo(text, err=True))


def policy_arguments(texts: list[str]) -> dict[str, str]:
    """Parse the `name=value` texts of --scheduler-arg. Raises InputError."""
    arguments: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"--scheduler-arg {text}", problem="is not of the form name=value")
        arguments[name] = value
    return arguments
