"""Batsim's server: the actor that receives all internal messages, notifies the scheduler, and handles its requests.

The server handles the messages of its mailbox one by one. When the scheduler is ready and the mailbox is empty, it
sends the events collected so far as one message. So the state of the mailbox, not the clock, decides which events share
a message. The end of the last submitter, for example, arrives after its last job, and so is a message of its own.

Imitated: Batsim 4.2.1, server_process and the handlers server_on_… of src/server.cpp. Where Batsim asserts, this module
raises BatsimAbort with Batsim's text.
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

#: The types of NOTIFY for the external events of machines.
MACHINE_UNAVAILABLE, MACHINE_AVAILABLE = "event_machine_unavailable", "event_machine_available"
#: The kinds of submitters: actors that submit jobs, or external events.
JOBS, EVENTS = "jobs", "events"
#: The type of NOTIFY after the last submitter of a kind has ended.
_END_NOTIFICATIONS = {JOBS: "no_more_static_job_to_submit", EVENTS: "no_more_external_event_to_occur"}

ServerHandler = Callable[[], ActorCode]
"""A message in the server's mailbox: the code that handles it."""


class JobRecorder(Protocol):
    """Records the outcomes of jobs."""

    def record(self, live: LiveJob) -> None:
        """Record a job that has ended or was rejected."""


