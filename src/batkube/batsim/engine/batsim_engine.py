"""A real Batsim as the engine of a run: it submits the jobs and executes them.

    Batsim ─▶ JOB_SUBMITTED, JOB_COMPLETED ─▶ pods are created and end ─▶ the run's scheduler binds pods
           ◀─ EXECUTE_JOB, REJECT_JOB, KILL_JOB, CALL_ME_LATER for the next appointment of the run ◀─

For Batsim, a run is its scheduler, and Batsim's time stands still between a message and its reply. So both have one
clock: before the clock of the run advances to an appointment, Batsim gets a CALL_ME_LATER for that date, and its next
message is not later.

Limits of the protocol: dates have six decimals. A job can be executed only once. The events of a message take effect at
the `now` of the message, before which Batsim accepts no decision (Batsim: docs/protocol.rst).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from batkube.batsim.protocol.decoder import MalformedMessage, decode
from batkube.batsim.protocol.encoder import encode
from batkube.batsim.protocol.messages import (
    CallMeLater,
    Event,
    ExecuteJob,
    JobCompleted,
    JobKilled,
    JobSubmitted,
    Json,
    KillJob,
    Message,
    Notify,
    RejectJob,
    SimulationBegins,
    SimulationEnds,
)
from batkube.cluster.jobs.executions import JobExecution
from batkube.cluster.jobs.outcomes import FinalState, Outcome
from batkube.cluster.world import World
from batkube.execution.jobs.work_runners import OnEnd
from batkube.kernel.agenda import Rank
from batkube.kernel.errors import RunFailed
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import START, Instant, human_duration
from batkube.kernel.intervals import mask_of, members, parse_intervals
from batkube.platforms.model import Machine
from batkube.workloads.model import Job

#: The notifications of Batsim's external events of machines.
_MACHINE_EVENTS = ("event_machine_available", "event_machine_unavailable")
#: The resolution of dates in Batsim's messages.
_TICK_NS = 1000
_MACHINE_EVENTS_NOTE = FidelityNote(
    "engine", "Batsim's external events of machines do not change nodes: pass the events file to the run with --events"
)


class BatsimConnection(Protocol):
    """A connection to a Batsim."""

    def receive(self) -> bytes:
        """Return the next message of Batsim. Raise RunFailed if there is none."""

    def reply(self, text: str) -> None:
        """Reply to the last message."""


class _RunningJob(NamedTuple):
    """A job that Batsim executes."""

    execution: JobExecution
    on_end: OnEnd


class BatsimEngine:
    """Has a Batsim submit and execute the jobs of a run, and limits how far its clock may advance."""

    def __init__(
        self,
        world: World,
        machines: Sequence[Machine],
        jobs: Mapping[str, Job],
        connection: BatsimConnection,
        *,
        shares_machines: bool,
    ) -> None:
        """`jobs` are those of the workloads, by key; `shares_machines` says that pods may share machines."""
        self._agenda = world.agenda
        self._clock = world.clock
        self._notes = world.notes
        self._machines = machines
        self._jobs = jobs
        self._connection = connection
        self._shares_machines = shares_machines
        #: Called with each submitted job.
        self.on_arrival: Callable[[Job, Instant], None] = lambda job, now: None
        #: The date of Batsim's last message; None before the first.
        self._now: Instant | None = None
        self._is_over = False
        #: Batsim's ids of machines, by name.
        self._ids: dict[str, int] = {}
        #: The events of the next reply.
        self._pending_events: list[Event] = []
        #: The dates of requested calls.
        self._calls: set[Instant] = set()
        #: Submitted jobs that have been neither executed nor rejected.
        self._undecided: set[str] = set()
        self._submitted_count = 0
        self._running: dict[str, _RunningJob] = {}
        #: The machines of jobs that are being killed: Batsim frees them when it reports the end.
        self._killing: dict[str, int] = {}
        self._allocations: dict[str, int] = {}

    # The clock

    @property
    def expects_events(self) -> bool:
        """Whether Batsim will still submit or complete jobs."""
        return not self._is_over and (self._submitted_count < len(self._jobs) or bool(self._running or self._killing))

    def advance_limit(self, now: Instant, due: Instant | None) -> Instant | None:
        """Return how far the clock may advance towards `due`; until then, Batsim's events are on the agenda."""
        if now < START:  # Programs start up before Batsim's clock starts.
            return START if due is None else min(due, START)
        if self._is_over:
            return due
        if self._now is not None and self._now > now:
            # Dates were rounded up for Batsim, so its clock is ahead already.
            return self._now if due is None or due <= now else min(due, self._now)
        if self._now is not None:
            if due is None and not self._pending_events and not self.expects_events:
                return None
            if due is not None:
                self._call_at(Instant(max(_round_up_to_tick(due), now + _TICK_NS)), now)
            self._reply(now)
        return self._receive(now)

    def _call_at(self, date: Instant, now: Instant) -> None:
        """Request a call at a date, unless Batsim calls earlier anyway."""
        if not self._calls or date < min(self._calls):
            self._calls.add(date)
            self._pending_events.append(CallMeLater(at=now, call_at=date))

    def _reply(self, now: Instant) -> None:
        """Send the pending events, except for jobs on machines that Batsim has not freed yet."""
        busy = 0
        for machines in self._killing.values():
            busy |= machines
        sent: list[Event] = []
        deferred: list[Event] = []
        for event in self._pending_events:
            is_deferred = isinstance(event, ExecuteJob) and event.machines & busy
            (deferred if is_deferred else sent).append(msgspec.structs.replace(event, at=now))
        self._pending_events = deferred
        self._connection.reply(encode(Message(now, sent)))

    # Messages of Batsim

    def _receive(self, now: Instant) -> Instant:
        """Handle the next message of Batsim, and return its date."""
        try:
            message = decode(self._connection.receive())
        except MalformedMessage as error:
            raise RunFailed(f"Batsim sent a message that is not of its protocol: {error}") from None
        at = self._now = Instant(max(message.now, now))
        self._calls = {date for date in self._calls if date > at}
        for event in message.events:
            self._handle_event(event, at)
        return at

    def _handle_event(self, event: Event, now: Instant) -> None:
        match event:
            case SimulationBegins():
                self._on_simulation_begun(event)
            case SimulationEnds():
                self._on_simulation_ended(now)
            case JobSubmitted():
                self._on_job_submitted(event, now)
            case JobCompleted():
                self._on_job_completed(event, now)
            case JobKilled():
                for job_id in event.job_ids:
                    self._killing.pop(job_id, None)
            case Notify() if event.kind in _MACHINE_EVENTS:
                self._notes.add(
                    _MACHINE_EVENTS_NOTE, example=f"{event.kind} at {human_duration(now)}: {self._machine_names(event)}"
                )
            case _:
                pass  # Calls, and notifications without an effect on a run.

    def _on_simulation_begun(self, event: SimulationBegins) -> None:
        """Read Batsim's ids of machines, and check that its simulation is that of the run."""
        resources = event.description.get("compute_resources")
        entries = resources if isinstance(resources, list) else []
        self._ids = {str(entry["name"]): _machine_id(entry) for entry in entries if isinstance(entry, dict)}
        missing = [machine.name for machine in self._machines if machine.name not in self._ids]
        if missing:
            raise RunFailed(
                f"Batsim has no machine {missing[0]!r}: its platform is not that of the run\n"
                "  remedy: use the same platform file for both"
            )
        if self._shares_machines and event.description.get("allow_compute_sharing") is not True:
            raise RunFailed(
                "pods of this run may share machines, but Batsim's jobs may not\n"
                "  remedy: start Batsim with --enable-compute-sharing, or run with --resources machines"
            )

    def _machine_names(self, event: Notify) -> str:
        """Return the names of an event's machines; their ids are Batsim's, not those of the run."""
        names = {machine_id: name for name, machine_id in self._ids.items()}
        text = str(event.more.get("resources", ""))
        try:
            mask = parse_intervals(text)
        except ValueError:
            return text
        return ", ".join(names.get(machine_id, f"machine {machine_id}") for machine_id in members(mask))

    def _on_job_submitted(self, event: JobSubmitted, now: Instant) -> None:
        job = self._jobs.get(event.job_id)
        if job is None:
            raise RunFailed(
                f"Batsim submits the job {event.job_id!r}, which is not in the workloads of the run\n"
                "  remedy: use the same workload files, in the same order, for both"
            )
        self._submitted_count += 1
        self._undecided.add(event.job_id)
        self.on_arrival(job if job.submit == now else msgspec.structs.replace(job, submit=now), now)

    def _on_job_completed(self, event: JobCompleted, now: Instant) -> None:
        self._killing.pop(event.job_id, None)
        running = self._running.pop(event.job_id, None)
        if running is None:
            return  # The run has stopped it before.
        try:
            state = FinalState(event.state)
        except ValueError:
            raise RunFailed(
                f"Batsim reports that {event.job_id} ended with the unknown state {event.state!r}"
            ) from None
        self._agenda.book(now, Rank.FINISH, lambda at: running.on_end(running.execution, state, at))

    def _on_simulation_ended(self, now: Instant) -> None:
        self._is_over = True
        self._connection.reply(encode(Message(now)))
        missing = len(self._jobs) - self._submitted_count
        if missing > 0:
            raise RunFailed(
                f"Batsim ended its simulation at {human_duration(now)} without submitting {missing} jobs of the run\n"
                "  remedy: use the same workload files for both"
            )

    # The execution of jobs

    def handles(self, job: Job) -> bool:
        """Return True: Batsim executes every job."""
        return True

    def start(self, execution: JobExecution, hosts: Sequence[str], on_end: OnEnd, now: Instant) -> None:
        """Request that Batsim executes a job; all its pods are running."""
        key, ids = execution.job.key, [self._ids[name] for name in hosts]
        allocation = sorted(set(ids))
        # Batsim's default mapping is the machines of the allocation in ascending order (execute_job_process).
        mapping = None if ids == allocation else [allocation.index(machine_id) for machine_id in ids]
        machines = self._allocations[key] = mask_of(allocation)
        self._undecided.discard(key)
        self._running[key] = _RunningJob(execution, on_end)
        self._pending_events.append(ExecuteJob(at=now, job_id=key, machines=machines, mapping=mapping))

    def abort(self, execution: JobExecution, now: Instant) -> None:
        """Stop a job whose pods are being deleted."""
        if self._running.pop(execution.job.key, None) is not None:
            self._kill(execution.job.key, now)

    def _kill(self, key: str, now: Instant) -> None:
        """Kill a job, or reject it if Batsim has not received the request to execute it yet."""
        unsent = [event for event in self._pending_events if isinstance(event, ExecuteJob) and event.job_id == key]
        if unsent:
            self._pending_events = [event for event in self._pending_events if event not in unsent]
            self._pending_events.append(RejectJob(at=now, job_id=key))
        else:
            self._killing[key] = self._allocations[key]
            self._pending_events.append(KillJob(at=now, job_ids=[key]))

    def on_job_ended(self, outcome: Outcome) -> None:
        """Reject a job that has ended in the run without having been executed."""
        if outcome.job.key in self._undecided:
            self._undecided.discard(outcome.job.key)
            self._pending_events.append(RejectJob(at=self._clock.now, job_id=outcome.job.key))

    # The end

    def finish(self, now: Instant) -> None:
        """End Batsim's simulation: kill the running jobs, and reject all others."""
        for key in list(self._running):
            del self._running[key]
            self._kill(key, now)
        self.on_arrival = lambda job, at: None
        while not self._is_over:
            for key in sorted(self._undecided):
                self._pending_events.append(RejectJob(at=now, job_id=key))
            self._undecided.clear()
            if self._now is not None:
                now = max(now, self._now)
                self._reply(now)
            self._receive(now)


def _round_up_to_tick(instant: Instant) -> int:
    """Round an instant up to whole microseconds, so that an appointment is due when Batsim calls."""
    return -(-instant // _TICK_NS) * _TICK_NS


def _machine_id(entry: Mapping[str, Json]) -> int:
    machine_id = entry.get("id")
    if not isinstance(machine_id, int):
        raise RunFailed(f"Batsim describes the machine {entry.get('name')!r} without an id")
    return machine_id
