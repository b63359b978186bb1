"""Jobs, carried out as their profiles say.

A profile is a tree of delays, parallel tasks, messages and sequences of such. It ends with a return code: 0, the
profile's `ret`, -1 at the walltime, -2 for a parallel task that was cancelled because its job is killed. A sequence
ends with the first part whose code is not 0.

Imitated: Batsim 4.2.1, src/jobs_execution.cpp.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from decimal import Decimal
from typing import Protocol

from batkube.batsim.protocol.messages import ExecuteJob, Json
from batkube.batsim.server.batsim_server import BatsimServer
from batkube.batsim.server.meter_reads import read_meters
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel, ActorRoutine, KernelCall, Kill, Simcall, Sleep
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.state.errors import BatsimAbort
from batkube.batsim.state.jobs import JobRegistry, JobState, LiveJob
from batkube.batsim.state.machines import Machines
from batkube.batsim.state.progress import JobProgress
from batkube.execution.profiles.energy_log import EnergyLog
from batkube.kernel.instants import Duration, seconds
from batkube.workloads.formats.batsim.message_patterns import next_profile
from batkube.workloads.model import Composed, Delay, Profile, RawProfile

WALLTIME_REACHED, CANCELLED = -1, -2
#: What a job counts as long that took no time (Batsim: execute_job_process).
_SHORTEST_LENGTH = Duration(10_000)
#: How long `send` takes, and how often `recv` looks, unless their profiles say.
_SEND_DURATION, _POLL_INTERVAL = Duration(100), Duration(5_000_000)


class RemainingWalltime:
    """What is left of a job's walltime."""

    def __init__(self, left: Duration | None) -> None:
        #: None without limit.
        self.left = left
        #: What was rounded off the end of the job's last task, in nanoseconds.
        self.lag = 0.0


class TaskRunner(Protocol):
    """The model of hosts and links that parallel tasks run on."""

    def run_task(
        self,
        profile: Profile,
        live: LiveJob,
        execution: ExecuteJob,
        allowance: RemainingWalltime,
        progress: JobProgress,
    ) -> ActorRoutine:
        """Run a profile that computes or communicates, to its end, its walltime or until it is cancelled."""

    def cancel(self, live: LiveJob) -> Simcall | None:
        """Return the wish that what a job computes is cancelled; None when it is not computing."""

    def abort_replay(self, live: LiveJob) -> None:
        """Break off what a job replays, if it does."""

    def release_task(self, live: LiveJob) -> None:
        """Break off what a job left behind at its walltime, if it did."""


