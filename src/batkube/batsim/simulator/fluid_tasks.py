"""Parallel tasks of jobs, on the fluid model of hosts and links.

A profile that computes or communicates becomes one parallel task: flops for each of its executors, bytes from each to
each; a usage trace is replayed as many small ones (`replays`). Executors are the machines of the allocation, or what
the scheduler maps onto them.

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
from batkube.execution.profiles.energy_meters import EnergyMeters
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
    """Runs the tasks of jobs, and tells when they end."""

    def __init__(self, scene: ActorKernel, network: Network, machines: Machines, folders: Mapping[str, Path]) -> None:
        """`folders` has the folder of each workload's file: traces are named relative to it."""
        self._scene = scene
        self._folders = folders
        self._machines = machines
        self._storages = {machine.name: machine.id for machine in machines.all if machine.is_storage}
        self._flow = Flow()
        self.platform = FluidPlatform(network, self._flow)
        #: Who counts what tasks cost, where energy is counted.
        self.meters: EnergyMeters | None = None
        #: Of tasks that go on: the moments and numbers of their beginnings; who waits for which, and what ends the
        #: waiting; and those of jobs.
        self._started: dict[Task, tuple[int, int]] = {}
        self._waiting: dict[Task, tuple[Actor, Activity | None]] = {}
        self._tasks: dict[str, Task] = {}
        self._traces = UsageTraces()
        self._replays: dict[str, TraceReplay] = {}

    # What the scene asks

    def due(self) -> Instant | None:
        """Return when something ends next, as far as is known."""
        return self._flow.due()

    def complete_due(self, now: Instant) -> Iterator[tuple[int, int, Callable[[], None]]]:
        """Let end what is due: yield the moment and number of each task, and that who waits for it goes on."""
        for task in self._flow.advance(now, self._end_task):
            yield *self._started.pop(task), functools.partial(self._resume_waiter, task)

    def _resume_waiter(self, task: Task) -> None:
        actor = self._pop_waiter(task)
        if actor is not None:
            self._scene.resume(actor, 0)

    def _pop_waiter(self, task: Task) -> Actor | None:
        """Return who waits for a task, and waits no more."""
        actor, limit = self._waiting.pop(task, (None, None))
        if limit is not None:
            limit.is_over = True
        return actor

    def _end_task(self, task: Task, now: Instant) -> None:
        if self.meters is not None:
            self.meters.end_task(task, now)

    def update(self, now: Instant) -> None:
        """Work out what the acts of this instant mean for the dates."""
        self._flow.update_rates(now)

    # What jobs ask

    def run_task(
        self,
        profile: Profile,
        live: LiveJob,
        execution: ExecuteJob,
        allowance: RemainingWalltime,
        progress: JobProgress,
    ) -> ActorRoutine:
        """Run a profile that computes or communicates, to its end, its walltime or until it is cancelled."""
        began = self._scene.now
        if isinstance(profile, RawProfile) and profile.kind == USAGE_TRACE:
            code = yield _AwaitReplay(self, live, self._script(profile, live, execution), allowance.left)
        else:
            shape = self._shape(profile, live, execution, progress.io_profile)
            task = self.platform.new_task(f"{live.id} {profile.name}", *shape)
            task.lag = allowance.lag
            yield from _prepare_task()
            progress.begin_task(task.progress)
            self._tasks[live.id] = task
            yield KernelCall(functools.partial(self._start_task, task))
            code = yield _AwaitTask(self, task, allowance.left)
            allowance.lag = task.lag
            if code != WALLTIME_REACHED:
                del self._tasks[live.id]
        if allowance.left is not None:
            allowance.left = Duration(allowance.left - (self._scene.now - began))
        assert isinstance(code, int)
        return code

    def cancel(self, live: LiveJob) -> Simcall | None:
        """Return the wish that what a job computes is cancelled; None when it is not computing."""
        task = self._tasks.get(live.id)
        return None if task is None else _AbortTask(self, task)

    def release_task(self, live: LiveJob) -> None:
        """Break off the task that a job left behind at its walltime.

        It goes on until the job has told of its end, which takes time on a network (SimGrid: a wait that times out
        leaves its activity alone, and an actor's activities are cancelled when it ends).
        """
        task = self._tasks.pop(live.id, None)
        if task is not None:
            self._cancel(task)

    def _run_trace_task(self, task: Task) -> ActorRoutine:
        """Run a task of a trace."""
        yield from _prepare_task()
        yield KernelCall(functools.partial(self._start_task, task))
        return (yield _AwaitTask(self, task, None))  # type: ignore[return-value]

    def _start_task(self, task: Task) -> None:
        now = self._scene.now
        self._started[task] = self._scene.moment, self._scene.next_number()
        if self.meters is not None:
            self.meters.begin_task(task, now)
        self._flow.begin(task, now)

    def wait(self, task: Task, actor: Actor, limit: Duration | None) -> None:
        """Let an actor wait for a task, at most for `limit`."""
        end = None
        if limit is not None:
            end = self._scene.book(
                Instant(self._scene.now + limit), functools.partial(self._on_walltime, task, actor.host)
            )
        self._waiting[task] = actor, end

    def _on_walltime(self, task: Task, host: str) -> None:
        self._scene.report_host_activity_end(host)
        actor = self._pop_waiter(task)
        if actor is not None:
            self._scene.resume(actor, WALLTIME_REACHED)

    def abort_task(self, task: Task) -> None:
        """End a task before it is through, unless it is: who waited for it hears that it was cancelled."""
        actor = self._pop_waiter(task)
        if actor is not None:
            self._cancel(task)
            self._scene.resume(actor, CANCELLED)

    def _cancel(self, task: Task) -> None:
        if self._started.pop(task, None) is not None:
            self._end_task(task, self._scene.now)
            self._flow.cancel(task, self._scene.now)

    def start_replay(self, live: LiveJob, script: ProfileProcess, actor: Actor, limit: Duration | None) -> None:
        """Begin to replay what an actor waits for, at most for `limit`."""
        now = self._scene.now

        def end(code: int) -> None:
            del self._replays[live.id]
            self._scene.resume(actor, code)

        def end_early() -> None:
            if self._replays.get(live.id) is replay:
                replay.stop()
                end(WALLTIME_REACHED)

        replay = TraceReplay(self._scene, actor.host, self._run_trace_task, self._abort_awaited_task)
        self._replays[live.id] = replay
        replay.start(script, end)
        if limit is not None:
            self._scene.book(Instant(now + limit), end_early)

    def abort_replay(self, live: LiveJob) -> None:
        """Break off what a job replays, if it does."""
        replay = self._replays.pop(live.id, None)
        if replay is not None:
            replay.stop()

    def _abort_awaited_task(self, actor: Actor) -> None:
        """Break off the task that an actor waits for, who goes."""
        for task in [task for task, (waiting, _) in self._waiting.items() if waiting is actor]:
            self._pop_waiter(task)
            self._cancel(task)

    # What profiles mean

    def _hosts(self, execution: ExecuteJob) -> list[str]:
        names = [machine.name for machine in self._machines.select(execution.machines)]
        return names if execution.mapping is None else [names[place] for place in execution.mapping]

    def _script(self, profile: RawProfile, live: LiveJob, execution: ExecuteJob) -> ProfileProcess:
        """Return how a usage trace is replayed; a job that the scheduler registered names it from where we are."""
        try:
            self._traces.load(profile, self._folders.get(live.job.workload, Path()))
        except InputError as error:
            raise BatsimAbort(f"Cannot execute job {live.id}: {error}") from None
        hosts = self._hosts(execution)
        live.ranks = live.ranks or _rank_hosts(live, len(self._traces.trace(profile)), len(hosts))
        if len(live.ranks) != len(self._traces.trace(profile)):
            raise BatsimAbort(
                f"Invalid job {live.id}: SMPI ranks_to_host mapping has an invalid size, as it should use "
                f"{len(self._traces.trace(profile))} MPI ranks but the ranking states that there are {len(live.ranks)} "
                "ranks."
            )
        scripts = ProfileProcesses(
            self.platform, functools.partial(self._storage_host, execution.storage), self._traces.trace
        )
        return scripts.process(profile, [hosts[place] for place in live.ranks])

    def _shape(self, profile: Profile, live: LiveJob, execution: ExecuteJob, beside: Profile | None) -> TaskShape:
        try:
            shape = shape_of(profile, self._hosts(execution), functools.partial(self._storage_host, execution.storage))
            if beside is not None:
                shape = _merge_shapes(shape, shape_of(beside, self._io_hosts(execution), _no_storage))
        except UnsupportedProfile as error:
            raise BatsimAbort(f"Cannot execute job {live.id}: its profile '{profile.name}' {error}") from None
        self._check_permissions(shape)
        return shape

    def _check_permissions(self, shape: TaskShape) -> None:
        """Refuse to compute where things are stored (Batsim: check_ptask_execution_permission)."""
        for name, flops in zip(shape.hosts, shape.flops, strict=True) if self._storages else ():
            if name in self._storages and flops > 0:
                where = f"id={self._storages[name]}, name='{name}'"
                raise BatsimAbort(f"Some computation ({flops:g}) is assigned to storage node ({where})")

    def _io_hosts(self, execution: ExecuteJob) -> list[str]:
        """Return the hosts of the profile that runs beside a job's own."""
        machines = parse_intervals(str((execution.io_job or {}).get("alloc", "")))
        if not machines or not self._machines.all_exist(machines):
            raise BatsimAbort("Invalid JSON message: bad IO allocation")
        return [machine.name for machine in self._machines.select(machines)]

    def _storage_host(self, storage: Mapping[str, int] | None, label: str) -> str:
        """Return the host that a label means; the only one where the scheduler says nothing."""
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


