"""A real Batsim as the engine of a run: it lets jobs arrive, executes them, and says what happens next.

    Batsim ─▶ JOB_SUBMITTED, JOB_COMPLETED ─▶ pods arrive and end ─▶ the run's scheduler binds pods
           ◀─ EXECUTE_JOB, REJECT_JOB, KILL_JOB, CALL_ME_LATER for what the run does next ◀─

For Batsim, a run is its scheduler. Between two messages Batsim stands still; so both clocks are one: before the run's
clock goes on, Batsim is asked to call when something is due here, and whatever it says next is no later than that.

Batsim writes dates with six decimals, and takes no second try: a job that was executed once has ended when it is
stopped. What a message tells counts at the message's own date, before which Batsim takes no decision.
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

#: What Batsim tells of machines that its events files take away.
_MACHINE_EVENTS = ("event_machine_available", "event_machine_unavailable")
#: The smallest difference between two dates that Batsim's messages can tell.
_TICK_NS = 1000
_MACHINE_EVENTS_NOTE = FidelityNote(
    "engine", "Batsim tells that machines went or came back; nodes do not follow it: use --events of the run"
)


class BatsimConnection(Protocol):
    """What leads to a Batsim."""

    def receive(self) -> bytes:
        """Return what Batsim says next. Raises RunFailed when it says nothing."""

    def reply(self, text: str) -> None:
        """Answer what was received last."""


class _RunningJob(NamedTuple):
    """A job that Batsim executes."""

    course: JobExecution
    on_end: OnEnd


class BatsimEngine:
    """What a run asks of a Batsim: how far time may go, and the work of its jobs."""

    def __init__(
        self,
        world: World,
        machines: Sequence[Machine],
        jobs: Mapping[str, Job],
        wire: BatsimConnection,
        *,
        shares_machines: bool,
    ) -> None:
        """`jobs` are those of the workloads, by their identity; `shares_machines` says that pods may share one."""
        self._agenda = world.agenda
        self._clock = world.clock
        self._notes = world.notes
        self._machines = machines
        self._jobs = jobs
        self._connection = wire
        self._shares_machines = shares_machines
        #: Called with every job that arrives.
        self.on_arrival: Callable[[Job, Instant], None] = lambda job, now: None
        #: The date of Batsim's last message; None before the first.
        self._now: Instant | None = None
        self._is_over = False
        #: Batsim's numbers of machines.
        self._ids: dict[str, int] = {}
        #: What to tell Batsim next.
        self._orders: list[Event] = []
        #: The dates at which it will call.
        self._calls: set[Instant] = set()
        #: Jobs that it has submitted and that it waits for a decision on.
        self._waiting: set[str] = set()
        self._arrived = 0
        self._running: dict[str, _RunningJob] = {}
        #: The machines of jobs that are being killed: they are not free before Batsim says so.
        self._killing: dict[str, int] = {}
        self._allocations: dict[str, int] = {}

    # How far time may go

    @property
    def expects_events(self) -> bool:
        """Whether jobs are still to come or to end."""
        return not self._is_over and (self._arrived < len(self._jobs) or bool(self._running or self._killing))

    def advance_limit(self, now: Instant, wish: Instant | None) -> Instant | None:
        """Return how far time may go; what Batsim says of the time until then is on the agenda."""
        if now < START:  # programs come up before Batsim's time begins
            return START if wish is None else min(wish, START)
        if self._is_over:
            return wish
        if self._now is not None and self._now > now:
            # A program acted between two dates that Batsim can tell: Batsim is there already.
            return self._now if wish is None or wish <= now else min(wish, self._now)
        if self._now is not None:
            if wish is None and not self._orders and not self.expects_events:
                return None
            if wish is not None:
                self._call_at(Instant(max(_round_up_to_tick(wish), now + _TICK_NS)), now)
            self._reply(now)
        return self._receive(now)

    def _call_at(self, date: Instant, now: Instant) -> None:
        """Ask Batsim to call, unless it does before then anyway."""
        if not self._calls or date < min(self._calls):
            self._calls.add(date)
            self._orders.append(CallMeLater(at=now, call_at=date))

    def _reply(self, now: Instant) -> None:
        """Say what was decided; jobs on machines that are not free yet for Batsim wait until it has said so."""
        taken = 0
        for machines in self._killing.values():
            taken |= machines
        told: list[Event] = []
        held: list[Event] = []
        for order in self._orders:
            is_early = isinstance(order, ExecuteJob) and order.machines & taken
            (held if is_early else told).append(msgspec.structs.replace(order, at=now))
        self._orders = held
        self._connection.reply(encode(Message(now, told)))

    # What Batsim says

    def _receive(self, now: Instant) -> Instant:
        """Take note of Batsim's next message, and return its date."""
        try:
            message = decode(self._connection.receive())
        except MalformedMessage as error:
            raise RunFailed(f"Batsim said what is not of its protocol: {error}") from None
        at = self._now = Instant(max(message.now, now))
        self._calls = {date for date in self._calls if date > at}
        for event in message.events:
            self._handle_event(event, at)
        return at

    def _handle_event(self, event: Event, now: Instant) -> None:
        match event:
            case SimulationBegins():
                self._learn_machines(event)
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
                pass  # calls, and what concerns nobody here

    def _learn_machines(self, event: SimulationBegins) -> None:
        """Learn how Batsim numbers the machines of the run, all of which it must have."""
        described = event.description.get("compute_resources")
        entries = described if isinstance(described, list) else []
        self._ids = {str(entry["name"]): _machine_number(entry) for entry in entries if isinstance(entry, dict)}
        missing = [machine.name for machine in self._machines if machine.name not in self._ids]
        if missing:
            raise RunFailed(
                f"Batsim has no machine {missing[0]!r}: it runs another platform than the run\n"
                "  remedy: give both the same platform file"
            )
        if self._shares_machines and event.description.get("allow_compute_sharing") is not True:
            raise RunFailed(
                "pods of this run may share machines, and Batsim's jobs may not\n"
                "  remedy: start Batsim with --enable-compute-sharing, or run with --resources machines"
            )

    def _machine_names(self, event: Notify) -> str:
        """Return the machines that an event is about by name: their numbers are Batsim's, and not the run's."""
        names = {number: name for name, number in self._ids.items()}
        text = str(event.more.get("resources", ""))
        try:
            mask = parse_intervals(text)
        except ValueError:
            return text
        return ", ".join(names.get(number, f"machine {number}") for number in members(mask))

    def _on_job_submitted(self, event: JobSubmitted, now: Instant) -> None:
        job = self._jobs.get(event.job_id)
        if job is None:
            raise RunFailed(
                f"Batsim submits the job {event.job_id!r}, which no workload of the run has\n"
                "  remedy: give both the same workload files in the same order"
            )
        self._arrived += 1
        self._waiting.add(event.job_id)
        self.on_arrival(job if job.submit == now else msgspec.structs.replace(job, submit=now), now)

    def _on_job_completed(self, event: JobCompleted, now: Instant) -> None:
        self._killing.pop(event.job_id, None)
        work = self._running.pop(event.job_id, None)
        if work is None:
            return  # it was stopped here before
        try:
            state = FinalState(event.state)
        except ValueError:
            raise RunFailed(f"Batsim says that {event.job_id} ended as {event.state!r}, which is no end") from None
        self._agenda.book(now, Rank.FINISH, lambda at: work.on_end(work.course, state, at))

    def _on_simulation_ended(self, now: Instant) -> None:
        self._is_over = True
        self._connection.reply(encode(Message(now)))
        left = len(self._jobs) - self._arrived
        if left > 0:
            raise RunFailed(
                f"Batsim ended its simulation at {human_duration(now)}, and has not submitted {left} jobs of the run\n"
                "  remedy: give both the same workload files"
            )

    # The work of jobs

    def handles(self, job: Job) -> bool:
        """Return that Batsim executes every job."""
        return True

    def start(self, course: JobExecution, hosts: Sequence[str], on_end: OnEnd, now: Instant) -> None:
        """Have a job executed, now that all its pods run."""
        key, ids = course.job.key, [self._ids[name] for name in hosts]
        allocation = sorted(set(ids))
        # Unless told otherwise, Batsim puts the executors on the machines of the allocation in ascending order.
        mapping = None if ids == allocation else [allocation.index(number) for number in ids]
        machines = self._allocations[key] = mask_of(allocation)
        self._waiting.discard(key)
        self._running[key] = _RunningJob(course, on_end)
        self._orders.append(ExecuteJob(at=now, job_id=key, machines=machines, mapping=mapping))

    def abort(self, course: JobExecution, now: Instant) -> None:
        """Have a job stopped whose pods are being taken away."""
        if self._running.pop(course.job.key, None) is not None:
            self._kill(course.job.key, now)

    def _kill(self, key: str, now: Instant) -> None:
        unsent = [one for one in self._orders if isinstance(one, ExecuteJob) and one.job_id == key]
        if unsent:
            self._orders = [one for one in self._orders if one not in unsent]
            self._orders.append(RejectJob(at=now, job_id=key))
        else:
            self._killing[key] = self._allocations[key]
            self._orders.append(KillJob(at=now, job_ids=[key]))

    def on_job_ended(self, outcome: Outcome) -> None:
        """Take note of how a job ended: Batsim need not wait for one that will never be executed."""
        if outcome.job.key in self._waiting:
            self._waiting.discard(outcome.job.key)
            self._orders.append(RejectJob(at=self._clock.now, job_id=outcome.job.key))

    # The end

    def finish(self, now: Instant) -> None:
        """Let Batsim come to its end; what is left of the jobs is stopped or never begins."""
        for key in list(self._running):
            del self._running[key]
            self._kill(key, now)
        self.on_arrival = lambda job, at: None
        while not self._is_over:
            for key in sorted(self._waiting):
                self._orders.append(RejectJob(at=now, job_id=key))
            self._waiting.clear()
            if self._now is not None:
                now = max(now, self._now)
                self._reply(now)
            self._receive(now)


def _round_up_to_tick(instant: Instant) -> int:
    """Return an instant in whole microseconds, rounded up: what Batsim calls for is due by then."""
    return -(-instant // _TICK_NS) * _TICK_NS


def _machine_number(entry: Mapping[str, Json]) -> int:
    number = entry.get("id")
    if not isinstance(number, int):
        raise RunFailed(f"Batsim describes a machine without a number: {entry.get('name')}")
    return number
