"""Parallel tasks of jobs, on the fluid model of hosts and links.

A profile that computes or communicates becomes one parallel task: flops for each of its executors, bytes from each to
each. Executors are the machines of the allocation, or what the scheduler maps onto them.

Imitated: Batsim 4.2.1, src/task_execution.cpp.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from batkube.batsim.actors import Actor, ActorWish, Scene
from batkube.batsim.execution import CANCELLED, WALLTIME_REACHED, Allowance, Work
from batkube.batsim.jobs import LiveJob
from batkube.batsim.machines import Machines
from batkube.batsim.messages import ExecuteJob, JsonObject
from batkube.batsim.progress import JobProgress
from batkube.batsim.refusal import Refusal
from batkube.execution.meters import Meters
from batkube.execution.plant import Plant
from batkube.execution.shapes import NotModelled, TaskShape, shape_of
from batkube.fluid.flow import Flow
from batkube.fluid.tasks import Task
from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, Instant
from batkube.kernel.intervals import parse_intervals
from batkube.platforms.network import Network
from batkube.workloads.batsim import read_registered_profile
from batkube.workloads.model import Profile


class FluidTasks:
    """Runs the tasks of jobs, and tells when they end."""

    def __init__(self, scene: Scene, network: Network, machines: Machines) -> None:
        self._scene = scene
        self._machines = machines
        self._flow = Flow()
        self.plant = Plant(network, self._flow)
        #: Who counts what tasks cost, where energy is counted.
        self.meters: Meters | None = None
        #: Who waits for which task; and the tasks of jobs.
        self._waiting: dict[Task, Actor] = {}
        self._tasks: dict[str, Task] = {}

    # What the scene asks

    def due(self) -> Instant | None:
        """Return when something ends next, as far as is known."""
        return self._flow.due()

    def advance(self, now: Instant) -> None:
        """Let end what is due, and those go on who waited for it."""
        for task in self._flow.advance(now, self._end_task):
            self._scene.go_on(self._waiting.pop(task), 0)

    def _end_task(self, task: Task, now: Instant) -> None:
        if self.meters is not None:
            self.meters.end_task(task, now)

    def settle(self, now: Instant) -> None:
        """Work out what the acts of this instant mean for the dates."""
        self._flow.settle(now)

    # What jobs ask

    def work(
        self, profile: Profile, live: LiveJob, execution: ExecuteJob, allowance: Allowance, progress: JobProgress
    ) -> Work:
        """Run a profile that computes or communicates, to its end, its walltime or until it is cancelled."""
        task = self.plant.task(f"{live.id} {profile.name}", *self._shape(profile, live, execution))
        progress.begin_task(task.progress)
        self._tasks[live.id] = task
        began = self._scene.now
        code = yield _Await(self, task, allowance.left)
        del self._tasks[live.id]
        if allowance.left is not None:
            allowance.left = Duration(allowance.left - (self._scene.now - began))
        assert isinstance(code, int)
        return code

    def cancel(self, live: LiveJob) -> ActorWish | None:
        """Return the wish that what a job computes is cancelled; None when it is not computing."""
        task = self._tasks.get(live.id)
        return None if task is None else _Cancel(self, task)

    def begin(self, task: Task, actor: Actor, limit: Duration | None) -> None:
        """Begin a task that an actor waits for, at most for `limit`."""
        now = self._scene.now
        self._waiting[task] = actor
        if self.meters is not None:
            self.meters.begin_task(task, now)
        self._flow.begin(task, now)
        if limit is not None:
            self._scene.book(Instant(now + limit), lambda: self.break_off(task, WALLTIME_REACHED))

    def break_off(self, task: Task, code: int) -> None:
        """End a task before it is through, unless it is."""
        actor = self._waiting.pop(task, None)
        if actor is not None:
            self._end_task(task, self._scene.now)
            self._flow.cancel(task, self._scene.now)
            self._scene.go_on(actor, code)

    # What profiles mean

    def _shape(self, profile: Profile, live: LiveJob, execution: ExecuteJob) -> TaskShape:
        names = [machine.name for machine in self._machines.among(execution.machines)]
        hosts = names if execution.mapping is None else [names[place] for place in execution.mapping]
        storage = functools.partial(self._storage, execution.storage)
        try:
            shape = shape_of(profile, hosts, storage)
            if execution.io_job is None:
                return shape
            return _together(shape, shape_of(_profile_beside(execution.io_job), self._hosts_beside(execution), storage))
        except NotModelled as error:
            raise Refusal(f"Cannot execute job {live.id}: its profile '{profile.name}' {error}") from None

    def _hosts_beside(self, execution: ExecuteJob) -> list[str]:
        """Return the hosts of the profile that runs beside a job's own."""
        machines = parse_intervals(str((execution.io_job or {}).get("alloc", "")))
        if not machines or not self._machines.exist(machines):
            raise Refusal("Invalid JSON message: bad IO allocation")
        return [machine.name for machine in self._machines.among(machines)]

    def _storage(self, storage: Mapping[str, int] | None, label: str) -> str:
        """Return the host that a label means; the only one where the scheduler says nothing."""
        hosts = {machine.id: machine.name for machine in self._machines.all if machine.is_storage}
        if not storage:
            if len(hosts) != 1:
                raise Refusal("No storage/host mapping given and there is no (or more than one) storage node available")
            return next(iter(hosts.values()))
        if label not in storage:
            raise Refusal(f"Unknown storage label='{label}'")
        if storage[label] not in hosts:
            raise Refusal(f"The host(id={storage[label]}) pointed to by label='{label}' is not a storage host")
        return hosts[storage[label]]


def _profile_beside(io_job: JsonObject) -> Profile:
    """Return the profile of an additional_io_job, which has to come with it."""
    name, description = io_job.get("profile_name"), io_job.get("profile")
    if not isinstance(name, str) or not isinstance(description, Mapping):
        raise Refusal("Invalid JSON message: additional_io_job needs 'profile_name', 'profile' and 'alloc'")
    try:
        return read_registered_profile(name, description, {})
    except InputError as error:
        raise Refusal(
            f"Invalid JSON profile received from the scheduler for the 'additional_io_job': {error}"
        ) from None


def _together(one: TaskShape, other: TaskShape) -> TaskShape:
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


class _Await:
    """Wait for a task, at most for a while."""

    __slots__ = ("_limit", "_task", "_tasks")

    def __init__(self, tasks: FluidTasks, task: Task, limit: Duration | None) -> None:
        self._tasks = tasks
        self._task = task
        self._limit = limit

    def begin(self, scene: Scene, actor: Actor) -> None:
        """Begin it."""
        self._tasks.begin(self._task, actor, self._limit)


class _Cancel:
    """Have a task broken off."""

    __slots__ = ("_task", "_tasks")

    def __init__(self, tasks: FluidTasks, task: Task) -> None:
        self._tasks = tasks
        self._task = task

    def begin(self, scene: Scene, actor: Actor) -> None:
        """Break it off, and go on."""
        self._tasks.break_off(self._task, CANCELLED)
        scene.go_on(actor)
