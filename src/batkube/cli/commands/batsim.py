"""`batkube batsim`: our simulator with the command line of Batsim 4."""

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
    int,
    typer.Option("--workflow-jobs-limit", metavar="N", min=0, help="The maximum of simultaneous jobs per workflow."),
]
_IgnoreBeyond = Annotated[
    bool, typer.Option("--ignore-beyond-last-workflow", help="Do not submit jobs after the last workflow has ended.")
]
_Events = Annotated[
    list[Path] | None, typer.Option("--events", metavar="FILE", help="External events; may be repeated.")
]
_Master = Annotated[
    str,
    typer.Option("-m", "--master-host", metavar="NAME", help="The host of the resource manager, which runs no jobs."),
]
_Roles = Annotated[
    list[str] | None,
    typer.Option(
        "-r",
        "--add-role-to-hosts",
        metavar="HOSTS:ROLE",
        help="A role of hosts, such as host1,host2:storage; may be repeated.",
    ),
]
_Energy = Annotated[bool, typer.Option("-E", "--energy", help="Account for energy, and write its output files.")]
_Endpoint = Annotated[
    str,
    typer.Option("-s", "--socket-endpoint", metavar="ENDPOINT", help="The endpoint on which the scheduler listens."),
]
_Prefix = Annotated[str, typer.Option("-e", "--export", metavar="PREFIX", help="The prefix of output files.")]
_Limit = Annotated[int, typer.Option("--mmax", metavar="N", help="The maximum number of machines; 0 for no limit.")]
_LimitByWorkload = Annotated[
    bool, typer.Option("--mmax-workload", help="Limit the machines to nb_res of the workloads.")
]
_Forward = Annotated[
    bool, typer.Option("--forward-profiles-on-submission", help="Send the profile of each submitted job.")
]
_Dynamic = Annotated[bool, typer.Option("--enable-dynamic-jobs", help="The scheduler may register jobs.")]
_Acknowledge = Annotated[
    bool, typer.Option("--acknowledge-dynamic-jobs", help="Notify the scheduler of jobs that it has registered.")
]
_Reuse = Annotated[
    bool, typer.Option("--enable-profile-reuse", help="Keep the profiles of completed jobs for later jobs.")
]
_ForwardEvents = Annotated[
    bool, typer.Option("--forward-unknown-events", help="Forward events of unknown types to the scheduler.")
]
_Sharing = Annotated[bool, typer.Option("--enable-compute-sharing", help="Allow several jobs at once on a machine.")]
_NoStorageSharing = Annotated[
    bool, typer.Option("--disable-storage-sharing", help="Allow only one job at a time on a storage.")
]
_NoScheduler = Annotated[
    bool, typer.Option("--no-sched", help="Without a scheduler: start each job at once, on the first machines.")
]
_Configuration = Annotated[str | None, typer.Option("--sched-cfg", metavar="TEXT", help="Passed to the scheduler.")]
_ConfigurationFile = Annotated[
    Path | None, typer.Option("--sched-cfg-file", metavar="FILE", help="The same, from a file.")
]
_Context = Annotated[
    bool, typer.Option("--dump-execution-context", help="Print the execution context as JSON, and exit.")
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
        "--patience", metavar="TIME", help="Not in Batsim: fail if the scheduler does not reply within this real time."
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
        bool, typer.Option("--disable-schedule-tracing", help="Has no effect: Pajé traces are never written.")
    ] = False,
    disable_machine_state_tracing: Annotated[
        bool, typer.Option("--disable-machine-state-tracing", help="Do not write PREFIX_machine_states.csv.")
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
    version: Annotated[bool, typer.Option("--version", help="Print the version of Batsim that is simulated.")] = False,
    simgrid_version: Annotated[bool, typer.Option("--simgrid-version", hidden=True)] = False,
) -> None:
    """Simulate like Batsim 4, for schedulers that use its protocol.

    \b
    batkube batsim -p platform.xml -w workload.json -e out -s tcp://localhost:28000
    """
    arguments_by_name = dict(locals())
    if version:
        from batkube.batsim.simulator.output_files import BATSIM_VERSION

        typer.echo(BATSIM_VERSION)
        return
    if dump_execution_context:
        typer.echo(_execution_context(arguments_by_name))
        return
    _reject_unsupported(arguments_by_name)
    _simulate(arguments_by_name)


def _execution_context(arguments_by_name: dict[str, Any]) -> str:
    """Return the output of `batsim --dump-execution-context`."""
    context = {
        "socket_endpoint": arguments_by_name["socket_endpoint"],
        "redis_enabled": arguments_by_name["enable_redis"],
        "redis_hostname": arguments_by_name["redis_hostname"],
        "redis_port": arguments_by_name["redis_port"],
        "redis_prefix": arguments_by_name["redis_prefix"],
        "export_prefix": arguments_by_name["export"],
        "external_scheduler": not arguments_by_name["no_sched"],
    }
    return json.dumps(context, separators=(",", ":"))