class BatsimServer:
    """The actor between the scheduler and all other actors."""

    def __init__(
        self,
        kernel: ActorKernel,
        mailbox: Mailbox,
        options: Options,
        machines: Machines,
        registry: JobRegistry,
        recorder: JobRecorder,
        exchange: Callable[[Message], ActorCode],
        submitters: Mapping[str, int],
    ) -> None:
        """`exchange` sends a message to the scheduler; `submitters` has the number of submitters of each kind."""
        self._kernel = kernel
        self._mailbox = mailbox
        self._options = options
        self._machines = machines
        self._registry = registry
        self._recorder = recorder
        self._exchange = exchange
        self._open_submitters = Counter(submitters)
        self._events: list[Event] = []
        self._is_scheduler_ready = False
        self._has_sent_end = False
        self._is_over = False
        #: Whether the scheduler has announced that it registers no more jobs.
        self.is_registration_over = False
        #: The numbers of jobs that have been submitted, that have ended, and that are running.
        self.submissions = self.completions = self.running = 0
        #: The numbers of pending kills, calls and switches.
        self.pending: Counter[str] = Counter()
        #: Jobs whose end is reported in the next message; they are deleted then.
        self._ended: list[str] = []
        #: The mailbox that is notified of the end of a job, by job id.
        self._end_subscribers: dict[str, Mailbox] = {}
        self._ended_workflows = 0

    @property
    def is_over(self) -> bool:
        """Whether the scheduler has acknowledged the end of the simulation."""
        return self._is_over

    @property
    def awaits_registrations(self) -> bool:
        """Whether the scheduler may still register jobs."""
        return self._options.has_dynamic_jobs and not self.is_registration_over

    @property
    def unfinished_jobs(self) -> int:
        """The number of jobs that have been submitted and have not ended."""
        return self.submissions - self.completions

    def run(self, description: JsonObject) -> ActorCode:
        """Run the server until the scheduler has acknowledged the end; `description` is sent in SIMULATION_BEGINS."""
        self.queue_event(SimulationBegins(at=self._kernel.now, description=description))
        yield from self._send()
        while not self._is_over:
            handler = yield from self._mailbox.get()
            assert callable(handler)
            yield from handler()
            if not self._is_scheduler_ready or self._is_over or not (yield from self._mailbox.is_empty()):
                continue
            if self._events:
                yield from self._send()
                for job_id in self._ended:
                    self._registry.delete(job_id)
                self._ended.clear()
            elif self._is_finished and not self._has_sent_end:
                self.queue_event(SimulationEnds(at=self._kernel.now))
                yield from self._send()
                self._has_sent_end = True

    def queue_event(self, event: Event) -> None:
        """Add an event to the next message."""
        self._events.append(event)

    def _send(self) -> ActorCode:
        message = Message(self._kernel.now, self._events)
        self._events, self._is_scheduler_ready = [], False
        yield self.spawn(self._exchange(message))

    def spawn(self, code: ActorCode) -> Simcall:
        """Return the simcall that creates an actor on the server's host."""
        return Spawn(code, self._machines.master)

    @property
    def _is_finished(self) -> bool:
        is_idle = not self.running and self.submissions == self.completions and not any(self.pending.values())
        return is_idle and not self.awaits_registrations and not any(self._open_submitters.values())

    # Internal messages

    def on_scheduler_ready(self) -> ActorCode:
        """Handle the end of the scheduler's decisions."""
        self._is_scheduler_ready = True
        self._is_over = self._has_sent_end
        yield from ()

    def subscribe_to_end(self, live: LiveJob, mailbox: Mailbox) -> None:
        """Notify `mailbox` when a job completes; rejected and killed jobs are not reported, as in Batsim."""
        self._end_subscribers[live.id] = mailbox

    def on_submitter_hello(self) -> ActorCode:
        """Handle the start of a submitter: it takes as long as any message, and changes nothing."""
        yield from ()

    def on_jobs_submitted(self, jobs: Iterable[LiveJob]) -> ActorCode:
        """Handle a submission. With --ignore-beyond-last-workflow, ignore it after the workflow has ended.

        Batsim compares the number of ended workflows with Workflows::size(), which returns a bool (src/workflow.cpp).
        So with several workflows, it ignores jobs from the end of the first one to that of the second one.
        """
        if self._options.ignores_beyond_workflow and self._ended_workflows == 1:
            return
        for live in jobs:
            live.state = JobState.SUBMITTED
            self.submissions += 1
            self.report_submission(live)
        yield from ()

    def report_submission(self, live: LiveJob) -> None:
        """Report a job that was submitted, or acknowledge one that the scheduler has registered."""
        profile = live.profile_description if self._options.forwards_profiles else None
        self.queue_event(JobSubmitted(at=self._kernel.now, job_id=live.id, job=live.description, profile=profile))

    def on_submitter_bye(self, kind: str, *, is_workflow: bool = False) -> ActorCode:
        """Handle the end of a submitter; notify the scheduler after the last one of a kind."""
        self._open_submitters[kind] -= 1
        self._ended_workflows += is_workflow
        if not self._open_submitters[kind]:
            self.queue_event(Notify(at=self._kernel.now, kind=_END_NOTIFICATIONS[kind]))
        yield from ()

    def on_job_completed(self, live: LiveJob) -> ActorCode:
        """Handle a job that has ended by itself, or at its walltime."""
        mailbox = self._end_subscribers.pop(live.id, None)
        if mailbox is not None:
            yield from mailbox.put(live)
        self.record_end(live)

    def record_end(self, live: LiveJob) -> None:
        """Report and record the end of a job that was running."""
        self.running -= 1
        self.completions += 1
        self.queue_event(
            JobCompleted(
                at=self._kernel.now,
                job_id=live.id,
                state=live.state,
                return_code=live.return_code,
                machines=live.machines,
            )
        )
        self.record(live)

    def record(self, live: LiveJob) -> None:
        """Record the outcome of a job, and delete the job after the next message."""
        self._recorder.record(live)
        self._ended.append(live.id)

    def on_job_message(self, live: LiveJob, message: Json) -> ActorCode:
        """Handle a message from a job to the scheduler."""
        self.queue_event(FromJobMessage(at=self._kernel.now, job_id=live.id, message=message))
        yield from ()

    def on_external_events(self, events: Iterable[Notify]) -> ActorCode:
        """Handle external events; those of machines have a set of ids as `resources`."""
        for event in events:
            ids = event.more.get("resources")
            if ids == 0:
                continue
            if isinstance(ids, int):
                self._change_availability(event.kind, ids)
                event = Notify(at=event.at, kind=event.kind, more={"resources": format_intervals(ids)})
            self.queue_event(Notify(at=self._kernel.now, kind=event.kind, more=event.more))
        yield from ()

    def _change_availability(self, kind: str, mask: int) -> None:
        """Change the availability of machines; running jobs continue (Batsim: docs/input-events.rst)."""
        if not self._machines.all_exist(mask):
            raise BatsimAbort(f"Cannot get machine {mask.bit_length() - 1}: it does not exist")
        for machine in self._machines.select(mask):
            is_unavailable = machine.state is MachineState.UNAVAILABLE
            if kind == MACHINE_UNAVAILABLE:
                if is_unavailable:
                    raise BatsimAbort(
                        f"The making of machine {machine.id} ('{machine.name}') unavailable was requested but this "
                        "machine was already in UNAVAILABLE state."
                    )
                state = MachineState.UNAVAILABLE
            else:
                if not is_unavailable:
                    raise BatsimAbort(
                        f"The making of machine {machine.id} ('{machine.name}') available was requested but this "
                        f"machine was not in UNAVAILABLE state (current state: {machine.state})."
                    )
                state = MachineState.COMPUTING if machine.jobs else MachineState.IDLE
            self._machines.set_state(machine, state, self._kernel.now)

    def on_machines_switched(self, machines: int, state: int, *, is_immediate: bool) -> None:
        """Report that all machines of a request have reached the requested power state."""
        if not is_immediate:
            self._machines.on_change(self._kernel.now)
        self.queue_event(ResourceStateChanged(at=self._kernel.now, machines=machines, state=str(state)))
