"""Batsim's server: the actor that everything is told to, that tells the scheduler, and that does what it says.

It takes one piece of news after the other from its mailbox. When the scheduler is not busy and the mailbox is empty,
what has gathered is one message. That the mailbox is asked, and not the clock, decides what shares a message: the last
submitter's goodbye, for example, comes after its last job and so in a message of its own.

Imitated: Batsim 4.2.1, src/server.cpp. What it asserts is refused here with its words.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from batkube.batsim.actors import Enter, Mailbox, Script, Sleep, Stage, Wish
from batkube.batsim.jobs import JobState, LiveJob, Workloads
from batkube.batsim.machines import LiveMachine, Machines, MachineState
from batkube.batsim.messages import (
    Answer,
    CallMeLater,
    ChangeJobState,
    Event,
    ExecuteJob,
    FromJobMessage,
    JobCompleted,
    JobKilled,
    JobSubmitted,
    Json,
    JsonObject,
    KillJob,
    Message,
    Notify,
    Query,
    RegisterJob,
    RegisterProfile,
    RejectJob,
    RequestedCall,
    ResourceStateChanged,
    SetJobMetadata,
    SetResourceState,
    SimulationBegins,
    SimulationEnds,
    ToJobMessage,
)
from batkube.batsim.options import Options
from batkube.batsim.refusal import Refusal
from batkube.kernel.instants import Duration, Instant, format_seconds
from batkube.kernel.intervals import format_intervals
from batkube.workloads.model import Composed, ParallelHomogeneousTotal, Profile

#: A call is never asked for less than this ahead (Batsim: waiter_process).
_SHORTEST_WAIT = Duration(10_000)

News = Callable[[], Script]
"""What is put into the server's mailbox: how the server answers it."""


class Executor(Protocol):
    """Who carries jobs out."""

    def run(self, live: LiveJob, execution: ExecuteJob) -> Script:
        """Carry a job out, and have the server told of its end unless it is killed."""

    def stop(self, live: LiveJob) -> Script:
        """Stop a job that runs: its state says that it was killed once the server hears of it."""


class Power(Protocol):
    """What machines draw, and the states they can be switched to."""

    def consumed(self, now: Instant) -> float:
        """Return the joules of all machines since the beginning."""

    def request(self, machines: int, state: int, now: Instant) -> Iterable[tuple[LiveMachine, Script | None]]:
        """Begin to bring machines into a pstate: yield who does it for each, None where it is done at once."""


class Recorder(Protocol):
    """Who writes down what becomes of jobs."""

    def record(self, live: LiveJob) -> None:
        """A job is over."""


