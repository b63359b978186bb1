"""`batkube batsim` without its command line: reads the inputs, simulates, and writes the output files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from batkube.batsim.protocol.zmq_sockets import Requester
from batkube.batsim.server.conversation import SchedulerConnection
from batkube.batsim.simgrid.actors import ActorKernel
from batkube.batsim.simulator.external_events import read_external_events
from batkube.batsim.simulator.hosts import MASTER_HOST, TransferTimes, machines_of
from batkube.batsim.simulator.output_files import OutputFiles
from batkube.batsim.simulator.simulation import SimulationInputs, simulate
from batkube.batsim.state.options import Options
from batkube.execution.profiles.task_shapes import SMPI
from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.stopwatch import Stopwatch
from batkube.platforms.reader import read_network, read_platform
from batkube.workloads.formats.batsim.dax import read_dax
from batkube.workloads.formats.batsim.documents import BatsimDocument, read_batsim_document
from batkube.workloads.formats.batsim.usage_traces import UsageTraces
from batkube.workloads.model import Composed, Job, Parallel, Profile, RawProfile

#: The default endpoint of the scheduler, as in Batsim.
ENDPOINT = "tcp://localhost:28000"


@dataclass(frozen=True, slots=True)
class SimulatorArguments:
    """The arguments of a simulation."""

    platform: Path
    workloads: Sequence[Path]
    endpoint: str = ENDPOINT
    prefix: str = "out"
    master: str = MASTER_HOST
    roles: Mapping[str, str] = field(default_factory=dict)
    #: The maximum number of compute nodes (--mmax), and whether `nb_res` of the workloads limits it (--mmax-workload).
    machines_max: int | None = None
    limits_by_workload: bool = False
    events: Sequence[Path] = ()
    workflows: Sequence[Path] = ()
    options: Options = field(default_factory=Options)
    has_machine_states: bool = True
    #: The real time within which the scheduler must reply; None for no limit, as in Batsim.
    reply_timeout_ns: int | None = None
    #: Without a scheduler, all jobs start at once, on the first machines (--no-sched).
    has_scheduler: bool = True


class TracedScheduler:
    """A connection to a scheduler that reports all messages to a listener."""

    def __init__(self, scheduler: SchedulerConnection, listener: Callable[[str, str], None]) -> None:
        self._scheduler = scheduler
        self._listener = listener

    def request(self, text: str) -> bytes:
        """Send a message and return the reply."""
        self._listener("to scheduler", text)
        reply = self._scheduler.request(text)
        self._listener("from scheduler", reply.decode(errors="replace"))
        return reply


def run_batsim(
    arguments: SimulatorArguments,
    listener: Callable[[str, str], None] | None = None,
    scheduler: SchedulerConnection | None = None,
) -> None:
    """Simulate, and write the output files; if the simulation is aborted, they are complete up to that date.

    `listener` receives the direction and the text of each message. `scheduler` replaces the one at the endpoint.

    Raise InputError for bad inputs, before anything is written, and RunFailed if the scheduler fails or sends a request
    on which Batsim aborts.
    """
    stopwatch = Stopwatch()
    inputs, kernel = _prepare(arguments)
    requester = None
    if arguments.has_scheduler and scheduler is None:
        scheduler = requester = Requester(arguments.endpoint, arguments.reply_timeout_ns)
    if scheduler is not None and listener is not None:
        scheduler = TracedScheduler(scheduler, listener)
    try:
        with OutputFiles(arguments.prefix, inputs.machines, has_states=arguments.has_machine_states) as output:
            try:
                simulate(inputs, kernel, scheduler, output)
            finally:
                output.scheduling_time = 0.0 if requester is None else requester.waited_s
                output.simulation_time = stopwatch.real_s
    except RunFailed as error:
        raise type(error)(f"{error}\n  what was computed until then is in {arguments.prefix}_*.csv") from error
    finally:
        if requester is not None:
            requester.close()


def _prepare(arguments: SimulatorArguments) -> tuple[SimulationInputs, ActorKernel]:
    network = read_network(arguments.platform)
    documents = {
        f"w{number}": read_batsim_document(path, f"w{number}", may_be_empty=True)
        for number, path in enumerate(arguments.workloads)
    }
    limits = [] if arguments.machines_max is None else [arguments.machines_max]
    if arguments.limits_by_workload:
        sizes = [document.workload.size_machines for document in documents.values()]
        limits += [max(size for size in sizes if size is not None)] if any(sizes) else []
    zones = {machine.name: machine.zone_properties for machine in read_platform(str(arguments.platform)).machines}
    machines = machines_of(
        network, zones, master=arguments.master, roles=arguments.roles, limit=min(limits) if limits else None
    )
    forwards = arguments.options.forwards_unknown_events
    events = [read_external_events(path, forwards_unknown=forwards) for path in arguments.events]
    _check_prefix(arguments.prefix)
    _check_profiles(documents)
    if not arguments.has_scheduler:
        _check_jobs_without_scheduler(documents, sum(not machine.is_storage for machine in machines.all))
    workflows = [read_dax(path, f"wf{number}") for number, path in enumerate(arguments.workflows)]
    inputs = SimulationInputs(network, machines, documents, events, arguments.options, workflows)
    return inputs, ActorKernel(TransferTimes(network))


def _check_prefix(prefix: str) -> None:
    folder = Path(f"{prefix}_jobs.csv").parent
    if not folder.is_dir():
        raise InputError(
            "--export", problem=f"the folder {folder} does not exist", remedy="create it first, as for Batsim"
        )


def _check_profiles(documents: Mapping[str, BatsimDocument]) -> None:
    """Reject unreadable traces and jobs that cannot be executed, before anything is written."""
    traces = UsageTraces()
    for document in documents.values():
        folder = Path(document.workload.source).parent
        for job in document.workload.jobs:
            problem = _problem_of(job)
            if problem is not None:
                raise InputError(document.workload.source, at=f"job {job.name!r}", problem=problem)
            traces.load(job.profile, folder)


def _problem_of(job: Job) -> str | None:
    """Return why a job can never be executed, or None."""
    profile = job.profile
    if _has_kind(profile, SMPI):
        return (
            f"its profile {profile.name!r} replays an SMPI trace, which is not modelled; use a real Batsim: "
            "batkube run --engine batsim, or batsim itself"
        )
    if isinstance(profile, Parallel) and len(profile.cpu_flops) != job.size:
        return f"requests {job.size} machines, and its profile {profile.name!r} is for {len(profile.cpu_flops)}"
    return None


def _check_jobs_without_scheduler(documents: Mapping[str, BatsimDocument], count: int) -> None:
    """Reject jobs that need a scheduler, for --no-sched."""
    for document in documents.values():
        for job in document.workload.jobs:
            problem = None
            if job.size > count:
                problem = f"requests {job.size} of {count} machines, and only a scheduler could reject it"
            elif _has_kind(job.profile, "send", "recv"):
                problem = f"its profile {job.profile.name!r} exchanges messages with a scheduler"
            if problem is not None:
                raise InputError(
                    document.workload.source, at=f"job {job.name!r}", problem=problem, remedy="omit --no-sched"
                )


def _has_kind(profile: Profile, *kinds: str) -> bool:
    """Return whether a profile, or one of its parts, is of one of these types of Batsim."""
    if isinstance(profile, Composed):
        return any(_has_kind(part, *kinds) for part in profile.parts)
    return isinstance(profile, RawProfile) and profile.kind in kinds
