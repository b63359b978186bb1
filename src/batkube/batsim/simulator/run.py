"""A Batsim of ours from its arguments to its files: `batkube batsim`, without its command line."""

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

#: Where Batsim looks for its scheduler.
ENDPOINT = "tcp://localhost:28000"


@dataclass(frozen=True, slots=True)
class SimulatorArguments:
    """What a simulation is made of, and where its files go."""

    platform: Path
    workloads: Sequence[Path]
    endpoint: str = ENDPOINT
    prefix: str = "out"
    master: str = MASTER_HOST
    roles: Mapping[str, str] = field(default_factory=dict)
    #: At most so many machines; and no more than the workloads say, if that counts.
    machines_max: int | None = None
    limits_by_workload: bool = False
    events: Sequence[Path] = ()
    workflows: Sequence[Path] = ()
    options: Options = field(default_factory=Options)
    has_machine_states: bool = True
    #: How long a reply may take in real time; None for ever, as with Batsim.
    patience_ns: int | None = None
    #: Without one all jobs begin at once, on the first machines (--no-sched).
    has_scheduler: bool = True


class TracedScheduler:
    """A scheduler whose messages somebody listens to."""

    def __init__(self, scheduler: SchedulerConnection, listener: Callable[[str, str], None]) -> None:
        self._scheduler = scheduler
        self._listener = listener

    def request(self, text: str) -> bytes:
        """Pass a message on, and its reply back."""
        self._listener("to scheduler", text)
        reply = self._scheduler.request(text)
        self._listener("from scheduler", reply.decode(errors="replace"))
        return reply


def run_batsim(
    arguments: SimulatorArguments,
    listener: Callable[[str, str], None] | None = None,
    scheduler: SchedulerConnection | None = None,
) -> None:
    """Simulate, and write the files; those of a simulation that breaks off are written up to there.

    `listener` hears all messages. Without `scheduler` it is the one that listens at the endpoint.
    Raises InputError for what cannot be used, before anything is written, and RunFailed when the scheduler leaves the
    simulation, or asks for what Batsim aborts on.
    """
    stopwatch = Stopwatch()
    inputs, scene = _prepare(arguments)
    asks = arguments.has_scheduler and scheduler is None
    requester = Requester(arguments.endpoint, arguments.patience_ns) if asks else None
    partner = scheduler or requester
    if partner is not None and listener is not None:
        partner = TracedScheduler(partner, listener)
    try:
        with OutputFiles(arguments.prefix, inputs.machines, has_states=arguments.has_machine_states) as tables:
            try:
                simulate(inputs, scene, partner, tables)
            finally:
                tables.scheduling_time = 0.0 if requester is None else requester.waited_s
                tables.simulation_time = stopwatch.real_s
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
        raise InputError("--export", problem=f"there is no folder {folder}", remedy="make it first, as for Batsim")


def _check_profiles(documents: Mapping[str, BatsimDocument]) -> None:
    """Refuse traces that cannot be read, and jobs that cannot be executed, before anything is written."""
    traces = UsageTraces()
    for document in documents.values():
        folder = Path(document.workload.source).parent
        for job in document.workload.jobs:
            problem = _problem_of(job)
            if problem is not None:
                raise InputError(document.workload.source, at=f"job {job.name!r}", problem=problem)
            traces.load(job.profile, folder)


def _problem_of(job: Job) -> str | None:
    """Return why a job can never be executed, if it cannot."""
    profile = job.profile
    if _has_kind(profile, SMPI):
        return (
            f"its profile {profile.name!r} replays an SMPI trace, which is not modelled; run it under a real Batsim: "
            "batkube run --engine batsim, or batsim itself"
        )
    if isinstance(profile, Parallel) and len(profile.cpu_flops) != job.size:
        return f"asks for {job.size} machines, and its profile {profile.name!r} is for {len(profile.cpu_flops)}"
    return None


def _check_jobs_without_scheduler(documents: Mapping[str, BatsimDocument], count: int) -> None:
    """Refuse what needs a scheduler, where there is none."""
    for document in documents.values():
        for job in document.workload.jobs:
            problem = None
            if job.size > count:
                problem = f"asks for {job.size} machines of {count}, and without a scheduler nobody can reject it"
            elif _has_kind(job.profile, "send", "recv"):
                problem = f"its profile {job.profile.name!r} talks with a scheduler, and there is none"
            if problem is not None:
                raise InputError(
                    document.workload.source, at=f"job {job.name!r}", problem=problem, remedy="leave out --no-sched"
                )


def _has_kind(profile: Profile, *kinds: str) -> bool:
    """Return whether a profile, or one that it is made of, is of one of Batsim's types."""
    if isinstance(profile, Composed):
        return any(_has_kind(part, *kinds) for part in profile.parts)
    return isinstance(profile, RawProfile) and profile.kind in kinds
