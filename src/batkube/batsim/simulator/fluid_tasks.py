"""Runs the parallel tasks of jobs on the fluid model of hosts and links.

A profile that computes or communicates is one parallel task: flops per executor, and bytes between each two executors.
A usage trace is replayed as many small tasks (`trace_replay.py`). The executors are the machines of the allocation, or
those of the scheduler's mapping.

Imitated: Batsim 4.2.1, src/task_execution.cpp.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path

from batkube.batsim.protocol.messages import ExecuteJob
from batkube.batsim.simgrid.actors import Activity, Actor, ActorKernel, ActorRoutine, KernelCall, Simcall
from batkube.batsim.simulator.job_executor import CANCELLED, WALLTIME_REACHED, RemainingWalltime
from batkube.batsim.simulator.trace_replay import TraceReplay
from batkube.batsim.state.errors import BatsimAbort
from batkube.batsim.state.jobs import LiveJob
from batkube.batsim.state.machines import Machines
from batkube.batsim.state.progress import JobProgress
from batkube.execution.energy.meters import EnergyMeters
from batkube.execution.profiles.fluid_platform import FluidPlatform
from batkube.execution.profiles.processes import ProfileProcess, ProfileProcesses
from batkube.execution.profiles.task_shapes import TaskShape, UnsupportedProfile, shape_of
from batkube.fluid.flow import Flow
from batkube.fluid.tasks import Task
from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, Instant
from batkube.kernel.intervals import parse_intervals
from batkube.platforms.network import Network
from batkube.workloads.formats.batsim.usage_traces import USAGE_TRACE, UsageTraces
from batkube.workloads.model import Profile, RawProfile


class FluidTasks:
    """Runs the tasks of jobs."""

    def __init__(self, kernel: ActorKernel, network: Network, machines: Machines, folders: Mapping[str, Path]) -> None:
        """`folders` are those of the workload files, by workload: the paths of traces are relative to them."""
        self._kernel = kernel
        self._folders = folders
        self._machines = machines
        self._storages = {machine.name: machine.id for machine in machines.all if machine.is_storage}
        self._flow = Flow()
        self.platform = FluidPlatform(network, self._flow)
        #: The energy meters, with energy accounting.
        self.meters: EnergyMeters | None = None
        #: The microstep and the number of the start of each running task.
        self._started: dict[Task, tuple[int, int]] = {}
        #: The actor that waits for each running task, and the activity that ends the wait at the walltime.
        self._waiting: dict[Task, tuple[Actor, Activity | None]] = {}
        #: The running task of each job, by job id.
        self._tasks: dict[str, Task] = {}
        self._traces = UsageTraces()
        #: The running replay of each job, by job id.
        self._replays: dict[str, TraceReplay] = {}

    # The activity model of the kernel

    def due(self) -> Instant | None:
        """Return when the next task ends, according to what is known now."""
        return self._flow.due()

    def complete_due(self, now: Instant) -> Iterator[tuple[int, int, Callable[[], None]]]:
        """End the tasks that are due: yield the microstep and number of their start, and the action at their end."""
        for task in self._flow.advance(now, self._end_task):
            yield *self._started.pop(task), functools.partial(self._resume_waiter, task)

    def _resume_waiter(self, task: Task) -> None:
        actor = self._pop_waiter(task)
        if actor is not None:
            self._kernel.resume(actor, 0)

    def _pop_waiter(self, task: Task) -> Actor | None:
        """End the wait for a task, and return the actor that waited, if any."""
        actor, timeout = self._waiting.pop(task, (None, None))
        if timeout is not None:
            timeout.is_over = True
        return actor

    def _end_task(self, task: Task, now: Instant) -> None:
        if self.meters is not None:
            self.meters.end_task(task, now)

    def update(self, now: Instant) -> None:
        """Recompute the rates of tasks, and so their end dates, after the changes of this instant."""
        self._flow.update_rates(now)

    # Tasks of jobs

    def run_task(
        self,
        profile: Profile,
        live: LiveJob,
        execution: ExecuteJob,
        remaining: RemainingWalltime,
        progress: JobProgress,
    ) -> ActorRoutine:
        """Run a profile that computes or communicates until it ends, reaches its walltime or is cancelled."""
        started = self._kernel.now
        if isinstance(profile, RawProfile) and profile.kind == USAGE_TRACE:
            code = yield _AwaitReplay(self, live, self._trace_process(profile, live, execution), remaining.left)
        else:
            shape = self._shape(profile, live, execution, progress.io_profile)
            task = self.platform.new_task(f"{live.id} {profile.name}", *shape)
            task.lag = remaining.lag
            yield from _prepare_task()
            progress.begin_task(task.progress)
            self._tasks[live.id] = task
            yield KernelCall(functools.partial(self._start_task, task))
            code = yield _AwaitTask(self, task, remaining.left)
            remaining.lag = task.lag
            if code != WALLTIME_REACHED:
                del self._tasks[live.id]
        if remaining.left is not None:
            remaining.left = Duration(remaining.left - (self._kernel.now - started))
        assert isinstance(code, int)
        return code

    def cancel(self, live: LiveJob) -> Simcall | None:
        """Return the simcall that cancels the running task of a job; None if no task is running."""
        task = self._tasks.get(live.id)
        return None if task is None else _AbortTask(self, task)

    def release_task(self, live: LiveJob) -> None:
        """Cancel the task that a job left running at its walltime.

        It runs until the job has notified the server, which takes time on a network. (SimGrid: a wait that times out
        does not cancel its activity; the activities of an actor are cancelled when it ends.)
        """
        task = self._tasks.pop(live.id, None)
        if task is not None:
            self._cancel(task)

    def _run_trace_task(self, task: Task) -> ActorRoutine:
        yield from _prepare_task()
        yield KernelCall(functools.partial(self._start_task, task))
        return (yield _AwaitTask(self, task, None))  # type: ignore[return-value]

    def _start_task(self, task: Task) -> None:
        now = self._kernel.now
        self._started[task] = self._kernel.microstep, self._kernel.next_number()
        if self.meters is not None:
            self.meters.begin_task(task, now)
        self._flow.begin(task, now)

    def wait(self, task: Task, actor: Actor, limit: Duration | None) -> None:
        """Resume an actor when a task ends, at the latest after `limit`."""
        timeout = None
        if limit is not None:
            timeout = self._kernel.book(
                Instant(self._kernel.now + limit), functools.partial(self._on_walltime, task, actor.host)
            )
        self._waiting[task] = actor, timeout

    def _on_walltime(self, task: Task, host: str) -> None:
        self._kernel.report_host_activity_end(host)
        actor = self._pop_waiter(task)
        if actor is not None:
            self._kernel.resume(actor, WALLTIME_REACHED)

    def abort_task(self, task: Task) -> None:
        """Cancel a task unless it has ended, and resume the actor that waits for it with CANCELLED."""
        actor = self._pop_waiter(task)
        if actor is not None:
            self._cancel(task)
            self._kernel.resume(actor, CANCELLED)

    def _cancel(self, task: Task) -> None:
        if self._started.pop(task, None) is not None:
            self._end_task(task, self._kernel.now)
            self._flow.cancel(task, self._kernel.now)

    def start_replay(self, live: LiveJob, process: ProfileProcess, actor: Actor, limit: Duration | None) -> None:
        """Start a trace replay, and resume an actor when it ends, at the latest after `limit`."""
        now = self._kernel.now

        def end(code: int) -> None:
            del self._replays[live.id]
            self._kernel.resume(actor, code)

        def on_walltime() -> None:
            if self._replays.get(live.id) is replay:
                replay.stop()
                end(WALLTIME_REACHED)

        replay = TraceReplay(self._kernel, actor.host, self._run_trace_task, self._abort_awaited_task)
        self._replays[live.id] = replay
        replay.start(process, end)
        if limit is not None:
            self._kernel.book(Instant(now + limit), on_walltime)

    def abort_replay(self, live: LiveJob) -> None:
        """Abort the trace replay of a job, if any."""
        replay = self._replays.pop(live.id, None)
        if replay is not None:
            replay.stop()

    def _abort_awaited_task(self, actor: Actor) -> None:
        """Cancel the task that an actor waits for; the actor is about to be killed."""
        for task in [task for task, (waiting, _) in self._waiting.items() if waiting is actor]:
            self._pop_waiter(task)
            self._cancel(task)

    # Tasks of profiles

    def _executor_hosts(self, execution: ExecuteJob) -> list[str]:
        names = [machine.name for machine in self._machines.select(execution.machines)]
        return names if execution.mapping is None else [names[position] for position in execution.mapping]

    def _trace_process(self, profile: RawProfile, live: LiveJob, execution: ExecuteJob) -> ProfileProcess:
        """Return the process that replays a usage trace.

        The path of a trace is relative to the workload file, or to the working directory for registered profiles.
        """
        try:
            self._traces.load(profile, self._folders.get(live.job.workload, Path()))
        except InputError as error:
            raise BatsimAbort(f"Cannot execute job {live.id}: {error}") from None
        hosts, count = self._executor_hosts(execution), len(self._traces.trace(profile))
        live.ranks = live.ranks or _rank_positions(live, count, len(hosts))
        if len(live.ranks) != count:
            raise BatsimAbort(
                f"Invalid job {live.id}: SMPI ranks_to_host mapping has an invalid size, as it should use {count} MPI "
                f"ranks but the ranking states that there are {len(live.ranks)} ranks."
            )
        processes = ProfileProcesses(
            self.platform, functools.partial(self._storage_host, execution.storage), self._traces.trace
        )
        return processes.process(profile, [hosts[position] for position in live.ranks])

    def _shape(self, profile: Profile, live: LiveJob, execution: ExecuteJob, io_profile: Profile | None) -> TaskShape:
        """Return the task of a profile, merged with that of an I/O profile (Batsim: execute_parallel_task)."""
        storage_host = functools.partial(self._storage_host, execution.storage)
        try:
            shape = shape_of(profile, self._executor_hosts(execution), storage_host)
            if io_profile is not None:
                shape = _merge_shapes(shape, shape_of(io_profile, self._io_hosts(execution), _no_storage))
        except UnsupportedProfile as error:
            raise BatsimAbort(f"Cannot execute job {live.id}: its profile '{profile.name}' {error}") from None
        self._check_permissions(shape)
        return shape

    def _check_permissions(self, shape: TaskShape) -> None:
        """Reject computations on storage hosts (Batsim: check_ptask_execution_permission)."""
        for name, flops in zip(shape.hosts, shape.flops, strict=True) if self._storages else ():
            if name in self._storages and flops > 0:
                raise BatsimAbort(
                    f"Some computation ({flops:g}) is assigned to storage node (id={self._storages[name]}, "
                    f"name='{name}')"
                )

    def _io_hosts(self, execution: ExecuteJob) -> list[str]:
        """Return the hosts of the additional_io_job."""
        machines = parse_intervals(str((execution.io_job or {}).get("alloc", "")))
        if not machines or not self._machines.all_exist(machines):
            raise BatsimAbort("Invalid JSON message: bad IO allocation")
        return [machine.name for machine in self._machines.select(machines)]

    def _storage_host(self, storage: Mapping[str, int] | None, label: str) -> str:
        """Return the storage host of a label; without a mapping, the only storage host."""
        if not storage:
            if len(self._storages) != 1:
                raise BatsimAbort(
                    "No storage/host mapping given and there is no (or more than one) storage node available"
                )
            return next(iter(self._storages))
        if label not in storage:
            raise BatsimAbort(f"Unknown storage label='{label}'")
        name = next((name for name, number in self._storages.items() if number == storage[label]), None)
        if name is None:
            raise BatsimAbort(f"The host(id={storage[label]}) pointed to by label='{label}' is not a storage host")
        return name


def _rank_positions(live: LiveJob, count: int, hosts: int) -> Sequence[int]:
    """Return the position of each trace process in the allocation: the mapping of the job, or round-robin."""
    positions = live.description.get("smpi_ranks_to_hosts_mapping")
    if positions is None:
        return [rank % hosts for rank in range(count)]
    if isinstance(positions, list) and all(isinstance(one, int) and 0 <= one < hosts for one in positions):
        return positions
    raise BatsimAbort(f"job '{live.id}' has a bad 'smpi_ranks_to_hosts_mapping' field: {positions}")


def _no_storage(label: str) -> str:
    """Reject storage in an additional_io_job: execute_parallel_task passes it no storage mapping."""
    raise BatsimAbort("storage mapping is null but the code uses it! (an additional_io_job uses no storage)")


def _merge_shapes(one: TaskShape, other: TaskShape) -> TaskShape:
    """Return the sum of two tasks, on the hosts of both."""
    hosts = list(dict.fromkeys([*one.hosts, *other.hosts]))
    positions, count = {name: position for position, name in enumerate(hosts)}, len(hosts)
    flops, sent_bytes = [0.0] * count, [0.0] * (count * count)
    for shape in (one, other):
        for name, amount in zip(shape.hosts, shape.flops, strict=True):
            flops[positions[name]] += amount
        for index, amount in enumerate(shape.sent_bytes):
            row, column = divmod(index, len(shape.hosts))
            sent_bytes[positions[shape.hosts[row]] * count + positions[shape.hosts[column]]] += amount
    return TaskShape(hosts, flops, sent_bytes)


def _prepare_task() -> Generator[Simcall, object, None]:
    """Set the flops, the bytes and the hosts of a task, a round each (SimGrid: this_actor::exec_init)."""
    for _ in range(3):
        yield KernelCall()


class _AwaitTask:
    """Wait for a task, at most for `limit`."""

    __slots__ = ("_limit", "_task", "_tasks")

    def __init__(self, tasks: FluidTasks, task: Task, limit: Duration | None) -> None:
        self._tasks = tasks
        self._task = task
        self._limit = limit

    def handle(self, kernel: ActorKernel, actor: Actor) -> None:
        """Begin to wait."""
        self._tasks.wait(self._task, actor, self._limit)


class _AwaitReplay:
    """Replay a trace, at most for `limit`."""

    __slots__ = ("_limit", "_live", "_process", "_tasks")

    def __init__(self, tasks: FluidTasks, live: LiveJob, process: ProfileProcess, limit: Duration | None) -> None:
        self._tasks = tasks
        self._live = live
        self._process = process
        self._limit = limit

    def handle(self, kernel: ActorKernel, actor: Actor) -> None:
        """Start the replay."""
        self._tasks.start_replay(self._live, self._process, actor, self._limit)


class _AbortTask:
    """Cancel a task."""

    __slots__ = ("_task", "_tasks")

    def __init__(self, tasks: FluidTasks, task: Task) -> None:
        self._tasks = tasks
        self._task = task

    def handle(self, kernel: ActorKernel, actor: Actor) -> None:
        """Cancel the task."""
        self._tasks.abort_task(self._task)
        kernel.resume(actor)
