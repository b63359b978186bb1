"""Batsim's server: the actor that everything is told to, that tells the scheduler, and that does what it says.

It takes one piece of news after the other from its mailbox. When the scheduler is not busy and the mailbox is empty,
what has gathered is one message. That the mailbox is asked, and not the clock, decides what shares a message: the last
submitter's goodbye, for example, comes after its last job and so in a message of its own.

Imitated: Batsim 4.2.1, src/server.cpp. What it asserts is refused here with its words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from batkube.batsim.protocol.messages import (
    Event,
    FromJobMessage,
    JobCompleted,
    JobSubmitted,
    Json,
    JsonObject,
    Message,
    Notify,
    ResourceStateChanged,
    SimulationBegins,
    SimulationEnds,
)
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel, Simcall, Spawn
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.state.errors import BatsimAbort
from batkube.batsim.state.jobs import JobRegistry, JobState, LiveJob
from batkube.batsim.state.machines import Machines, MachineState
from batkube.batsim.state.options import Options
from batkube.kernel.intervals import format_intervals

#: What Batsim calls the events about machines when it tells of them.
MACHINE_UNAVAILABLE, MACHINE_AVAILABLE = "event_machine_unavailable", "event_machine_available"

ServerHandler = Callable[[], ActorCode]
"""What is put into the server's mailbox: how the server answers it."""


class JobRecorder(Protocol):
    """Who writes down what becomes of jobs."""

    def record(self, live: LiveJob) -> None:
        """A job is over."""


