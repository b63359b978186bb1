"""One simulation as Batsim does it: its actors put together, and time let go on until all is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from batkube.batsim.protocol.messages import ExecuteJob, Notify
from batkube.batsim.server.actions import SchedulerActions
from batkube.batsim.server.batsim_server import BatsimServer
from batkube.batsim.server.conversation import Conversation, SchedulerConnection
from batkube.batsim.server.power import MachinePower
from batkube.batsim.server.simulation_description import describe_simulation
from batkube.batsim.server.submitters import EVENTS, JOBS, submit_events, submit_jobs
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.simulator.fluid_tasks import FluidTasks
from batkube.batsim.simulator.job_executor import JobExecutor
from batkube.batsim.simulator.output_files import OutputFiles
from batkube.batsim.simulator.workflow_submitter import submit_tasks
from batkube.batsim.state.jobs import JobRegistry
from batkube.batsim.state.machines import Machines
from batkube.batsim.state.options import Options
from batkube.execution.profiles.energy_log import EnergyLog
from batkube.execution.profiles.energy_meters import EnergyMeters
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import human_duration
from batkube.platforms.network import Network
from batkube.workloads.formats.batsim.dax import Workflow
from batkube.workloads.formats.batsim.documents import BatsimDocument


@dataclass(frozen=True, slots=True)
class SimulationInputs:
    """What is simulated."""

    network: Network
    machines: Machines
    documents: Mapping[str, BatsimDocument]
    #: Of each events file its events in order.
    events: Sequence[Sequence[Notify]]
    options: Options
    workflows: Sequence[Workflow] = ()

    @property
    def sources(self) -> dict[str, str]:
        """The file of each workload."""
        files = {name: document.workload.source for name, document in self.documents.items()}
        return files | {workflow.name: workflow.source for workflow in self.workflows}


class UnfinishedJobs(RunFailed):
    """The scheduler left jobs behind. Batsim says so in its log, and exits as if nothing had happened."""


def simulate(
    inputs: SimulationInputs, scene: ActorKernel, scheduler: SchedulerConnection | None, tables: OutputFiles
) -> None:
    """Simulate to the end; without a scheduler all jobs begin at once. Raises RunFailed when the scheduler leaves."""
    mailbox = Mailbox()
    workloads = JobRegistry(
        inputs.documents,
        keeps_profiles=inputs.options.keeps_profiles,
        workflows=[workflow.name for workflow in inputs.workflows],
    )
    conversation: Conversation
    server = BatsimServer(
        scene,
        mailbox,
        inputs.options,
        inputs.machines,
        workloads,
        tables,
        lambda message: conversation.exchange(message),
        {JOBS: len(inputs.sources), EVENTS: len(inputs.events)},
    )
    folders = {name: Path(document.workload.source).parent for name, document in inputs.documents.items()}
    tasks = FluidTasks(scene, inputs.network, inputs.machines, folders)
    scene.model = tasks
    book = power = None
    if inputs.options.has_energy:
        names = [machine.name for machine in inputs.machines.all]
        tasks.meters = EnergyMeters(tasks.platform, names)
        scene.on_host_activity_end = tasks.meters.update
        tables.energy_book = book = EnergyLog(tasks.meters, names)
        power = MachinePower(scene, mailbox, server, inputs.machines, book)
    executor = JobExecutor(scene, mailbox, server, inputs.machines, workloads, tasks, book)
    if scheduler is None:
        _start_all(scene, inputs, workloads, executor)
        while (due := scene.due) is not None:
            scene.step(due)
        return
    deeds = SchedulerActions(scene, mailbox, inputs.options, inputs.machines, workloads, server, executor, power)
    conversation = Conversation(scene, mailbox, scheduler, deeds.handler_for, server.on_scheduler_ready)
    master = inputs.machines.master

    def first_submission() -> ActorCode:
        """Have the meters read when the first job of all is due (Batsim: static_job_submitter_process)."""
        if power is not None and tables.awaits_first_submission:
            yield from power.read_meters()
            tables.record_first_submission(scene.now)

    for name in inputs.documents:
        jobs = workloads.jobs_of(name)
        scene.spawn(submit_jobs(scene, mailbox, server, jobs, first_submission), master)
    for workflow in inputs.workflows:
        limit = inputs.options.workflow_jobs_max
        scene.spawn(submit_tasks(scene, mailbox, server, workloads, workflow, limit), master)
    for events in inputs.events:
        scene.spawn(submit_events(scene, mailbox, server, events), master)
    scene.spawn(server.run(describe_simulation(inputs.machines, inputs.sources, inputs.options, workloads)), master)
    while not server.is_over and (due := scene.due) is not None:
        scene.step(due)
    if not server.is_over:
        left = "rejected or killed a job of a workflow, which waits for it"
        if server.unfinished_jobs:
            left = f"left {server.unfinished_jobs} jobs that it was told of neither started nor rejected"
        elif server.awaits_registrations:
            left = "has not said that it will register no more jobs (NOTIFY of registration_finished)"
        raise UnfinishedJobs(f"nothing more is due at {human_duration(scene.now)}, and the scheduler {left}")


def _start_all(scene: ActorKernel, inputs: SimulationInputs, workloads: JobRegistry, executor: JobExecutor) -> None:
    """Let all jobs begin at 0, each on the first machines (Batsim: batexec, `--no-sched`); nobody is told of them."""
    for name in inputs.documents:
        for live in workloads.jobs_of(name):
            execution = ExecuteJob(at=scene.now, job_id=live.id, machines=(1 << live.job.size) - 1)
            scene.spawn(executor.run(live, execution, is_told=False), inputs.machines.all[0].name)