#: Batsim options that are not supported, and the alternatives.
_UNSUPPORTED = {
    "enable_redis": ("--enable-redis", "omit it: the messages contain the job descriptions"),
    "workflow_start": ("--workflow-start", "use -W: the first tasks of the workflow are submitted at 0"),
    "sg_cfg": ("--sg-cfg", "omit it: SimGrid is not used"),
    "sg_log": ("--sg-log", "omit it: SimGrid is not used"),
    "simgrid_version": ("--simgrid-version", "omit it: SimGrid is not used; the model is that of SimGrid 3.32"),
}


def _reject_unsupported(arguments_by_name: dict[str, Any]) -> None:
    for name, (option, remedy) in _UNSUPPORTED.items():
        if arguments_by_name[name]:
            raise InputError(f"batkube batsim {option}", problem="is not supported", remedy=remedy)
    if arguments_by_name["enable_profile_reuse"] and not arguments_by_name["enable_dynamic_jobs"]:
        raise InputError(
            "batkube batsim --enable-profile-reuse",
            problem="only dynamic jobs can reuse profiles",
            remedy="add --enable-dynamic-jobs",
        )
    for name in ("events", "workflow"):
        if arguments_by_name["no_sched"] and arguments_by_name[name]:
            problem = "requires a scheduler"
            raise InputError(f"batkube batsim --{name}", problem=problem, remedy="omit --no-sched")
    if arguments_by_name["sched_cfg"] is not None and arguments_by_name["sched_cfg_file"] is not None:
        problem = "cannot be combined with --sched-cfg"
        raise InputError("batkube batsim --sched-cfg-file", problem=problem, remedy="omit one of them")
    if arguments_by_name["verbosity"] not in _VERBOSITIES:
        raise InputError(
            "batkube batsim --verbosity",
            problem=f"{arguments_by_name['verbosity']!r} is not a level",
            remedy=f"use one of {', '.join(_VERBOSITIES)}",
        )


def _simulate(arguments_by_name: dict[str, Any]) -> None:
    from batkube.batsim.simulator.run import SimulatorArguments, run_batsim
    from batkube.batsim.simulator.simulation import UnfinishedJobs
    from batkube.batsim.state.options import Options

    if arguments_by_name["platform"] is None:
        raise InputError("batkube batsim", problem="the platform is missing", remedy="add -p FILE.xml")
    options = Options(
        allows_compute_sharing=arguments_by_name["enable_compute_sharing"],
        allows_storage_sharing=not arguments_by_name["disable_storage_sharing"],
        forwards_profiles=arguments_by_name["forward_profiles_on_submission"],
        has_dynamic_jobs=arguments_by_name["enable_dynamic_jobs"],
        acknowledges_dynamic_jobs=arguments_by_name["acknowledge_dynamic_jobs"],
        keeps_profiles=arguments_by_name["enable_profile_reuse"],
        # Like Batsim, report false if there are no events to forward.
        forwards_unknown_events=arguments_by_name["forward_unknown_events"] and bool(arguments_by_name["events"]),
        scheduler_configuration=_configuration(arguments_by_name["sched_cfg"], arguments_by_name["sched_cfg_file"]),
        has_energy=arguments_by_name["energy"],
        workflow_jobs_max=arguments_by_name["workflow_jobs_limit"],
        ignores_beyond_workflow=arguments_by_name["ignore_beyond_last_workflow"],
    )
    arguments = SimulatorArguments(
        platform=arguments_by_name["platform"],
        workloads=arguments_by_name["workload"] or [],
        workflows=arguments_by_name["workflow"] or [],
        endpoint=arguments_by_name["socket_endpoint"],
        prefix=arguments_by_name["export"],
        master=arguments_by_name["master_host"],
        roles=_roles(arguments_by_name["add_role_to_hosts"] or []),
        machines_max=arguments_by_name["mmax"] if arguments_by_name["mmax"] > 0 else None,
        limits_by_workload=arguments_by_name["mmax_workload"],
        events=arguments_by_name["events"] or [],
        options=options,
        has_machine_states=not arguments_by_name["disable_machine_state_tracing"],
        reply_timeout_ns=_parse_patience(arguments_by_name["patience"]),
        has_scheduler=not arguments_by_name["no_sched"],
    )
    verbosity = "quiet" if arguments_by_name["quiet"] else arguments_by_name["verbosity"]
    try:
        run_batsim(arguments, _print_message if verbosity in _VERBOSITIES_WITH_MESSAGES else None)
    except UnfinishedJobs as unfinished:
        print(f"warning: {unfinished}", file=sys.stderr)
        return
    if verbosity != "quiet":
        print(f"simulation finished; wrote {arguments.prefix}_*.csv", file=sys.stderr)


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
    """Parse texts such as `host1,host2:role` into the roles of hosts."""
    roles: dict[str, str] = {}
    for text in texts:
        hosts, colon, role = text.partition(":")
        if not colon or ":" in role:
            raise InputError(
                "batkube batsim --add-role-to-hosts",
                problem=f"{text!r} is not of the form HOSTS:ROLE",
                remedy="write host1,host2:storage",
            )
        roles |= dict.fromkeys(hosts.split(","), role)
    return roles


def _parse_patience(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return duration(text)
    except ValueError as error:
        raise InputError("batkube batsim --patience", problem=str(error)) from None
