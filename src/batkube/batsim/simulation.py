"""One simulation as Batsim does it: its actors put together, and time let go on until all is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from batkube.batsim.actors import Mailbox, Stage
from batkube.batsim.conversation import Conversation, Scheduler
from batkube.batsim.execution import JobExecutor
from batkube.batsim.jobs import Workloads
from batkube.batsim.machines import Machines
from batkube.batsim.messages import JsonObject, Notify
from batkube.batsim.options import Options
from batkube.batsim.server import Server
from batkube.batsim.site import described
from batkube.batsim.sources import EVENTS, JOBS, source_of_events, source_of_jobs
from batkube.batsim.tables import Tables
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import human
from batkube.workloads.batsim import BatsimDocument


@dataclass(frozen=True, slots=True)
class Subject:
    """What is simulated."""

    machines: Machines
    documents: Mapping[str, BatsimDocument]
    #: Of each events file its events in order.
    events: Sequence[Sequence[Notify]]
    options: Options


def simulate(subject: Subject, stage: Stage, scheduler: Scheduler, tables: Tables) -> None:
    """Simulate to the end. Raises RunFailed when the scheduler leaves it, or leaves jobs behind."""
    mailbox = Mailbox()
    workloads = Workloads(subject.documents, keeps_profiles=subject.options.keeps_profiles)
    conversation: Conversation
    server = Server(
        stage,
        mailbox,
        subject.options,
        subject.machines,
        workloads,
        tables,
        lambda message: conversation.exchange(message),
        {JOBS: len(subject.documents), EVENTS: len(subject.events)},
    )
    conversation = Conversation(stage, mailbox, scheduler, server.deed, server.ready)
    server.executor = JobExecutor(stage, mailbox, server, subject.machines, workloads, None, None)
    master = subject.machines.master
    for name in subject.documents:
        stage.enter(source_of_jobs(stage, mailbox, server, workloads.jobs_of(name)), master)
    for events in subject.events:
        stage.enter(source_of_events(stage, mailbox, server, events), master)
    stage.enter(server.script(_beginning(subject, workloads)), master)
    while not server.is_over and (due := stage.due) is not None:
        stage.step(due)
    if not server.is_over:
        raise RunFailed(
            f"nothing more is due at {human(stage.now)}, and the scheduler left {server.waiting} jobs that it was told "
            "of neither started nor rejected"
        )


def _beginning(subject: Subject, workloads: Workloads) -> JsonObject:
    machines = subject.machines.all
    storage = [machine for machine in machines if machine.is_storage]
    compute = [machine for machine in machines if not machine.is_storage]
    return {
        "nb_resources": len(machines),
        "nb_compute_resources": len(compute),
        "nb_storage_resources": len(storage),
        "allow_compute_sharing": subject.options.allows_compute_sharing,
        "allow_storage_sharing": subject.options.allows_storage_sharing,
        "config": subject.options.configuration(),
        "compute_resources": described(compute),
        "storage_resources": described(storage),
        "workloads": {name: document.workload.source for name, document in subject.documents.items()},
        "profiles": dict(workloads.profile_descriptions()),
    }
