"""Executes jobs as their profiles define.

A profile is a tree of delays, parallel tasks, messages and sequences. Its execution ends with a return code: 0 or the
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
from batkube.execution.energy.log import EnergyLog
from batkube.kernel.instants import Duration, seconds
from batkube.workloads.formats.batsim.message_patterns import next_profile
from batkube.workloads.model import Composed, Delay, Profile, RawProfile

WALLTIME_REACHED, CANCELLED = -1, -2
#: The length of a job that took no time (execute_job_process: 1e-5 s).
_SHORTEST_LENGTH = Duration(10_000)
#: The default sleep time of `send` and polling interval of `recv` (src/profiles.cpp).
_SEND_DURATION, _POLL_INTERVAL = Duration(100), Duration(5_000_000)


class RemainingWalltime:
    """The remaining walltime of a job, shared by the parts of its profile."""

    def __init__(self, left: Duration | None) -> None:
        #: None without a walltime.
        self.left = left
        #: The rounding error of the end of the last task, in nanoseconds.
        self.lag = 0.0


class TaskRunner(Protocol):
    """Runs parallel tasks on a model of hosts and links."""

    def run_task(
        self,
        profile: Profile,
        live: LiveJob,
        execution: ExecuteJob,
        remaining: RemainingWalltime,
        progress: JobProgress,
    ) -> ActorRoutine:
        """Run a profile that computes or communicates until it ends, reaches its walltime or is cancelled."""

    def cancel(self, live: LiveJob) -> Simcall | None:
        """Return the simcall that cancels the running task of a job; None if no task is running."""

    def abort_replay(self, live: LiveJob) -> None:
        """Abort the trace replay of a job, if any."""

    def release_task(self, live: LiveJob) -> None:
        """Cancel the task that a job left running at its walltime, if any."""


class JobExecutor:
    """Executes jobs on machines."""

    def __init__(
        self,
        kernel: ActorKernel,
        mailbox: Mailbox,
        server: BatsimServer,
        machines: Machines,
        registry: JobRegistry,
        tasks: TaskRunner,
        energy_log: EnergyLog | None,
    ) -> None:
        self._kernel = kernel
        self._mailbox = mailbox
        self._server = server
        self._machines = machines
        self._registry = registry
        self._tasks = tasks
        self._energy_log = energy_log

    def run(self, live: LiveJob, execution: ExecuteJob, *, notifies_server: bool = True) -> ActorCode:
        """Execute a job, and notify the server of its end unless it is killed (Batsim: execute_job_process)."""
        yield from self._execute(live, execution)
        if notifies_server and live.state is not JobState.KILLED:
            yield from self._mailbox.put(functools.partial(self._server.on_job_completed, live))
        self._tasks.release_task(live)

    def _execute(self, live: LiveJob, execution: ExecuteJob) -> ActorCode:
        now = self._kernel.now
        live.started, live.machines = now, execution.machines
        live.progress = JobProgress(live.job.profile.name, live.io_profile)
        yield from self._read_meters(live)
        if self._energy_log is not None:
            self._energy_log.record_job_start(live.id, self._hosts(live), now)
        self._machines.start_job(live.id, live.machines, now)
        remaining = RemainingWalltime(live.job.walltime)
        code = yield from self._run_profile(live.job.profile, live, execution, remaining, live.progress)
        live.return_code = code
        if code < CANCELLED:
            raise BatsimAbort(f"Job '{live.id}' completed with unknown return code: {code}")
        yield from self._end(live, _state_after(code))

    def _read_meters(self, live: LiveJob) -> ActorCode:
        """Read the meters of the job's machines, then of all machines (Batsim: execute_job_process)."""
        if self._energy_log is not None:
            yield from read_meters(self._kernel, self._energy_log.meters, self._machines.select(live.machines))
            yield from read_meters(self._kernel, self._energy_log.meters, self._machines.all)

    def _end(self, live: LiveJob, state: JobState) -> ActorCode:
        now = self._kernel.now
        live.state = state
        self._machines.end_job(live.id, live.machines, now)
        live.length = Duration(now - live.started) or _SHORTEST_LENGTH
        yield from self._read_meters(live)
        if self._energy_log is not None:
            self._energy_log.record_job_end(live.id, self._hosts(live), now)
            live.joules = self._energy_log.joules_by_job.pop(live.id)

    def _hosts(self, live: LiveJob) -> list[str]:
        return [machine.name for machine in self._machines.select(live.machines)]

    def stop(self, live: LiveJob) -> ActorCode:
        """Kill a job: cancel its task, after which it ends by itself, or kill its actor (Batsim: killer_process)."""
        cancellation = self._tasks.cancel(live)
        if cancellation is not None:
            # Batsim first asks the kernel for the progress of the task (SimGrid: Exec::get_remaining_ratio).
            yield KernelCall()
            yield cancellation
            return
        self._tasks.abort_replay(live)
        if live.actor is not None:
            yield Kill(live.actor)
        yield from self._end(live, JobState.KILLED)

    def _run_profile(
        self,
        profile: Profile,
        live: LiveJob,
        execution: ExecuteJob,
        remaining: RemainingWalltime,
        progress: JobProgress,
    ) -> ActorRoutine:
        """Run a profile, and return its code (Batsim: execute_task)."""
        match profile:
            case Delay():
                progress.begin_delay(profile.duration, self._kernel.now)
                code = yield from self._wait(profile.duration, remaining)
            case Composed():
                code = yield from self._run_sequence(profile, live, execution, remaining, progress)
            case RawProfile(kind="send"):
                yield from self._mailbox.put(
                    functools.partial(self._server.on_job_message, live, profile.fields.get("msg"))
                )
                code = yield from self._wait(_duration_field(profile.fields, "sleeptime", _SEND_DURATION), remaining)
            case RawProfile(kind="recv"):
                code = yield from self._receive(profile, live, execution, remaining, progress)
            case _:
                code = yield from self._tasks.run_task(profile, live, execution, remaining, progress)
        return code or profile.ret

    def _wait(self, length: Duration, remaining: RemainingWalltime) -> ActorRoutine:
        """Sleep; a delay as long as the remaining walltime ends with WALLTIME_REACHED (Batsim: do_delay_task)."""
        if remaining.left is None or length < remaining.left:
            if length > 0:
                yield Sleep(length)
            if remaining.left:
                remaining.left = Duration(remaining.left - length)
            return 0
        if remaining.left > 0:
            yield Sleep(remaining.left)
        remaining.left = Duration(0)
        return WALLTIME_REACHED

    def _run_sequence(
        self,
        profile: Composed,
        live: LiveJob,
        execution: ExecuteJob,
        remaining: RemainingWalltime,
        progress: JobProgress,
    ) -> ActorRoutine:
        for index in range(profile.repeat * len(profile.parts)):
            part = profile.parts[index % len(profile.parts)]
            part_progress = progress.begin_part(index, part.name)
            code = yield from self._run_profile(part, live, execution, remaining, part_progress)
            if code:
                return code
        return 0

    def _receive(
        self,
        profile: RawProfile,
        live: LiveJob,
        execution: ExecuteJob,
        remaining: RemainingWalltime,
        progress: JobProgress,
    ) -> ActorRoutine:
        """Poll for a message of the scheduler, and run the profile that it selects; with `timeout`, poll once."""
        fields = profile.fields
        if not live.inbox and not fields.get("timeout"):
            while not live.inbox:
                code = yield from self._wait(_duration_field(fields, "polltime", _POLL_INTERVAL), remaining)
                if code:
                    return code
        name = next_profile(fields, live.inbox.popleft()) if live.inbox else str(fields.get("timeout", ""))
        if not name:
            return 0
        selected = self._registry.profile(live.job.workload, name)
        if selected is None:
            raise BatsimAbort(
                f"Cannot execute job {live.id}: its profile '{profile.name}' continues with '{name}', which does not "
                "exist or was removed; use it in a job as well: Batsim removes profiles that no job uses"
            )
        selected_progress = progress.begin_selected_profile(selected.name)
        return (yield from self._run_profile(selected, live, execution, remaining, selected_progress))


def _duration_field(fields: Mapping[str, Json], key: str, default: Duration) -> Duration:
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return default
    return seconds(value)


def _state_after(code: int) -> JobState:
    if code == CANCELLED:
        return JobState.KILLED
    if code == WALLTIME_REACHED:
        return JobState.WALLTIME
    return JobState.FAILED if code else JobState.SUCCESS