class JobExecutor:
    """Carries jobs out on machines."""

    def __init__(
        self,
        scene: ActorKernel,
        mailbox: Mailbox,
        server: BatsimServer,
        machines: Machines,
        workloads: JobRegistry,
        tasks: TaskRunner | None,
        book: EnergyLog | None,
    ) -> None:
        self._scene = scene
        self._mailbox = mailbox
        self._server = server
        self._machines = machines
        self._workloads = workloads
        self._tasks = tasks
        self._book = book

    def run(self, live: LiveJob, execution: ExecuteJob, *, is_told: bool = True) -> ActorCode:
        """Carry a job out, and have the server told of its end, if it is to be, unless it is killed."""
        yield from self._execute(live, execution)
        if is_told and live.state is not JobState.KILLED:
            yield from self._mailbox.put(functools.partial(self._server.on_job_completed, live))
        if self._tasks is not None:
            self._tasks.release_task(live)

    def _execute(self, live: LiveJob, execution: ExecuteJob) -> ActorCode:
        now = self._scene.now
        live.started, live.machines = now, execution.machines
        live.progress = JobProgress(live.job.profile.name, live.io_profile)
        yield from self._read_meters(live)
        if self._book is not None:
            self._book.record_job_start(live.id, self._hosts(live), now)
        self._machines.start_job(live.id, live.machines, now)
        allowance = RemainingWalltime(live.job.walltime)
        code = yield from self._run_profile(live.job.profile, live, execution, allowance, live.progress)
        live.return_code = code
        if code < CANCELLED:
            raise BatsimAbort(f"Job '{live.id}' completed with unknown return code: {code}")
        yield from self._end(live, _state_after(code))

    def _read_meters(self, live: LiveJob) -> ActorCode:
        """Have the meters read of the job's machines, and then of all (Batsim: execute_job_process)."""
        if self._book is not None:
            yield from read_meters(self._scene, self._book.meters, self._machines.select(live.machines))
            yield from read_meters(self._scene, self._book.meters, self._machines.all)

    def _end(self, live: LiveJob, state: JobState) -> ActorCode:
        now = self._scene.now
        live.state = state
        self._machines.end_job(live.id, live.machines, now)
        live.length = Duration(now - live.started) or _SHORTEST_LENGTH
        yield from self._read_meters(live)
        if self._book is not None:
            self._book.record_job_end(live.id, self._hosts(live), now)
            live.energy = self._book.joules_by_job.pop(live.id)

    def _hosts(self, live: LiveJob) -> list[str]:
        return [machine.name for machine in self._machines.select(live.machines)]

    def stop(self, live: LiveJob) -> ActorCode:
        """Stop a job: what computes is cancelled and ends by itself, whatever else it does is cut off."""
        cancellation = None if self._tasks is None else self._tasks.cancel(live)
        if cancellation is not None:
            # Before, the kernel is asked how far it has come (SimGrid: Exec::get_remaining_ratio).
            yield KernelCall()
            yield cancellation
            return
        if self._tasks is not None:
            self._tasks.abort_replay(live)
        if live.actor is not None:
            yield Kill(live.actor)
        yield from self._end(live, JobState.KILLED)

    def _run_profile(
        self,
        profile: Profile,
        live: LiveJob,
        execution: ExecuteJob,
        allowance: RemainingWalltime,
        progress: JobProgress,
    ) -> ActorRoutine:
        match profile:
            case Delay():
                progress.begin_delay(profile.duration, self._scene.now)
                code = yield from self._wait(profile.duration, allowance)
            case Composed():
                code = yield from self._sequence(profile, live, execution, allowance, progress)
            case RawProfile(kind="send"):
                yield from self._mailbox.put(
                    functools.partial(self._server.on_job_message, live, profile.fields.get("msg"))
                )
                code = yield from self._wait(_duration_field(profile.fields, "sleeptime", _SEND_DURATION), allowance)
            case RawProfile(kind="recv"):
                code = yield from self._receive(profile, live, execution, allowance, progress)
            case _ if self._tasks is None:
                kind = profile.kind if isinstance(profile, RawProfile) else type(profile).__name__
                raise BatsimAbort(
                    f"Cannot execute job {live.id}: the profile '{profile.name}' ({kind}) is not modelled"
                )
            case _:
                code = yield from self._tasks.run_task(profile, live, execution, allowance, progress)
        return code or profile.ret

    def _wait(self, length: Duration, allowance: RemainingWalltime) -> ActorRoutine:
        """Let time pass; a walltime that is as long as the delay is reached (Batsim: do_delay_task)."""
        if allowance.left is None or length < allowance.left:
            if length > 0:
                yield Sleep(length)
            if allowance.left:
                allowance.left = Duration(allowance.left - length)
            return 0
        if allowance.left > 0:
            yield Sleep(allowance.left)
        allowance.left = Duration(0)
        return WALLTIME_REACHED

    def _sequence(
        self,
        profile: Composed,
        live: LiveJob,
        execution: ExecuteJob,
        allowance: RemainingWalltime,
        progress: JobProgress,
    ) -> ActorRoutine:
        for index in range(profile.repeat * len(profile.parts)):
            part = profile.parts[index % len(profile.parts)]
            inner = progress.begin_part(index, part.name)
            code = yield from self._run_profile(part, live, execution, allowance, inner)
            if code:
                return code
        return 0

    def _receive(
        self,
        profile: RawProfile,
        live: LiveJob,
        execution: ExecuteJob,
        allowance: RemainingWalltime,
        progress: JobProgress,
    ) -> ActorRoutine:
        """Look for a message of the scheduler, and go on with the profile that its answer chooses."""
        fields = profile.fields
        if not live.inbox and not fields.get("timeout"):
            while not live.inbox:
                code = yield from self._wait(_duration_field(fields, "polltime", _POLL_INTERVAL), allowance)
                if code:
                    return code
        name = next_profile(fields, live.inbox.popleft()) if live.inbox else str(fields.get("timeout", ""))
        if not name:
            return 0
        chosen = self._workloads.profile(live.job.workload, name)
        if chosen is None:
            raise BatsimAbort(
                f"Cannot execute job {live.id}: the profile '{name}', which its profile '{profile.name}' goes on with, "
                "is not there; profiles that only others name are collected unless some job uses them"
            )
        inner = progress.begin_chosen_profile(chosen.name)
        return (yield from self._run_profile(chosen, live, execution, allowance, inner))


def _duration_field(fields: Mapping[str, Json], key: str, otherwise: Duration) -> Duration:
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return otherwise
    return seconds(value)


def _state_after(code: int) -> JobState:
    if code == CANCELLED:
        return JobState.KILLED
    if code == WALLTIME_REACHED:
        return JobState.WALLTIME
    return JobState.FAILED if code else JobState.SUCCESS
