"""Parallel tasks of jobs, on the fluid model of hosts and links.

A profile that computes or communicates becomes one parallel task: flops for each of its executors, bytes from each to
each. Executors are the machines of the allocation, or what the scheduler maps onto them.

Imitated: Batsim 4.2.1, src/task_execution.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from batkube.batsim.actors import Actor, ActorWish, Scene
from batkube.batsim.execution import CANCELLED, WALLTIME_REACHED, Allowance, Work
from batkube.batsim.jobs import LiveJob
from batkube.batsim.machines import Machines
from batkube.batsim.messages import ExecuteJob, Json
from batkube.batsim.progress import JobProgress
from batkube.batsim.refusal import Refusal
from batkube.execution.plant import Plant
from batkube.fluid.flow import Flow
from batkube.fluid.tasks import Task
from batkube.kernel.instants import Duration, Instant
from batkube.platforms.network import Network
from batkube.workloads.model import Foreign, Parallel, ParallelHomogeneous, ParallelHomogeneousTotal, Profile


class Load(NamedTuple):
    """What a task does: a host for each executor, the flops of each, the bytes from each (row) to each (column)."""

    hosts: Sequence[str]
    flops: Sequence[float]
    sent_bytes: Sequence[float]


class FluidTasks:
    """Runs the tasks of jobs, and tells when they end."""

    def __init__(self, scene: Scene, network: Network, machines: Machines) -> None:
        self._scene = scene
        self._machines = machines
        self._flow = Flow()
        self.plant = Plant(network, self._flow)
        #: Who waits for which task; and the tasks of jobs.
        self._waiting: dict[Task, Actor] = {}
        self._tasks: dict[str, Task] = {}

    # What the scene asks

    def due(self) -> Instant | None:
        """Return when something ends next, as far as is known."""
        return self._flow.due()

    def advance(self, now: Instant) -> None:
        """Let end what is due, and those go on who waited for it."""
        for task in self._flow.advance(now):
            self._scene.go_on(self._waiting.pop(task), 0)

    def settle(self, now: Instant) -> None:
        """Work out what the acts of this instant mean for the dates."""
        self._flow.settle(now)

    # What jobs ask

    def work(
        self, profile: Profile, live: LiveJob, execution: ExecuteJob, allowance: Allowance, progress: JobProgress
    ) -> Work:
        """Run a profile that computes or communicates, to its end, its walltime or until it is cancelled."""
        load = self._load(profile, live, execution)
        task = self.plant.task(f"{live.id} {profile.name}", *load)
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
        self._flow.begin(task, now)
        if limit is not None:
            self._scene.book(Instant(now + limit), lambda: self.break_off(task, WALLTIME_REACHED))

    def break_off(self, task: Task, code: int) -> None:
        """End a task before it is through, unless it is."""
        actor = self._waiting.pop(task, None)
        if actor is not None:
            self._flow.cancel(task, self._scene.now)
            self._scene.go_on(actor, code)

    # What profiles mean

    def _load(self, profile: Profile, live: LiveJob, execution: ExecuteJob) -> Load:
        hosts = self._hosts(execution)
        load = self._load_of(profile, hosts, execution.storage)
        if load is None:
            kind = profile.kind if isinstance(profile, Foreign) else type(profile).__name__
            raise Refusal(f"Cannot execute job {live.id}: profile '{profile.name}' is of type '{kind}', not modelled")
        return load if execution.io_job is None else self._with_transfers(load, live, execution)

    def _hosts(self, execution: ExecuteJob) -> list[str]:
        """Return the host of each executor."""
        names = [machine.name for machine in self._machines.among(execution.machines)]
        return names if execution.mapping is None else [names[place] for place in execution.mapping]

    def _load_of(self, profile: Profile, hosts: Sequence[str], storage: Mapping[str, int] | None) -> Load | None:
        count = len(hosts)
        match profile:
            case Parallel():
                if len(profile.cpu_flops) != count:
                    raise Refusal(
                        f"the number of resources given by the allocation ({count}) is different from the number of "
                        f"resouces given by the profile data ({len(profile.cpu_flops)})"
                    )
                return Load(hosts, profile.cpu_flops, profile.com_bytes)
            case ParallelHomogeneous():
                return Load(hosts, [profile.cpu_flops] * count, _all_to_all(count, profile.com_bytes))
            case ParallelHomogeneousTotal():
                flops, sent = profile.cpu_flops / count, profile.com_bytes / count
                return Load(hosts, [flops] * count, _all_to_all(count, sent))
            case Foreign(kind="parallel_homogeneous_pfs"):
                label = str(profile.fields.get("storage", "pfs"))
                read, write = (_amount(profile.fields, key) for key in ("bytes_to_read", "bytes_to_write"))
                everyone = [*hosts, self._storage(label, storage)]
                return Load(everyone, [0.0] * (count + 1), _with_storage(count, read, write))
            case Foreign(kind="data_staging"):
                ends = [self._storage(str(profile.fields.get(key)), storage) for key in ("from", "to")]
                return Load(ends, [0.0, 0.0], [0.0, _amount(profile.fields, "nb_bytes"), 0.0, 0.0])
        return None

    def _storage(self, label: str, storage: Mapping[str, int] | None) -> str:
        """Return the host that a label means; the only one where the scheduler says nothing."""
        hosts = [machine for machine in self._machines.all if machine.is_storage]
        if not storage:
            if len(hosts) != 1:
                raise Refusal("No storage/host mapping given and there is no (or more than one) storage node available")
            return hosts[0].name
        if label not in storage:
            raise Refusal(f"Unknown storage label='{label}'")
        found = [machine.name for machine in hosts if machine.id == storage[label]]
        if not found:
            raise Refusal(f"The host(id={storage[label]}) pointed to by label='{label}' is not a storage host")
        return found[0]

    def _with_transfers(self, load: Load, live: LiveJob, execution: ExecuteJob) -> Load:
        """Return what a job does together with the profile that the scheduler has run beside it."""
        raise NotImplementedError


def _all_to_all(count: int, amount: float) -> list[float]:
    """Return the same bytes between all executors but from none to itself; nothing at all where there are none."""
    if amount <= 0:
        return []
    return [0.0 if row == column else amount for row in range(count) for column in range(count)]


def _with_storage(count: int, read: float, write: float) -> list[float]:
    """Return the bytes between executors and a storage, which comes last."""
    size = count + 1
    if read <= 0 and write <= 0:
        return []
    matrix = [0.0] * (size * size)
    for executor in range(count):
        matrix[executor * size + count] = write
        matrix[count * size + executor] = read
    return matrix


def _amount(fields: Mapping[str, Json], key: str) -> float:
    value = fields.get(key, 0)
    return float(value) if isinstance(value, int | float) else 0.0


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
