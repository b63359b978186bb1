"""One simulation as Batsim does it: its actors put together, and time let go on until all is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from batkube.batsim.actors import Scene, Script
from batkube.batsim.conversation import Conversation, Scheduler
from batkube.batsim.deeds import Deeds
from batkube.batsim.execution import JobExecutor
from batkube.batsim.greeting import beginning
from batkube.batsim.jobs import Workloads
from batkube.batsim.machines import Machines
from batkube.batsim.mailboxes import Mailbox
from batkube.batsim.messages import ExecuteJob, Notify
from batkube.batsim.options import Options
from batkube.batsim.power import MachinePower
from batkube.batsim.server import BatsimServer
from batkube.batsim.sources import EVENTS, JOBS, source_of_events, source_of_jobs
from batkube.batsim.tables import Tables
from batkube.batsim.tasks import FluidTasks
from batkube.batsim.workflows import source_of_tasks
from batkube.execution.energy_book import EnergyBook
from batkube.execution.meters import Meters
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import human
from batkube.platforms.network import Network
from batkube.workloads.batsim import BatsimDocument
from batkube.workloads.dax import Workflow


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


class JobsLeft(RunFailed):
    """The scheduler left jobs behind. Batsim says so in its log, and exits as if nothing had happened."""


def simulate(inputs: SimulationInputs, scene: Scene, scheduler: Scheduler | None, tables: Tables) -> None:
    """Simulate to the end; without a scheduler all jobs begin at once. Raises RunFailed when the scheduler leaves."""
    mailbox = Mailbox()
    workloads = Workloads(
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
    scene.clockwork = tasks
    book = power = None
    if inputs.options.has_energy:
        names = [machine.name for machine in inputs.machines.all]
        tasks.meters = Meters(tasks.platform, names)
        scene.on_end = tasks.meters.touch
        tables.book = book = EnergyBook(tasks.meters, names)
        power = MachinePower(scene, mailbox, server, inputs.machines, book)
    executor = JobExecutor(scene, mailbox, server, inputs.machines, workloads, tasks, book)
    if scheduler is None:
        _begin_all(scene, inputs, workloads, executor)
        while (due := scene.due) is not None:
            scene.step(due)
        return
    deeds = Deeds(scene, mailbox, inputs.options, inputs.machines, workloads, server, executor, power)
    conversation = Conversation(scene, mailbox, scheduler, deeds.deed, server.ready)
    master = inputs.machines.master

    def first_submission() -> Script:
        """Have the meters read when the first job of all is due (Batsim: static_job_submitter_process)."""
        if power is not None and tables.awaits_submission:
            yield from power.read_meters()
            tables.first_submission(scene.now)

    for name in inputs.documents:
        jobs = workloads.jobs_of(name)
        scene.enter(source_of_jobs(scene, mailbox, server, jobs, first_submission), master)
    for workflow in inputs.workflows:
        limit = inputs.options.workflow_jobs_max
        scene.enter(source_of_tasks(scene, mailbox, server, workloads, workflow, limit), master)
    for events in inputs.events:
        scene.enter(source_of_events(scene, mailbox, server, events), master)
    scene.enter(server.script(beginning(inputs.machines, inputs.sources, inputs.options, workloads)), master)
    while not server.is_over and (due := scene.due) is not None:
        scene.step(due)
    if not server.is_over:
        left = "rejected or killed a job of a workflow, which waits for it"
        if server.waiting:
            left = f"left {server.waiting} jobs that it was told of neither started nor rejected"
        elif server.awaits_registrations:
            left = "has not said that it will register no more jobs (NOTIFY of registration_finished)"
        raise JobsLeft(f"nothing more is due at {human(scene.now)}, and the scheduler {left}")


def _begin_all(scene: Scene, inputs: SimulationInputs, workloads: Workloads, executor: JobExecutor) -> None:
    """Let all jobs begin at 0, each on the first machines (Batsim: batexec, `--no-sched`); nobody is told of them."""
    for name in inputs.documents:
        for live in workloads.jobs_of(name):
            execution = ExecuteJob(at=scene.now, job_id=live.id, machines=(1 << live.job.size) - 1)
            scene.enter(executor.run(live, execution, is_told=False), inputs.machines.all[0].name)
