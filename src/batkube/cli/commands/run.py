"""`batkube run`: one scenario into one output folder."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from batkube.cli.output.run_results import print_results
from batkube.cli.process.exit_codes import FAILED
from batkube.kernel.errors import InputError
from batkube.scenarios.files import read_scenario_file
from batkube.scenarios.keys import KEYS, make_scenario
from batkube.schedulers.catalogue import Catalogue
from batkube.simulation.progress import progress_display
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
_Api = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VERSION",
        help="A version of the API that is off by default, e.g. admissionregistration.k8s.io/v1beta1; may be repeated.",
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
    str | None, typer.Option(metavar="TRIM", help="Leave out the beginning of means: 2d, 500jobs or 10% of the jobs.")
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
    Path | None, typer.Option(metavar="FILE", help="Schedulers of your own, and what belongs to them (YAML).")
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
_Engine = Annotated[str | None, typer.Option(metavar="ENGINE", help="batsim[:ENDPOINT]: a real Batsim executes jobs.")]
_Events = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="What happens to the cluster: nodes fail, are drained, come and go (YAML)."),
]
_Disturb = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="Disturb a real scheduler in real time, to check that results do not depend on it: some of "
        "cuts,pauses,slow-server,slow-program,wake-ups.",
    ),
]
_Outputs = Annotated[
    str | None,
    typer.Option(
        metavar="FILES",
        help="Which files to write beside the results: all, none, or some of pods,machine_states,journal.",
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
    engine: _Engine = None,
    warm_up: _WarmUp = None,
    cool_down: _CoolDown = None,
    disturb: _Disturb = None,
    outputs: _Outputs = None,
    pack: Annotated[bool, typer.Option("--pack", help="Put the inputs into the folder, for `batkube rerun`.")] = False,
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
            described,
            out,
            force=force,
            pack=pack,
            command=["batkube", *sys.argv[1:]],
            progress=progress,
            builder=build_scheduler,
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
    from batkube.schedulers.installed import installed_program

    return installed_program(name, catalogue, lambda text: typer.echo(text, err=True))


def policy_arguments(texts: list[str]) -> dict[str, str]:
    """Return the `name=value` texts of --scheduler-arg by name. Raises InputError."""
    arguments: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"--scheduler-arg {text}", problem="is not of the form name=value")
        arguments[name] = value
    return arguments
