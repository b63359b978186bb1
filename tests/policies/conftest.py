"""A minimal cluster that runs a policy without the rest of the simulator.

`TinyCluster` is a View. It runs jobs of type `delay`, kills them at their walltime, and queues evicted jobs again. Its
inputs and results are in seconds.
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
from batkube.policies.interface import Evict, Policy, Reject, Start, Wait, WakeAt
from batkube.policies.machine_room import MachineRoom
from batkube.policies.node_room import NodeRoom
from batkube.policies.reasons import Reason
from batkube.policies.rooms import Placement, Room
from batkube.workloads.model import Delay, Job


def a_machine(number: int, **capacity: int) -> Machine:
    """Return a machine, by default with one core; `cpu` is in millicores."""
    return Machine(number, f"m{number}", {CPU: 1000, PODS: 110, **capacity})


def a_job(
    name: str, size: int, run_s: float, *, submit_s: float = 0, walltime_s: float | None = None, **fields: object
) -> Job:
    """Return a job that takes `run_s`, which is also its walltime by default."""
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
class RunningJob:
    """A running job in the view."""

    job: Job
    placement: Placement
    since: Instant
    until: Instant


class TinyCluster:
    """A View, and the event loop that calls a policy."""

    def __init__(
        self,
        room: Room,
        machines: Sequence[Machine] = (),
        *,
        kills_at_walltime: bool = True,
        is_explained: bool = False,
    ) -> None:
        """`machines` are passed to the policy's `begin`."""
        self.is_explained = is_explained
        #: The reasons of decisions: the second, the kind of decision, the job's name and the reason.
        self.reasons: list[tuple[float, str, str, Reason | str]] = []
        self._machines = machines
        self.now = Instant(0)
        self.free = room
        self.arrived: list[Job] = []
        self.ended: list[Job] = []
        self.waiting: dict[str, Job] = {}
        self.running_jobs: dict[str, RunningJob] = {}
        self.kills_at_walltime = kills_at_walltime
        #: All events as (seconds, kind, job name).
        self.events: list[tuple[float, str, str]] = []
        self.starts_s: dict[str, float] = {}
        self.ends_s: dict[str, float] = {}
        self.machines: dict[str, tuple[int, ...]] = {}
        self._numbers = itertools.count()
        self._agenda: list[tuple[Instant, int, int, Job | None, RunningJob | None]] = []

    @property
    def queue(self) -> list[Job]:
        return list(self.waiting.values())

    @property
    def head(self) -> Job | None:
        return next(iter(self.waiting.values()), None)

    @property
    def running(self) -> Sequence[RunningJob]:
        return sorted(self.running_jobs.values(), key=lambda running: running.until)

    def estimate(self, job: Job) -> Duration:
        assert job.walltime is not None
        return job.walltime

    def run(self, policy: Policy, jobs: Iterable[Job]) -> TinyCluster:
        """Run `jobs` until no event is left."""
        policy.begin(self._machines, random.Random(1))
        for job in jobs:
            self._book(job.submit, 1, job)
        while self._agenda:
            self.now = self._agenda[0][0]
            self.arrived, self.ended = [], []
            while self._agenda and self._agenda[0][0] == self.now:
                self._handle(*heapq.heappop(self._agenda)[3:])
            self._apply_decisions(policy)
        return self

    def _book(self, at: Instant, rank: int, job: Job | None, running: RunningJob | None = None) -> None:
        heapq.heappush(self._agenda, (at, rank, next(self._numbers), job, running))

    def _handle(self, job: Job | None, running: RunningJob | None) -> None:
        if job is None:
            return
        if running is None:
            self.waiting[job.name] = job
            self.arrived.append(job)
        elif self.running_jobs.get(job.name) is running:
            del self.running_jobs[job.name]
            self.free = self.free + running.placement
            self.ended.append(job)
            self._record("end", job)
            self.ends_s[job.name] = self.now / 1e9

    def _apply_decisions(self, policy: Policy) -> None:
        for decision in policy.decide(self):
            if isinstance(decision, Start | Evict | Wait) and decision.reason is not None:
                kind = type(decision).__name__
                self.reasons.append((self.now / 1e9, kind, decision.job.name, decision.reason))
            match decision:
                case Start(job, placement):
                    self._start(self.waiting.pop(job.name), placement)
                case Evict(job):
                    self.free = self.free + self.running_jobs.pop(job.name).placement
                    self._record("evict", job)
                    self._book(self.now, 1, job)
                case Reject(job):
                    del self.waiting[job.name]
                    self._record("reject", job)
                case WakeAt(at):
                    assert at > self.now
                    self._book(at, 2, None)

    def _start(self, job: Job, placement: Placement) -> None:
        self.free = self.free - placement
        assert len(placement.machine_ids) == job.size
        assert isinstance(job.profile, Delay)
        running = RunningJob(job, placement, self.now, Instant(self.now + self.estimate(job)))
        run = min(job.profile.duration, self.estimate(job)) if self.kills_at_walltime else job.profile.duration
        self.running_jobs[job.name] = running
        self._record("start", job)
        self.starts_s[job.name] = self.now / 1e9
        self.machines[job.name] = placement.machine_ids
        self._book(Instant(self.now + run), 0, job, running)

    def _record(self, kind: str, job: Job) -> None:
        self.events.append((self.now / 1e9, kind, job.name))


def whole(count: int) -> MachineRoom:
    """Return room of `count` machines with one core each."""
    return MachineRoom.whole([a_machine(number) for number in range(count)])


def nodes(*capacities: dict[str, int]) -> NodeRoom:
    """Return room of nodes with the given capacities."""
    return NodeRoom.whole([a_machine(number, **capacity) for number, capacity in enumerate(capacities)])
