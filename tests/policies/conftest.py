"""A cluster in one page, to watch a policy at work without the rest of the simulator.

`TinyCluster` is a View. It runs jobs of type `delay`, kills them at their walltime, and puts evicted jobs back into the
queue. It is imported by the tests beside it; seconds go in and out, instants are used inside.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from batkube.kernel.instants import Duration, Instant, seconds
from batkube.kernel.quantities import CPU, PODS
from batkube.platforms.model import Machine
from batkube.policies.interface import Evict, Policy, Reject, Start, WakeAt
from batkube.policies.machine_room import MachineRoom
from batkube.policies.node_room import NodeRoom
from batkube.policies.rooms import Placement, Room
from batkube.workloads.model import Delay, Job


def a_machine(number: int, **capacity: int) -> Machine:
    """Return a machine with one core unless told otherwise; `cpu` counts millicores."""
    return Machine(number, f"m{number}", {CPU: 1000, PODS: 110, **capacity})


def a_job(
    name: str, size: int, run_s: float, *, submit_s: float = 0, walltime_s: float | None = None, **fields: object
) -> Job:
    """Return a job that takes `run_s`, which is its walltime too unless told otherwise."""
    return Job(
        workload="w",
        name=name,
        submit=Instant(seconds(submit_s)),
        size=size,
        profile=Delay(name=f"delay{run_s}", duration=seconds(run_s)),
        walltime=seconds(run_s if walltime_s is None else walltime_s),
        **fields,  # type: ignore[arg-type]
    )


@dataclass(slots=True)
class Busy:
    """A running job, as the View shows it."""

    job: Job
    placement: Placement
    since: Instant
    until: Instant


class TinyCluster:
    """A View, and the loop that drives a policy with it."""

    def __init__(self, room: Room, machines: Sequence[Machine] = (), *, kills_at_walltime: bool = True) -> None:
        """`machines` are what the policy is told of at the beginning, for those who look at more than the room."""
        self._machines = machines
        self.now = Instant(0)
        self.free = room
        self.arrived: list[Job] = []
        self.ended: list[Job] = []
        self.waiting: dict[str, Job] = {}
        self.busy: dict[str, Busy] = {}
        self.kills_at_walltime = kills_at_walltime
        #: What happened, as (seconds, word, job name or machine ids).
        self.story: list[tuple[float, str, str]] = []
        self.starts_s: dict[str, float] = {}
        self.ends_s: dict[str, float] = {}
        self.machines: dict[str, tuple[int, ...]] = {}
        self._numbers = itertools.count()
        self._happenings: list[tuple[Instant, int, int, Job | None, Busy | None]] = []

    @property
    def queue(self) -> list[Job]:
        return list(self.waiting.values())

    @property
    def head(self) -> Job | None:
        return next(iter(self.waiting.values()), None)

    @property
    def running(self) -> Sequence[Busy]:
        return sorted(self.busy.values(), key=lambda busy: busy.until)

    def estimate(self, job: Job) -> Duration:
        assert job.walltime is not None
        return job.walltime

    def run(self, policy: Policy, jobs: Iterable[Job]) -> TinyCluster:
        """Run `jobs` to their ends, or until nothing happens any more."""
        policy.begin(self._machines, random.Random(1))
        for job in jobs:
            self._expect(job.submit, 1, job)
        while self._happenings:
            self.now = self._happenings[0][0]
            self.arrived, self.ended = [], []
            while self._happenings and self._happenings[0][0] == self.now:
                self._happen(*heapq.heappop(self._happenings)[3:])
            self._obey(policy)
        return self

    def _expect(self, at: Instant, rank: int, job: Job | None, busy: Busy | None = None) -> None:
        heapq.heappush(self._happenings, (at, rank, next(self._numbers), job, busy))

    def _happen(self, job: Job | None, busy: Busy | None) -> None:
        if job is None:
            return
        if busy is None:
            self.waiting[job.name] = job
            self.arrived.append(job)
        elif self.busy.get(job.name) is busy:
            del self.busy[job.name]
            self.free = self.free + busy.placement
            self.ended.append(job)
            self._tell("end", job)
            self.ends_s[job.name] = self.now / 1e9

    def _obey(self, policy: Policy) -> None:
        for decision in policy.decide(self):
            match decision:
                case Start(job, placement):
                    self._start(self.waiting.pop(job.name), placement)
                case Evict(job):
                    self.free = self.free + self.busy.pop(job.name).placement
                    self._tell("evict", job)
                    self._expect(self.now, 1, job)
                case Reject(job):
                    del self.waiting[job.name]
                    self._tell("reject", job)
                case WakeAt(at):
                    assert at > self.now
                    self._expect(at, 2, None)

    def _start(self, job: Job, placement: Placement) -> None:
        self.free = self.free - placement
        assert len(placement.machine_ids) == job.size
        assert isinstance(job.profile, Delay)
        busy = Busy(job, placement, self.now, Instant(self.now + self.estimate(job)))
        run = min(job.profile.duration, self.estimate(job)) if self.kills_at_walltime else job.profile.duration
        self.busy[job.name] = busy
        self._tell("start", job)
        self.starts_s[job.name] = self.now / 1e9
        self.machines[job.name] = placement.machine_ids
        self._expect(Instant(self.now + run), 0, job, busy)

    def _tell(self, word: str, job: Job) -> None:
        self.story.append((self.now / 1e9, word, job.name))


def whole(count: int) -> MachineRoom:
    """Return room of `count` machines with one core each."""
    return MachineRoom.whole([a_machine(number) for number in range(count)])


def nodes(*capacities: dict[str, int]) -> NodeRoom:
    """Return room of nodes with the given capacities."""
    return NodeRoom.whole([a_machine(number, **capacity) for number, capacity in enumerate(capacities)])