class Server:
    """The actor in the middle."""

    def __init__(
        self,
        stage: Stage,
        mailbox: Mailbox,
        options: Options,
        machines: Machines,
        workloads: Workloads,
        recorder: Recorder,
        call: Callable[[Message], Script],
        sources: Mapping[str, int],
    ) -> None:
        """`call` is what one exchange with the scheduler does; `sources` how many of each kind will say goodbye."""
        self._stage = stage
        self._mailbox = mailbox
        self._options = options
        self._machines = machines
        self._workloads = workloads
        self._recorder = recorder
        self._call = call
        self._sources = Counter(sources)
        #: Set once all parts are there.
        self.executor: Executor
        self.power: Power | None = None
        self._events: list[Event] = []
        self._is_ready = False
        self._has_sent_end = False
        self._is_over = False
        self._is_registration_over = False
        self._submitted = self._completed = self._running = 0
        self._busy: Counter[str] = Counter()
        #: Jobs whose end is told in the next message; then they are forgotten.
        self._ended: list[str] = []
        self._deeds: Mapping[type[Event], Callable[..., News]] = {
            ExecuteJob: self._to_execute,
            RejectJob: self._to_reject,
            KillJob: self._to_kill,
            CallMeLater: self._to_call_later,
            RegisterJob: self._to_register_job,
            RegisterProfile: self._to_register_profile,
            SetResourceState: self._to_switch,
            SetJobMetadata: self._to_describe,
            ChangeJobState: self._to_change_state,
            ToJobMessage: self._to_speak,
            Notify: self._to_heed,
            Query: self._to_answer,
            Answer: lambda event: self._nothing,
        }

    @property
    def is_over(self) -> bool:
        """Whether the scheduler knows that the simulation has ended."""
        return self._is_over

    @property
    def waiting(self) -> int:
        """How many jobs have been submitted and not ended."""
        return self._submitted - self._completed

    def script(self, beginning: JsonObject) -> Script:
        """What the server does; `beginning` describes the simulation to the scheduler."""
        self._tell(SimulationBegins(at=self._stage.now, description=beginning))
        yield from self._send()
        while not self._is_over:
            news = yield self._mailbox.get()
            assert callable(news)
            yield from news()
            if not self._is_ready or self._is_over or not self._mailbox.is_empty:
                continue
            if self._events:
                yield from self._send()
                for job_id in self._ended:
                    self._workloads.forget(job_id)
                self._ended.clear()
            elif self._is_finished and not self._has_sent_end:
                self._tell(SimulationEnds(at=self._stage.now))
                yield from self._send()
                self._has_sent_end = True

    def _tell(self, event: Event) -> None:
        self._events.append(event)

    def _send(self) -> Script:
        message = Message(self._stage.now, self._events)
        self._events, self._is_ready = [], False
        yield self._someone(self._call(message))

    def _someone(self, script: Script) -> Wish:
        """Return the wish that somebody acts beside the server."""
        return Enter(script, self._machines.master)

    @property
    def _is_finished(self) -> bool:
        registers = self._options.has_dynamic_jobs and not self._is_registration_over
        is_idle = not self._running and self._submitted == self._completed and not any(self._busy.values())
        return is_idle and not registers and not any(self._sources.values())

    def _nothing(self) -> Script:
        yield from ()

    # What others tell it

    def ready(self) -> Script:
        """The scheduler has done deciding."""
        self._is_ready = True
        self._is_over = self._has_sent_end
        yield from ()

    def submitted(self, jobs: Iterable[LiveJob]) -> Script:
        """Jobs arrive."""
        for live in jobs:
            live.state = JobState.SUBMITTED
            self._submitted += 1
            self._tell_of_submission(live)
        yield from ()

    def _tell_of_submission(self, live: LiveJob) -> None:
        profile = live.profile_description if self._options.forwards_profiles else None
        self._tell(JobSubmitted(at=self._stage.now, job_id=live.id, job=live.description, profile=profile))

    def goodbye(self, kind: str, notice: str) -> Script:
        """A source of jobs or events has no more; the last of a kind is told of."""
        self._sources[kind] -= 1
        if not self._sources[kind]:
            self._tell(Notify(at=self._stage.now, kind=notice))
        yield from ()

    def completed(self, live: LiveJob) -> Script:
        """A job has ended by itself, or at its walltime."""
        self._end(live)
        yield from ()

    def _end(self, live: LiveJob) -> None:
        self._running -= 1
        self._completed += 1
        self._tell(
            JobCompleted(
                at=self._stage.now,
                job_id=live.id,
                state=live.state,
                return_code=live.return_code,
                machines=live.machines,
            )
        )
        self._record(live)

    def _record(self, live: LiveJob) -> None:
        self._recorder.record(live)
        self._ended.append(live.id)

    def spoken(self, live: LiveJob, message: Json) -> Script:
        """A job has something to tell the scheduler."""
        self._tell(FromJobMessage(at=self._stage.now, job_id=live.id, message=message))
        yield from ()

    def happened(self, events: Iterable[Notify]) -> Script:
        """External events occurred; `more` of those about machines has their ids as a set."""
        for event in events:
            ids = event.more.get("resources")
            if isinstance(ids, int):
                self._change_availability(event.kind, ids)
                event = Notify(at=event.at, kind=event.kind, more={"resources": format_intervals(ids)})
            self._tell(Notify(at=self._stage.now, kind=event.kind, more=event.more))
        yield from ()

    def _change_availability(self, kind: str, mask: int) -> None:
        """Running jobs go on (Batsim documentation, "Events")."""
        if not self._machines.exist(mask):
            raise Refusal(f"Cannot get machine {mask.bit_length() - 1}: it does not exist")
        for machine in self._machines.among(mask):
            is_away = machine.state is MachineState.UNAVAILABLE
            if kind == MACHINE_UNAVAILABLE:
                if is_away:
                    raise Refusal(
                        f"The making of machine {machine.id} ('{machine.name}') unavailable was requested but this "
                        "machine was already in UNAVAILABLE state."
                    )
                state = MachineState.UNAVAILABLE
            else:
                if not is_away:
                    raise Refusal(
                        f"The making of machine {machine.id} ('{machine.name}') available was requested but this "
                        f"machine was not in UNAVAILABLE state (current state: {machine.state})."
                    )
                state = MachineState.COMPUTING if machine.jobs else MachineState.IDLE
            self._machines.change(machine, state, self._stage.now)

    # What the scheduler says

    def deed(self, event: Event) -> News:
        """Return how the server answers an event of the scheduler's; what can be refused at once is."""
        return self._deeds[type(event)](event)

    def _to_execute(self, event: ExecuteJob) -> News:
        live = self._workloads.job(event.job_id)
        return functools.partial(self._execute, live, event)

    def _execute(self, live: LiveJob, event: ExecuteJob) -> Script:
        if live.state is not JobState.SUBMITTED:
            raise Refusal(f"Cannot execute job '{live.id}': its state ({live.state}) is not JOB_STATE_SUBMITTED.")
        live.state = JobState.RUNNING
        self._running += 1
        self._check_machines(live, event)
        self._check_size(live, event)
        host = self._machines.first(event.machines).name
        live.actor = yield Enter(self.executor.run(live, event), host)  # type: ignore[assignment]

    def _check_machines(self, live: LiveJob, event: ExecuteJob) -> None:
        where = f"('{format_intervals(event.machines)}')"
        if not self._machines.exist(event.machines):
            raise Refusal(f"Cannot get machine {event.machines.bit_length() - 1}: it does not exist")
        for machine in self._machines.among(event.machines):
            options = self._options
            allowed = options.allows_storage_sharing if machine.is_storage else options.allows_compute_sharing
            name = f"machine {machine.id} (hostname='{machine.name}')"
            if machine.jobs and not allowed:
                kind = "storage" if machine.is_storage else "compute"
                raise Refusal(
                    f"Job '{live.id}': Invalid allocation {where}: {name} is currently computing jobs (these ones: "
                    f"{{{', '.join(sorted(machine.jobs))}}}) whereas time-sharing on {kind} machines is disabled."
                )
            if machine.state not in (MachineState.COMPUTING, MachineState.IDLE):
                raise Refusal(
                    f"Job '{live.id}': Invalid job allocation {where}: {name} cannot compute jobs now (the machine is "
                    f"not computing nor idle, its state is '{machine.state}')"
                )

    def _check_size(self, live: LiveJob, event: ExecuteJob) -> None:
        """Refuse another number of machines than the job asks for, unless its work is shared out over any number."""
        if _is_shared_out(live.job.profile):
            return
        where, size = f"allocation ('{format_intervals(event.machines)}')", live.job.size
        if event.mapping is not None and len(event.mapping) != size:
            raise Refusal(
                f"Job '{live.id}' {where} is invalid. The decision process set a custom mapping for this job, but the "
                f"custom mapping size ({len(event.mapping)}) does not match the job requested number of machines "
                f"({size})."
            )
        if event.mapping is None and event.machines.bit_count() != size:
            raise Refusal(
                f"Job '{live.id}' {where} is invalid. The job requires {size} machines but only "
                f"{event.machines.bit_count()} were given. Using a different number of machines than the one requested "
                "is prevented by default."
            )

    def _to_reject(self, event: RejectJob) -> News:
        return functools.partial(self._reject, event.job_id)

    def _reject(self, job_id: str) -> Script:
        live = self._registered(job_id, f"Job '{job_id}' does not exist.")
        if live.state is not JobState.SUBMITTED:
            raise Refusal(
                f"Invalid rejection received: job '{job_id}' cannot be rejected at the present time. To be rejected, a "
                "job must be submitted and not allocated yet."
            )
        live.state = JobState.REJECTED
        self._completed += 1
        self._record(live)
        yield from ()

    def _registered(self, job_id: str, complaint: str) -> LiveJob:
        if not self._workloads.is_known(job_id):
            raise Refusal(complaint)
        return self._workloads.job(job_id)

    def _to_kill(self, event: KillJob) -> News:
        return functools.partial(self._kill, event)

    def _kill(self, event: KillJob) -> Script:
        """Have jobs stopped whose kill was not asked for before; those that have ended are told of all the same."""
        targets = []
        for job_id in event.job_ids:
            live = self._registered(job_id, f"Trying to kill job '{job_id}' but it does not exist.")
            if live.is_kill_requested:
                continue
            if live.state is not JobState.RUNNING and not live.state.is_final:
                raise Refusal(f"Invalid KILL_JOB: job_id '{job_id}' refers to a job not being executed nor completed.")
            live.is_kill_requested = True
            targets.append(live)
        if targets:
            yield self._someone(self._killer(targets))
            self._busy["killers"] += 1

    def _killer(self, targets: Iterable[LiveJob]) -> Script:
        progress: dict[str, JsonObject] = {}
        for live in targets:
            if live.state is JobState.RUNNING:
                if live.progress is not None:
                    progress[live.id] = live.progress.tree(self._stage.now)
                yield from self.executor.stop(live)
        yield self._mailbox.put(functools.partial(self._killed, targets, progress))

    def _killed(self, targets: Iterable[LiveJob], progress: Mapping[str, JsonObject]) -> Script:
        for live in targets:
            if live.state is JobState.KILLED:
                self._end(live)
        self._tell(JobKilled(at=self._stage.now, job_ids=[live.id for live in targets], progress=progress))
        self._busy["killers"] -= 1
        yield from ()

    def _to_call_later(self, event: CallMeLater) -> News:
        return functools.partial(self._call_later, event.call_at)

    def _call_later(self, at: Instant) -> Script:
        now = self._stage.now
        if at <= now:
            raise Refusal(
                f"You asked to be awaken in the past! (you ask: {format_seconds(at)}, it is: {format_seconds(now)})"
            )
        yield self._someone(self._waiter(at))
        self._busy["waiters"] += 1

    def _waiter(self, at: Instant) -> Script:
        if at > self._stage.now:
            yield Sleep(max(Duration(at - self._stage.now), _SHORTEST_WAIT))
        yield self._mailbox.put(self._waited)

    def _waited(self) -> Script:
        self._tell(RequestedCall(at=self._stage.now))
        self._busy["waiters"] -= 1
        yield from ()

    def _to_register_profile(self, event: RegisterProfile) -> News:
        self._check_registration("profile")
        self._workloads.register_profile(event.workload, event.name, event.profile)
        return self._nothing

    def _to_register_job(self, event: RegisterJob) -> News:
        self._check_registration("job")
        live = self._workloads.register_job(event.job_id, event.job)
        return functools.partial(self._register, live)

    def _check_registration(self, what: str) -> None:
        start = f"Invalid JSON message: dynamic {what} registration received but the option"
        if not self._options.has_dynamic_jobs:
            raise Refusal(f"{start} seems disabled... It can be activated with '--enable-dynamic-jobs'.")
        if self._is_registration_over:
            raise Refusal(f"{start} has been disabled (a registration_finished message have already been received)")

    def _register(self, live: LiveJob) -> Script:
        self._submitted += 1
        if self._options.acknowledges_dynamic_jobs:
            self._tell_of_submission(live)
        yield from ()

    def _to_heed(self, event: Notify) -> News:
        if event.kind not in _REGISTRATION:
            raise Refusal(f"Unknown NOTIFY type received ('{event.kind}').")
        return functools.partial(self._heed, _REGISTRATION[event.kind])

    def _heed(self, is_over: bool) -> Script:
        self._is_registration_over = is_over
        yield from ()

    def _to_switch(self, event: SetResourceState) -> News:
        return functools.partial(self._switch, event)

    def _switch(self, event: SetResourceState) -> Script:
        if self.power is None:
            raise Refusal(
                "Receiving a pstate modification request, which is forbidden as Batsim has not been launched with "
                "energy support (cf. batsim --help)."
            )
        if not self._machines.exist(event.machines):
            raise Refusal(f"Cannot get machine {event.machines.bit_length() - 1}: it does not exist")
        for machine, script in self.power.request(event.machines, event.state, self._stage.now):
            if script is not None:
                yield Enter(script, machine.name)
                self._busy["switches"] += 1
        self._machines.on_change(self._stage.now)

    def switched(self, machines: int, state: int, *, at_once: bool) -> None:
        """All machines of one request are in their new state."""
        if not at_once:
            self._machines.on_change(self._stage.now)
        self._tell(ResourceStateChanged(at=self._stage.now, machines=machines, state=str(state)))

    def switch_ended(self) -> None:
        """One machine is through with its switch."""
        self._busy["switches"] -= 1

    def _to_answer(self, event: Query) -> News:
        for question in event.requests:
            if question != "consumed_energy":
                raise Refusal(f"Invalid JSON message: Unknown QUERY '{question}'")
        return self._answer

    def _answer(self) -> Script:
        if self.power is None:
            raise Refusal(
                "Received a request about the energy consumption of the machines but energy simulation is not enabled. "
                "Try --help to enable it."
            )
        now = self._stage.now
        self._tell(Answer(at=now, answers={"consumed_energy": self.power.consumed(now)}))
        yield from ()

    def _to_describe(self, event: SetJobMetadata) -> News:
        return functools.partial(self._describe, event)

    def _describe(self, event: SetJobMetadata) -> Script:
        complaint = f"The job '{event.job_id}' does not exist, cannot set its metadata"
        self._registered(event.job_id, complaint).metadata = event.metadata
        yield from ()

    def _to_speak(self, event: ToJobMessage) -> News:
        return functools.partial(self._speak, event)

    def _speak(self, event: ToJobMessage) -> Script:
        complaint = f"The job '{event.job_id}' does not exist, cannot send a message to that job."
        self._registered(event.job_id, complaint).inbox.append(event.message)
        yield from ()

    def _to_change_state(self, event: ChangeJobState) -> News:
        if event.state not in _SETTABLE_STATES:
            raise Refusal(
                "Invalid JSON message: (CHANGE_JOB_STATE): ['data']['job_state'] must be one of: "
                f"{{{', '.join(_SETTABLE_STATES)}}}"
            )
        return functools.partial(self._change_state, event)

    def _change_state(self, event: ChangeJobState) -> Script:
        """Let a job count as running; Batsim 4.2.1 aborts on any final state, since it looks at the state before."""
        live = self._registered(event.job_id, f"The job '{event.job_id}' does not exist.")
        state = JobState(event.state)
        if live.state is JobState.SUBMITTED and state is JobState.RUNNING:
            live.began = self._stage.now
            live.state = state
            self._running += 1
        elif state.is_final and live.state in (JobState.SUBMITTED, JobState.RUNNING):
            raise Refusal(f"Job {live.job.name} did not complete")
        else:
            raise Refusal(f"Can only change the state of a submitted or running job. State was {live.state}")
        yield from ()


#: What Batsim calls the events about machines when it tells of them.
MACHINE_UNAVAILABLE, MACHINE_AVAILABLE = "event_machine_unavailable", "event_machine_available"
#: What a scheduler may notify of, and whether it means that no more jobs will be registered.
_REGISTRATION = {"registration_finished": True, "continue_registration": False}
_SETTABLE_STATES = (
    JobState.KILLED,
    JobState.SUCCESS,
    JobState.WALLTIME,
    JobState.NOT_SUBMITTED,
    JobState.REJECTED,
    JobState.RUNNING,
)


def _is_shared_out(profile: Profile) -> bool:
    """Return whether a profile gives totals, which any number of machines can share."""
    parts = profile.parts if isinstance(profile, Composed) else (profile,)
    return all(isinstance(part, ParallelHomogeneousTotal) for part in parts)
