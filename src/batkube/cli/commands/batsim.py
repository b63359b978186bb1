"""`batkube batsim`: Batsim 4's own command line, in front of our simulator."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from batkube.kernel.errors import InputError
from batkube.kernel.instants import duration

_VERBOSITIES = ("quiet", "network-only", "information", "debug")
_VERBOSITIES_WITH_MESSAGES = ("network-only", "debug")

_Platform = Annotated[
    Path | None, typer.Option("-p", "--platform", metavar="FILE", help="The SimGrid platform to simulate.")
]
_Workload = Annotated[
    list[Path] | None, typer.Option("-w", "--workload", metavar="FILE", help="A workload (JSON); may be repeated.")
]
_Workflow = Annotated[
    list[Path] | None, typer.Option("-W", "--workflow", metavar="FILE", help="A workflow (DAX); may be repeated.")
]
_WorkflowLimit = Annotated[
    int, typer.Option("--workflow-jobs-limit", metavar="N", min=0, help="At most so many jobs of a workflow at once.")
]
_IgnoreBeyond = Annotated[
    bool, typer.Option("--ignore-beyond-last-workflow", help="Nobody hears of jobs after the end of the workflow.")
]
_Events = Annotated[
    list[Path] | None, typer.Option("--events", metavar="FILE", help="External events; may be repeated.")
]
_Master = Annotated[
    str, typer.Option("-m", "--master-host", metavar="NAME", help="The host where no job runs: the manager's.")
]
_Roles = Annotated[
    list[str] | None,
    typer.Option(
        "-r", "--add-role-to-hosts", metavar="HOSTS:ROLE", help="host1,host2:storage and the like; may be repeated."
    ),
]
_Energy = Annotated[bool, typer.Option("-E", "--energy", help="Count energy, and write its files.")]
_Endpoint = Annotated[
    str, typer.Option("-s", "--socket-endpoint", metavar="ENDPOINT", help="Where the scheduler listens.")
]
_Prefix = Annotated[str, typer.Option("-e", "--export", metavar="PREFIX", help="What the names of outputs begin with.")]
_Limit = Annotated[int, typer.Option("--mmax", metavar="N", help="At most so many machines; 0 for all.")]
_LimitByWorkload = Annotated[
    bool, typer.Option("--mmax-workload", help="At most as many machines as the workloads say (nb_res).")
]
_Forward = Annotated[
    bool, typer.Option("--forward-profiles-on-submission", help="Tell the profile of each job that arrives.")
]
_Dynamic = Annotated[bool, typer.Option("--enable-dynamic-jobs", help="The scheduler may register jobs.")]
_Acknowledge = Annotated[
    bool, typer.Option("--acknowledge-dynamic-jobs", help="Tell the scheduler of jobs that it has registered.")
]
_Reuse = Annotated[
    bool, typer.Option("--enable-profile-reuse", help="Keep profiles of jobs that have ended for those to come.")
]
_ForwardEvents = Annotated[
    bool, typer.Option("--forward-unknown-events", help="Tell the scheduler of events that Batsim does not know.")
]
_Sharing = Annotated[bool, typer.Option("--enable-compute-sharing", help="Machines may run several jobs at once.")]
_NoStorageSharing = Annotated[
    bool, typer.Option("--disable-storage-sharing", help="A storage serves one job at a time.")
]
_NoScheduler = Annotated[
    bool, typer.Option("--no-sched", help="No scheduler: all jobs begin at once, each on the first machines.")
]
_Configuration = Annotated[str | None, typer.Option("--sched-cfg", metavar="TEXT", help="Passed to the scheduler.")]
_ConfigurationFile = Annotated[
    Path | None, typer.Option("--sched-cfg-file", metavar="FILE", help="The same, from a file.")
]
_Context = Annotated[
    bool, typer.Option("--dump-execution-context", help="Show the execution context as JSON, and do nothing.")
]
_Verbosity = Annotated[
    str,
    typer.Option(
        "-v", "--verbosity", metavar="LEVEL", help="quiet, information, or network-only and debug: show all messages."
    ),
]
_Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Short for --verbosity quiet.")]
_Patience = Annotated[
    str | None,
    typer.Option(
        "--patience", metavar="TIME", help="Ours: give up on a scheduler that does not answer for so long (real time)."
    ),
]


def batsim(
    platform: _Platform = None,
    workload: _Workload = None,
    events: _Events = None,
    master_host: _Master = "master_host",
    add_role_to_hosts: _Roles = None,
    energy: _Energy = False,
    socket_endpoint: _Endpoint = "tcp://localhost:28000",
    export: _Prefix = "out",
    mmax: _Limit = 0,
    mmax_workload: _LimitByWorkload = False,
    forward_profiles_on_submission: _Forward = False,
    enable_dynamic_jobs: _Dynamic = False,
    acknowledge_dynamic_jobs: _Acknowledge = False,
    enable_profile_reuse: _Reuse = False,
    forward_unknown_events: _ForwardEvents = False,
    enable_compute_sharing: _Sharing = False,
    disable_storage_sharing: _NoStorageSharing = False,
    no_sched: _NoScheduler = False,
    sched_cfg: _Configuration = None,
    sched_cfg_file: _ConfigurationFile = None,
    disable_schedule_tracing: Annotated[
        bool, typer.Option("--disable-schedule-tracing", help="Accepted: no Pajé trace is ever written.")
    ] = False,
    disable_machine_state_tracing: Annotated[
        bool, typer.Option("--disable-machine-state-tracing", help="Leave out PREFIX_machine_states.csv.")
    ] = False,
    dump_execution_context: _Context = False,
    verbosity: _Verbosity = "information",
    quiet: _Quiet = False,
    patience: _Patience = None,
    redis_hostname: Annotated[str, typer.Option("--redis-hostname", hidden=True)] = "127.0.0.1",
    redis_port: Annotated[int, typer.Option("--redis-port", hidden=True)] = 6379,
    redis_prefix: Annotated[str, typer.Option("--redis-prefix", hidden=True)] = "default",
    enable_redis: Annotated[bool, typer.Option("--enable-redis", hidden=True)] = False,
    workflow: _Workflow = None,
    workflow_start: Annotated[tuple[Path, str] | None, typer.Option("--WS", "--workflow-start", hidden=True)] = None,
    workflow_jobs_limit: _WorkflowLimit = 0,
    ignore_beyond_last_workflow: _IgnoreBeyond = False,
    sg_cfg: Annotated[list[str] | None, typer.Option("--sg-cfg", hidden=True)] = None,
    sg_log: Annotated[list[str] | None, typer.Option("--sg-log", hidden=True)] = None,
    version: Annotated[bool, typer.Option("--version", help="Show the version of Batsim that is imitated.")] = False,
    simgrid_version: Annotated[bool, typer.Option("--simgrid-version", hidden=True)] = False,
) -> None:
    """Simulate as Batsim 4 does, for schedulers of its protocol.

    \b
    batkube batsim -p platform.xml -w workload.json -e out -s tcp://localhost:28000
    """
    wishes = dict(locals())
    if version:
        from batkube.batsim.simulator.output_files import BATSIM_VERSION

        typer.echo(BATSIM_VERSION)
        return
    if dump_execution_context:
        typer.echo(_execution_context(wishes))
        return
    _reject_unsupported(wishes)
    _simulate(wishes)


def _execution_context(wishes: dict[str, Any]) -> str:
    """Return what `batsim --dump-execution-context` shows."""
    context = {
        "socket_endpoint": wishes["socket_endpoint"],
        "redis_enabled": wishes["enable_redis"],
        "redis_hostname": wishes["redis_hostname"],
        "redis_port": wishes["redis_port"],
        "redis_prefix": wishes["redis_prefix"],
        "export_prefix": wishes["export"],
        "external_scheduler": not wishes["no_sched"],
    }
    return json.dumps(context, separators=(",", ":"))


#: Options of Batsim's that are not supported: what to do instead.
_UNSUPPORTED = {
    "enable_redis": ("--enable-redis", "leave it out: jobs are described in the messages"),
    "workflow_start": ("--workflow-start", "give the workflow with -W: its first tasks are submitted at 0"),
    "sg_cfg": ("--sg-cfg", "there is no SimGrid to configure"),
    "sg_log": ("--sg-log", "there is no SimGrid that logs"),
    "simgrid_version": ("--simgrid-version", "there is no SimGrid; the model is that of 3.32"),
}


def _reject_unsupported(wishes: dict[str, Any]) -> None:
    for name, (option, remedy) in _UNSUPPORTED.items():
        if wishes[name]:
            raise InputError(f"batkube batsim {option}", problem="is not supported", remedy=remedy)
    if wishes["enable_profile_reuse"] and not wishes["enable_dynamic_jobs"]:
        raise InputError(
            "batkube batsim --enable-profile-reuse",
            problem="profiles can be used again by dynamic jobs only",
            remedy="add --enable-dynamic-jobs",
        )
    for name in ("events", "workflow"):
        if wishes["no_sched"] and wishes[name]:
            problem = "nobody hears of it without a scheduler"
            raise InputError(f"batkube batsim --{name}", problem=problem, remedy="leave out --no-sched")
    if wishes["sched_cfg"] is not None and wishes["sched_cfg_file"] is not None:
        raise InputError("batkube batsim --sched-cfg-file", problem="goes not together with --sched-cfg")
    if wishes["verbosity"] not in _VERBOSITIES:
        raise InputError(
            "batkube batsim --verbosity",
            problem=f"{wishes['verbosity']!r} is no level",
            remedy=f"one of {', '.join(_VERBOSITIES)}",
        )


def _simulate(wishes: dict[str, Any]) -> None:
    from batkube.batsim.simulator.run import SimulatorArguments, run_batsim
    from batkube.batsim.simulator.simulation import UnfinishedJobs
    from batkube.batsim.state.options import Options

    if wishes["platform"] is None:
        raise InputError("batkube batsim", problem="no platform given", remedy="add -p FILE.xml")
    options = Options(
        allows_compute_sharing=wishes["enable_compute_sharing"],
        allows_storage_sharing=not wishes["disable_storage_sharing"],
        forwards_profiles=wishes["forward_profiles_on_submission"],
        has_dynamic_jobs=wishes["enable_dynamic_jobs"],
        acknowledges_dynamic_jobs=wishes["acknowledge_dynamic_jobs"],
        keeps_profiles=wishes["enable_profile_reuse"],
        # Without events there is nothing to forward, and Batsim then says so.
        forwards_unknown_events=wishes["forward_unknown_events"] and bool(wishes["events"]),
        scheduler_configuration=_configuration(wishes["sched_cfg"], wishes["sched_cfg_file"]),
        has_energy=wishes["energy"],
        workflow_jobs_max=wishes["workflow_jobs_limit"],
        ignores_beyond_workflow=wishes["ignore_beyond_last_workflow"],
    )
    arguments = SimulatorArguments(
        platform=wishes["platform"],
        workloads=wishes["workload"] or [],
        workflows=wishes["workflow"] or [],
        endpoint=wishes["socket_endpoint"],
        prefix=wishes["export"],
        master=wishes["master_host"],
        roles=_roles(wishes["add_role_to_hosts"] or []),
        machines_max=wishes["mmax"] if wishes["mmax"] > 0 else None,
        limits_by_workload=wishes["mmax_workload"],
        events=wishes["events"] or [],
        options=options,
        has_machine_states=not wishes["disable_machine_state_tracing"],
        patience_ns=_patience_ns(wishes["patience"]),
        has_scheduler=not wishes["no_sched"],
    )
    verbosity = "quiet" if wishes["quiet"] else wishes["verbosity"]
    try:
        run_batsim(arguments, _print_message if verbosity in _VERBOSITIES_WITH_MESSAGES else None)
    except UnfinishedJobs as left:
        print(f"warning: {left}", file=sys.stderr)
        return
    if verbosity != "quiet":
        print(f"the simulation is over; wrote {arguments.prefix}_*.csv", file=sys.stderr)


def _print_message(direction: str, text: str) -> None:
    print(f"{direction}: {text}", file=sys.stderr)


def _configuration(text: str | None, path: Path | None) -> str:
    if path is None:
        return text or ""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, problem=f"cannot be read as the scheduler's configuration: {error}") from None


def _roles(texts: Sequence[str]) -> dict[str, str]:
    """Return the roles of `host1,host2:role`."""
    roles: dict[str, str] = {}
    for text in texts:
        hosts, mark, role = text.partition(":")
        if not mark or ":" in role:
            raise InputError(
                "batkube batsim --add-role-to-hosts",
                problem=f"{text!r} gives no role",
                remedy="write host1,host2:storage",
            )
        roles |= dict.fromkeys(hosts.split(","), role)
    return roles


def _patience_ns(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return duration(text)
    except ValueError as error:
        raise InputError("batkube batsim --patience", problem=str(error)) from None