class BatsimServer:
    """The actor in the middle."""

    def __init__(
        self,
        scene: ActorKernel,
        mailbox: Mailbox,
        options: Options,
        machines: Machines,
        workloads: JobRegistry,
        recorder: JobRecorder,
        call: Callable[[Message], ActorCode],
        sources: Mapping[str, int],
    ) -> None:
        """`call` is what one exchange with the scheduler does; `sources` how many of each kind will say goodbye."""
        self._scene = scene
        self._mailbox = mailbox
        self._options = options
        self._machines = machines
        self._workloads = workloads
        self._recorder = recorder
        self._call = call
        self._open_sources = Counter(sources)
        self._events: list[Event] = []
        self._is_ready = False
        self._has_sent_end = False
        self._is_over = False
        #: Whether the scheduler has said that it will register no more jobs.
        self.is_registration_over = False
        #: How many jobs have been submitted, have ended, are running.
        self.submissions = self.completions = self.running = 0
        #: How many kills, calls and switches are under way.
        self.pending: Counter[str] = Counter()
        #: Jobs whose end is told in the next message; then they are forgotten.
        self._ended: list[str] = []
        #: Who is told of the ends of jobs, by their ids: workflows.
        self._end_subscribers: dict[str, Mailbox] = {}
        self._ended_workflows = 0

    @property
    def is_over(self) -> bool:
        """Whether the scheduler knows that the simulation has ended."""
        return self._is_over

    @property
    def awaits_registrations(self) -> bool:
        """Whether the scheduler has not said yet that it will register no more jobs."""
        return self._options.has_dynamic_jobs and not self.is_registration_over

    @property
    def unfinished_jobs(self) -> int:
        """How many jobs have been submitted and not ended."""
        return self.submissions - self.completions

    def run(self, beginning: JsonObject) -> ActorCode:
        """What the server does; `beginning` describes the simulation to the scheduler."""
        self.queue_event(SimulationBegins(at=self._scene.now, description=beginning))
        yield from self._send()
        while not self._is_over:
            news = yield from self._mailbox.get()
            assert callable(news)
            yield from news()
            if not self._is_ready or self._is_over or not (yield from self._mailbox.is_empty()):
                continue
            if self._events:
                yield from self._send()
                for job_id in self._ended:
                    self._workloads.forget(job_id)
                self._ended.clear()
            elif self._is_finished and not self._has_sent_end:
                self.queue_event(SimulationEnds(at=self._scene.now))
                yield from self._send()
                self._has_sent_end = True

    def queue_event(self, event: Event) -> None:
        """Have the scheduler told of something in the next message."""
        self._events.append(event)

    def _send(self) -> ActorCode:
        message = Message(self._scene.now, self._events)
        self._events, self._is_ready = [], False
        yield self.spawn(self._call(message))

    def spawn(self, script: ActorCode) -> Simcall:
        """Return the wish that somebody acts beside the server."""
        return Spawn(script, self._machines.master)

    @property
    def _is_finished(self) -> bool:
        is_idle = not self.running and self.submissions == self.completions and not any(self.pending.values())
        return is_idle and not self.awaits_registrations and not any(self._open_sources.values())

    # What others tell it

    def on_scheduler_ready(self) -> ActorCode:
        """The scheduler has done deciding."""
        self._is_ready = True
        self._is_over = self._has_sent_end
        yield from ()

    def notify_end(self, live: LiveJob, mailbox: Mailbox) -> None:
        """Tell somebody of the end of a job, unless it is rejected or killed."""
        self._end_subscribers[live.id] = mailbox

    def on_jobs_submitted(self, jobs: Iterable[LiveJob]) -> ActorCode:
        """Jobs arrive; nobody hears of them after the workflow if they are to be ignored then.

        Batsim counts whether there are workflows, and not how many: with several, jobs are ignored from the end of the
        first to that of the second.
        """
        if self._options.ignores_beyond_workflow and self._ended_workflows == 1:
            return
        for live in jobs:
            live.state = JobState.SUBMITTED
            self.submissions += 1
            self.report_submission(live)
        yield from ()

    def report_submission(self, live: LiveJob) -> None:
        """Tell of a job that arrived, or whose registration is acknowledged."""
        profile = live.profile_description if self._options.forwards_profiles else None
        self.queue_event(JobSubmitted(at=self._scene.now, job_id=live.id, job=live.description, profile=profile))

    def on_source_finished(self, kind: str, notice: str, *, is_workflow: bool = False) -> ActorCode:
        """A source of jobs or events has no more; the last of a kind is told of."""
        self._open_sources[kind] -= 1
        self._ended_workflows += is_workflow
        if not self._open_sources[kind]:
            self.queue_event(Notify(at=self._scene.now, kind=notice))
        yield from ()

    def on_job_completed(self, live: LiveJob) -> ActorCode:
        """A job has ended by itself, or at its walltime."""
        waiting = self._end_subscribers.pop(live.id, None)
        if waiting is not None:
            yield from waiting.put(live)
        self.record_end(live)

    def record_end(self, live: LiveJob) -> None:
        """A job that ran is over."""
        self.running -= 1
        self.completions += 1
        self.queue_event(
            JobCompleted(
                at=self._scene.now,
                job_id=live.id,
                state=live.state,
                return_code=live.return_code,
                machines=live.machines,
            )
        )
        self.record(live)

    def record(self, live: LiveJob) -> None:
        """Have it written down what became of a job; once the scheduler is told, it is forgotten."""
        self._recorder.record(live)
        self._ended.append(live.id)

    def on_job_message(self, live: LiveJob, message: Json) -> ActorCode:
        """A job has something to tell the scheduler."""
        self.queue_event(FromJobMessage(at=self._scene.now, job_id=live.id, message=message))
        yield from ()

    def on_external_events(self, events: Iterable[Notify]) -> ActorCode:
        """External events occurred; `more` of those about machines has their ids as a set."""
        for event in events:
            ids = event.more.get("resources")
            if ids == 0:
                continue  # of no machines there is nothing to tell
            if isinstance(ids, int):
                self._change_availability(event.kind, ids)
                event = Notify(at=event.at, kind=event.kind, more={"resources": format_intervals(ids)})
            self.queue_event(Notify(at=self._scene.now, kind=event.kind, more=event.more))
        yield from ()

    def _change_availability(self, kind: str, mask: int) -> None:
        """Running jobs go on (Batsim documentation, "Events")."""
        if not self._machines.all_exist(mask):
            raise BatsimAbort(f"Cannot get machine {mask.bit_length() - 1}: it does not exist")
        for machine in self._machines.select(mask):
            is_away = machine.state is MachineState.UNAVAILABLE
            if kind == MACHINE_UNAVAILABLE:
                if is_away:
                    raise BatsimAbort(
                        f"The making of machine {machine.id} ('{machine.name}') unavailable was requested but this "
                        "machine was already in UNAVAILABLE state."
                    )
                state = MachineState.UNAVAILABLE
            else:
                if not is_away:
                    raise BatsimAbort(
                        f"The making of machine {machine.id} ('{machine.name}') available was requested but this "
                        f"machine was not in UNAVAILABLE state (current state: {machine.state})."
                    )
                state = MachineState.COMPUTING if machine.jobs else MachineState.IDLE
            self._machines.set_state(machine, state, self._scene.now)

    def on_machines_switched(self, machines: int, state: int, *, at_once: bool) -> None:
        """All machines of one request are in their new state."""
        if not at_once:
            self._machines.on_change(self._scene.now)
        self.queue_event(ResourceStateChanged(at=self._scene.now, machines=machines, state=str(state)))
