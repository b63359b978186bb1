"""The requests of a scheduler: a handler for each type of event.

As in Batsim, some requests are rejected while the reply is parsed (the methods `_on_…`; JsonProtocolReader::handle_… in
src/protocol.cpp of Batsim 4.2.1), others when the server handles them (server_on_… in src/server.cpp).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from batkube.batsim.protocol.messages import (
    Answer,
    CallMeLater,
    ChangeJobState,
    Event,
    ExecuteJob,
    JobKilled,
    JsonObject,
    KillJob,
    Notify,
    Query,
    RegisterJob,
    RegisterProfile,
    RejectJob,
    RequestedCall,
    SetJobMetadata,
    SetResourceState,
    ToJobMessage,
)
from batkube.batsim.server.allocation_checks import check_machines, check_size
from batkube.batsim.server.batsim_server import BatsimServer, ServerHandler
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel, Sleep, Spawn
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.state.errors import BatsimAbort
from batkube.batsim.state.jobs import JobRegistry, JobState, LiveJob
from batkube.batsim.state.machines import Machines
from batkube.batsim.state.options import Options
from batkube.kernel.instants import Duration, Instant, format_seconds
from batkube.workloads.model import Composed, Profile

#: The shortest wait for a CALL_ME_LATER (Batsim: waiter_process in src/jobs_execution.cpp).
_SHORTEST_WAIT = Duration(10_000)
#: The types of NOTIFY that a scheduler may send, and whether the registration of jobs is then over.
_REGISTRATION = {"registration_finished": True, "continue_registration": False}
_SETTABLE_STATES = (
    JobState.KILLED,
    JobState.SUCCESS,
    JobState.WALLTIME,
    JobState.NOT_SUBMITTED,
    JobState.REJECTED,
    JobState.RUNNING,
)


class Executor(Protocol):
    """Executes jobs."""

    def run(self, live: LiveJob, execution: ExecuteJob) -> ActorCode:
        """Execute a job, and notify the server of its end unless it is killed."""

    def stop(self, live: LiveJob) -> ActorCode:
        """Kill a running job; its state is KILLED when the server is notified."""


class PowerControl(Protocol):
    """Measures the energy of machines, and switches their power states."""

    def consumed_joules(self, now: Instant) -> float:
        """Return the energy of all machines since the start of the simulation."""

    def read_meters(self) -> ActorCode:
        """Read the meters of all machines."""

    def set_state(self, machines: int, state: int) -> ActorCode:
        """Begin to switch machines to a power state."""


class SchedulerActions:
    """Handles the requests of the scheduler."""

    def __init__(
        self,
        kernel: ActorKernel,
        mailbox: Mailbox,
        options: Options,
        machines: Machines,
        registry: JobRegistry,
        server: BatsimServer,
        executor: Executor,
        power: PowerControl | None = None,
    ) -> None:
        self._kernel = kernel
        self._mailbox = mailbox
        self._options = options
        self._machines = machines
        self._registry = registry
        self._server = server
        self._executor = executor
        self._power = power
        #: Called with each job that the scheduler registers, and with each that it rejects.
        self.on_registration: Callable[[LiveJob], None] = lambda live: None
        self.on_rejection: Callable[[LiveJob], None] = lambda live: None
        self._handlers: Mapping[type[Event], Callable[..., ServerHandler]] = {
            ExecuteJob: self._on_execute,
            RejectJob: self._on_reject,
            KillJob: self._on_kill,
            CallMeLater: self._on_call_later,
            RegisterJob: self._on_register_job,
            RegisterProfile: self._on_register_profile,
            SetResourceState: self._on_set_resource_state,
            SetJobMetadata: self._on_set_metadata,
            ChangeJobState: self._on_change_state,
            ToJobMessage: self._on_message_to_job,
            Notify: self._on_notify,
            Query: self._on_query,
            Answer: self._on_answer,
        }

    def handler_for(self, event: Event) -> ServerHandler:
        """Return the server's handler of an event. Raise BatsimAbort for requests that are rejected at once."""
        return self._handlers[type(event)](event)

    def _on_execute(self, event: ExecuteJob) -> ServerHandler:
        live = self._registry.job(event.job_id)
        if event.io_job is not None:
            live.io_profile = self._io_profile(live, event.io_job)
        return functools.partial(self._execute, live, event)

    def _io_profile(self, live: LiveJob, io_job: JsonObject) -> Profile:
        """Return the profile of an additional_io_job; that of a sequence is a sequence with as many parts."""
        name, description = io_job.get("profile_name"), io_job.get("profile")
        if not isinstance(name, str) or not isinstance(description, Mapping | None):
            raise BatsimAbort(
                "Invalid JSON message: additional_io_job should contain a string 'profile_name' and, for a new "
                "profile, an object 'profile'"
            )
        profile, io_profile = live.job.profile, self._registry.io_profile(live, name, description)
        parts, io_parts = (len(one.parts) if isinstance(one, Composed) else 0 for one in (profile, io_profile))
        if parts != io_parts:
            raise BatsimAbort(
                f"the job io profile '{name}' has {io_parts} parts and the profile '{profile.name}' of the job "
                f"{parts}: they must have compatible profile in order to be merged"
            )
        return io_profile

    def _execute(self, live: LiveJob, event: ExecuteJob) -> ActorCode:
        if live.state is not JobState.SUBMITTED:
            raise BatsimAbort(f"Cannot execute job '{live.id}': its state ({live.state}) is not JOB_STATE_SUBMITTED.")
        live.state = JobState.RUNNING
        self._server.running += 1
        check_machines(self._machines, self._options, live, event)
        check_size(live, event)
        host = self._machines.first(event.machines).name
        live.actor = yield Spawn(self._executor.run(live, event), host)  # type: ignore[assignment]

    def _on_reject(self, event: RejectJob) -> ServerHandler:
        return functools.partial(self._reject, event.job_id)

    def _reject(self, job_id: str) -> ActorCode:
        live = self._registered(job_id, f"Job '{job_id}' does not exist.")
        if live.state is not JobState.SUBMITTED:
            raise BatsimAbort(
                f"Invalid rejection received: job '{job_id}' cannot be rejected at the present time. To be rejected, a "
                "job must be submitted and not allocated yet."
            )
        live.state = JobState.REJECTED
        self.on_rejection(live)
        self._server.completions += 1
        self._server.record(live)
        yield from ()

    def _registered(self, job_id: str, problem: str) -> LiveJob:
        if not self._registry.is_registered(job_id):
            raise BatsimAbort(problem)
        return self._registry.job(job_id)

    def _on_kill(self, event: KillJob) -> ServerHandler:
        return functools.partial(self._kill, event)

    def _kill(self, event: KillJob) -> ActorCode:
        """Kill jobs, except those with an earlier kill request; jobs that have ended meanwhile are reported as well."""
        targets = []
        for job_id in event.job_ids:
            live = self._registered(job_id, f"Trying to kill job '{job_id}' but it does not exist.")
            if live.is_kill_requested:
                continue
            if live.state is not JobState.RUNNING and not live.state.is_final:
                raise BatsimAbort(
                    f"Invalid KILL_JOB: job_id '{job_id}' refers to a job not being executed nor completed."
                )
            live.is_kill_requested = True
            targets.append(live)
        if targets:
            yield self._server.spawn(self._kill_jobs(targets))
            self._server.pending["killers"] += 1

    def _kill_jobs(self, targets: Iterable[LiveJob]) -> ActorCode:
        progress: dict[str, JsonObject] = {}
        for live in targets:
            if live.state is JobState.REJECTED:
                raise BatsimAbort(f"Bad kill: job {live.id} has not been started")
            if live.state is JobState.RUNNING:
                if live.progress is not None:
                    progress[live.id] = live.progress.to_json(self._kernel.now)
                yield from self._executor.stop(live)
        yield from self._mailbox.put(functools.partial(self._report_kills, targets, progress))

    def _report_kills(self, targets: Iterable[LiveJob], progress: Mapping[str, JsonObject]) -> ActorCode:
        for live in targets:
            if live.state is JobState.KILLED:
                self._server.record_end(live)
        self._server.queue_event(
            JobKilled(at=self._kernel.now, job_ids=[live.id for live in targets], progress=progress)
        )
        self._server.pending["killers"] -= 1
        yield from ()

    def _on_call_later(self, event: CallMeLater) -> ServerHandler:
        return functools.partial(self._call_later, event.call_at)

    def _call_later(self, at: Instant) -> ActorCode:
        now = self._kernel.now
        if at <= now:
            raise BatsimAbort(
                f"You asked to be awaken in the past! (you ask: {format_seconds(at)}, it is: {format_seconds(now)})"
            )
        yield self._server.spawn(self._wait_until(at))
        self._server.pending["waiters"] += 1

    def _wait_until(self, at: Instant) -> ActorCode:
        if at > self._kernel.now:
            yield Sleep(max(Duration(at - self._kernel.now), _SHORTEST_WAIT), microsteps=-self._kernel.microstep)
        yield from self._mailbox.put(self._report_call)

    def _report_call(self) -> ActorCode:
        self._server.queue_event(RequestedCall(at=self._kernel.now))
        self._server.pending["waiters"] -= 1
        yield from ()

    def _on_register_profile(self, event: RegisterProfile) -> ServerHandler:
        self._check_registration("profile")
        self._registry.register_profile(event.workload, event.name, event.profile)
        return _no_operation

    def _on_register_job(self, event: RegisterJob) -> ServerHandler:
        self._check_registration("job")
        live = self._registry.register_job(event.job_id, event.job)
        self.on_registration(live)
        return functools.partial(self._register, live)

    def _check_registration(self, kind: str) -> None:
        prefix = f"Invalid JSON message: dynamic {kind} registration received but the option"
        if not self._options.has_dynamic_jobs:
            raise BatsimAbort(f"{prefix} seems disabled... It can be activated with '--enable-dynamic-jobs'.")
        if self._server.is_registration_over:
            raise BatsimAbort(
                f"{prefix} has been disabled (a registration_finished message have already been received)"
            )

    def _register(self, live: LiveJob) -> ActorCode:
        self._server.submissions += 1
        if self._options.acknowledges_dynamic_jobs:
            self._server.report_submission(live)
        yield from ()

    def _on_notify(self, event: Notify) -> ServerHandler:
        if event.kind not in _REGISTRATION:
            raise BatsimAbort(f"Unknown NOTIFY type received ('{event.kind}').")
        return functools.partial(self._set_registration_over, _REGISTRATION[event.kind])

    def _set_registration_over(self, is_over: bool) -> ActorCode:
        self._server.is_registration_over = is_over
        yield from ()

    def _on_set_resource_state(self, event: SetResourceState) -> ServerHandler:
        return functools.partial(self._set_resource_state, event)

    def _set_resource_state(self, event: SetResourceState) -> ActorCode:
        if self._power is None:
            raise BatsimAbort(
                "Receiving a pstate modification request, which is forbidden as Batsim has not been launched with "
                "energy support (cf. batsim --help)."
            )
        if not self._machines.all_exist(event.machines):
            raise BatsimAbort(f"Cannot get machine {event.machines.bit_length() - 1}: it does not exist")
        yield from self._power.set_state(event.machines, event.state)
        self._machines.on_change(self._kernel.now)

    def _on_query(self, event: Query) -> ServerHandler:
        for name, arguments in event.requests.items():
            if name != "consumed_energy":
                raise BatsimAbort(f"Invalid JSON message: Unknown QUERY '{name}'")
            if arguments != {}:
                raise BatsimAbort(f"Invalid JSON message: the value of '{name}' in 'requests' should be empty")
        return self._answer_query

    def _on_answer(self, event: Answer) -> ServerHandler:
        """Ignore an estimated waiting time: Batsim 4.2.1 never requests one, and does not use it."""
        for name in event.answers:
            if name != "estimate_waiting_time":
                raise BatsimAbort(f"Invalid JSON message: unknown ANSWER type '{name}'")
        return _no_operation

    def _answer_query(self) -> ActorCode:
        if self._power is None:
            raise BatsimAbort(
                "Received a request about the energy consumption of the machines but energy simulation is not enabled. "
                "Try --help to enable it."
            )
        yield from self._power.read_meters()
        now = self._kernel.now
        self._server.queue_event(Answer(at=now, answers={"consumed_energy": self._power.consumed_joules(now)}))

    def _on_set_metadata(self, event: SetJobMetadata) -> ServerHandler:
        return functools.partial(self._set_metadata, event)

    def _set_metadata(self, event: SetJobMetadata) -> ActorCode:
        problem = f"The job '{event.job_id}' does not exist, cannot set its metadata"
        self._registered(event.job_id, problem).metadata = event.metadata
        yield from ()

    def _on_message_to_job(self, event: ToJobMessage) -> ServerHandler:
        return functools.partial(self._deliver_to_job, event)

    def _deliver_to_job(self, event: ToJobMessage) -> ActorCode:
        problem = f"The job '{event.job_id}' does not exist, cannot send a message to that job."
        self._registered(event.job_id, problem).inbox.append(event.message)
        yield from ()

    def _on_change_state(self, event: ChangeJobState) -> ServerHandler:
        if event.state not in _SETTABLE_STATES:
            raise BatsimAbort(
                "Invalid JSON message: (CHANGE_JOB_STATE): ['data']['job_state'] must be one of: "
                f"{{{', '.join(_SETTABLE_STATES)}}}"
            )
        return functools.partial(self._change_state, event)

    def _change_state(self, event: ChangeJobState) -> ActorCode:
        """Mark a submitted job as running. Batsim 4.2.1 aborts on final states: it requires a completed job."""
        live = self._registered(event.job_id, f"The job '{event.job_id}' does not exist.")
        state = JobState(event.state)
        if live.state is JobState.SUBMITTED and state is JobState.RUNNING:
            live.started = self._kernel.now
            live.state = state
            self._server.running += 1
        elif state.is_final and live.state in (JobState.SUBMITTED, JobState.RUNNING):
            raise BatsimAbort(f"Job {live.job.name} did not complete")
        else:
            raise BatsimAbort(f"Can only change the state of a submitted or running job. State was {live.state}")
        yield from ()


def _no_operation() -> ActorCode:
    yield from ()