def _rank_hosts(live: LiveJob, count: int, hosts: int) -> Sequence[int]:
    """Return on which of its hosts each process of a trace is: as the job says, or in turn."""
    places = live.description.get("smpi_ranks_to_hosts_mapping")
    if places is None:
        return [rank % hosts for rank in range(count)]
    if isinstance(places, list) and all(isinstance(place, int) and 0 <= place < hosts for place in places):
        return places
    raise BatsimAbort(f"job '{live.id}' has a bad 'smpi_ranks_to_hosts_mapping' field: {places}")


def _no_storage(label: str) -> str:
    """Refuse a storage to what runs beside a job (Batsim: execute_parallel_task passes none on)."""
    raise BatsimAbort("storage mapping is null but the code uses it! (an additional_io_job uses no storage)")


def _merge_shapes(one: TaskShape, other: TaskShape) -> TaskShape:
    """Return two shapes as one task on the hosts of both."""
    hosts = list(dict.fromkeys([*one.hosts, *other.hosts]))
    place, count = {name: number for number, name in enumerate(hosts)}, len(hosts)
    flops, sent_bytes = [0.0] * count, [0.0] * (count * count)
    for shape in (one, other):
        for name, amount in zip(shape.hosts, shape.flops, strict=True):
            flops[place[name]] += amount
        for position, amount in enumerate(shape.sent_bytes):
            row, column = divmod(position, len(shape.hosts))
            sent_bytes[place[shape.hosts[row]] * count + place[shape.hosts[column]]] += amount
    return TaskShape(hosts, flops, sent_bytes)


