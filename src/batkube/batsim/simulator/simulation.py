"""One simulation: creates Batsim's actors, and steps the kernel until the simulation is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from batkube.batsim.protocol.messages import ExecuteJob, Notify
from batkube.batsim.server.actions import SchedulerActions
from batkube.batsim.server.batsim_server import EVENTS, JOBS, BatsimServer
from batkube.batsim.server.conversation import Conversation, SchedulerConnection
from batkube.batsim.server.power import MachinePower
from batkube.batsim.server.simulation_description import describe_simulation
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.simulator.fluid_tasks import FluidTasks
from batkube.batsim.simulator.job_executor import JobExecutor
from batkube.batsim.simulator.output_files import OutputFiles
from batkube.batsim.simulator.submitters import submit_events, submit_jobs
from batkube.batsim.simulator.workflow_submitter import submit_tasks
from batkube.batsim.state.jobs import JobRegistry
from batkube.batsim.state.machines import Machines
from batkube.batsim.state.options import Options
from batkube.execution.energy.log import EnergyLog
from batkube.execution.energy.meters import EnergyMeters
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import human_duration
from batkube.platforms.network import Network
from batkube.workloads.formats.batsim.dax import Workflow
from batkube.workloads.formats.batsim.documents import BatsimDocument


@dataclass(frozen=True, slots=True)
class SimulationInputs:
    """The inputs of a simulation."""

    network: Network
    machines: Machines
    documents: Mapping[str, BatsimDocument]
    #: The events of each events file, in order.
    events: Sequence[Sequence[Notify]]
    options: Options
    workflows: Sequence[Workflow] = ()

    @property
    def sources(self) -> dict[str, str]:
        """The file of each workload."""
        files = {name: document.workload.source for name, document in self.documents.items()}
        return files | {workflow.name: workflow.source for workflow in self.workflows}


class UnfinishedJobs(RunFailed):
    """The scheduler left jobs unfinished. Batsim logs this, and exits with 0."""


def simulate(
    inputs: SimulationInputs, kernel: ActorKernel, scheduler: SchedulerConnection | None, output: OutputFiles
) -> None:
    """Simulate to the end; without a scheduler, all jobs start at once. Raise RunFailed if the scheduler fails."""
    mailbox = Mailbox()
    registry = JobRegistry(
        inputs.documents,
        keeps_profiles=inputs.options.keeps_profiles,
        workflows=[workflow.name for workflow in inputs.workflows],
    )
    conversation: Conversation
    server = BatsimServer(
        kernel,
        mailbox,
        inputs.options,
        inputs.machines,
        registry,
        output,
        lambda message: conversation.exchange(message),
        {JOBS: len(inputs.sources), EVENTS: len(inputs.events)},
    )
    folders = {name: Path(document.workload.source).parent for name, document in inputs.documents.items()}
    tasks = FluidTasks(kernel, inputs.network, inputs.machines, folders)
    kernel.model = tasks
    energy_log = power = None
    if inputs.options.has_energy:
        names = [machine.name for machine in inputs.machines.all]
        tasks.meters = EnergyMeters(tasks.platform, names)
        kernel.on_host_activity_end = tasks.meters.update
        output.energy_log = energy_log = EnergyLog(tasks.meters, names)
        power = MachinePower(kernel, mailbox, server, inputs.machines, energy_log)
    executor = JobExecutor(kernel, mailbox, server, inputs.machines, registry, tasks, energy_log)
    if scheduler is None:
        _start_all(kernel, inputs, registry, executor)
        while (due := kernel.due) is not None:
            kernel.step(due)
        return
    actions = SchedulerActions(kernel, mailbox, inputs.options, inputs.machines, registry, server, executor, power)
    conversation = Conversation(kernel, mailbox, scheduler, actions.handler_for, server.on_scheduler_ready)
    master = inputs.machines.master

    def on_first_job() -> ActorCode:
        """Read the meters when the first job of any file is due (Batsim: static_job_submitter_process)."""
        if power is not None and output.awaits_first_submission:
            yield from power.read_meters()
            output.record_first_submission(kernel.now)

    for name in inputs.documents:
        jobs = registry.jobs_of(name)
        kernel.spawn(submit_jobs(kernel, mailbox, server, jobs, on_first_job), master)
    for workflow in inputs.workflows:
        limit = inputs.options.workflow_jobs_max
        kernel.spawn(submit_tasks(kernel, mailbox, server, registry, workflow, limit), master)
    for events in inputs.events:
        kernel.spawn(submit_events(kernel, mailbox, server, events), master)
    kernel.spawn(server.run(describe_simulation(inputs.machines, inputs.sources, inputs.options, registry)), master)
    while not server.is_over and (due := kernel.due) is not None:
        kernel.step(due)
    if not server.is_over:
        raise UnfinishedJobs(f"no more events at {human_duration(kernel.now)}: the scheduler {_omission(server)}")


def _omission(server: BatsimServer) -> str:
    """Return what the scheduler has failed to do, if the simulation cannot continue."""
    if server.unfinished_jobs:
        return f"neither executed nor rejected {server.unfinished_jobs} submitted jobs"
    if server.awaits_registrations:
        return "did not end the registration of jobs (NOTIFY with the type registration_finished)"
    return "rejected or killed a job of a workflow, which waits for its completion"


def _start_all(kernel: ActorKernel, inputs: SimulationInputs, registry: JobRegistry, executor: JobExecutor) -> None:
    """Start all jobs at 0, each on the first machines (`--no-sched`; Batsim: batexec_job_launcher_process)."""
    for name in inputs.documents:
        for live in registry.jobs_of(name):
            execution = ExecuteJob(at=kernel.now, job_id=live.id, machines=(1 << live.job.size) - 1)
            kernel.spawn(executor.run(live, execution, notifies_server=False), inputs.machines.all[0].name)