def _prepare_task() -> Generator[Simcall, object, None]:
    """Say what a task does: its flops, its bytes and its hosts (SimGrid: s4u::this_actor::exec_init)."""
    for _ in range(3):
        yield KernelCall()


class _AwaitTask:
    """Wait for a task, at most for a while."""

    __slots__ = ("_limit", "_task", "_tasks")

    def __init__(self, tasks: FluidTasks, task: Task, limit: Duration | None) -> None:
        self._tasks = tasks
        self._task = task
        self._limit = limit

    def handle(self, scene: ActorKernel, actor: Actor) -> None:
        """Wait from now on."""
        self._tasks.wait(self._task, actor, self._limit)


class _AwaitReplay:
    """Wait for a replay, at most for a while."""

    __slots__ = ("_limit", "_live", "_script", "_tasks")

    def __init__(self, tasks: FluidTasks, live: LiveJob, script: ProfileProcess, limit: Duration | None) -> None:
        self._tasks = tasks
        self._live = live
        self._script = script
        self._limit = limit

    def handle(self, scene: ActorKernel, actor: Actor) -> None:
        """Begin it."""
        self._tasks.start_replay(self._live, self._script, actor, self._limit)


class _AbortTask:
    """Have a task broken off."""

    __slots__ = ("_task", "_tasks")

    def __init__(self, tasks: FluidTasks, task: Task) -> None:
        self._tasks = tasks
        self._task = task

    def handle(self, scene: ActorKernel, actor: Actor) -> None:
        """Break it off, and go on."""
        self._tasks.abort_task(self._task)
        scene.resume(actor)
