"""A policy as the scheduler of a served cluster: every pod that waits is a job of one pod in its queue.

The policy sees what it always sees: a queue, what runs, what is free. Where a pod may go at all is part of the room it
is given, so that a policy that never heard of node selectors or taints heeds them. Room that an eviction makes is there
once the evicted pod is gone.
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Callable, Collection, Sequence
from typing import Self

import numpy as np

from batkube.cluster.client import Client, Refused
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.mapping import REJECTED_BY_SCHEDULER
from batkube.cluster.resources import allocatable_of, demand_of
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import START, Duration, Instant, duration, instant_of, seconds
from batkube.kernel.quantities import CPU, PODS
from batkube.platforms.model import Machine
from batkube.policies.guard import GuardedPolicy
from batkube.policies.interface import Decision, Evict, Policy, Reject, Start, WakeAt
from batkube.policies.node_table import Mask, NodeTable
from batkube.policies.nodes import NodePlacement, NodeRoom, Nodes
from batkube.policies.queue import JobQueue
from batkube.policies.rooms import Choice
from batkube.policies.scheduler import RunningJob
from batkube.policies.served_scheduler import DEFAULT_NAME, POD, ServedScheduler
from batkube.workloads.annotations import DURATION, WALLTIME
from batkube.workloads.model import Delay, Job

_WORKLOAD = "pods"
#: What a pod that says nothing of its length is planned with.
_UNKNOWN_LENGTH: Duration = seconds(365 * 86400)


class RuledNodes(Nodes):
    """Nodes that do not take every job."""

    def __init__(self, machines: Sequence[Machine], accepts: Callable[[Job], Mask]) -> None:
        super().__init__(machines)
        self.accepts = accepts


class RuledRoom(NodeRoom):
    """What is free on nodes that do not take every job."""

    nodes: RuledNodes

    def fit(self, job: Job, choice: Choice | random.Random = Choice.FIRST) -> NodePlacement | None:
        """Return a node that accepts the job's pod and has room for it, or None."""
        return super().fit(job, choice) if self._is_open_to(job) else self._open_part(job).fit(job, choice)

    def holds(self, job: Job) -> bool:
        """Return whether some node that accepts the job has room for it."""
        return super().holds(job) if self._is_open_to(job) else self._open_part(job).holds(job)

    def _is_open_to(self, job: Job) -> bool:
        return bool(self.nodes.accepts(job).all())

    def _open_part(self, job: Job) -> NodeRoom:
        return NodeRoom(np.where(self.nodes.accepts(job), self.free, 0), self.nodes)

    def __and__(self, other: Self) -> Self:
        return type(self)(np.minimum(self.free, other.free), self.nodes)


class ServedPolicy(ServedScheduler):
    """Binds pods as a policy decides. It is also the policy's `View`."""

    def __init__(
        self,
        world: World,
        policy: Policy,
        rng: random.Random,
        client: Client,
        events: EventRecorder,
        table: NodeTable,
        names: Collection[str] = (DEFAULT_NAME,),
    ) -> None:
        super().__init__(world, client, events, table, names)
        self._policy = policy
        self._rng = rng
        self._guarded: GuardedPolicy | None = None
        #: What the policy was last told of the nodes.
        self._nodes: RuledNodes | None = None
        self._generation = -1
        self.now: Instant = START
        self.queue = JobQueue()
        self.running: list[RunningJob] = []
        self.arrived: list[Job] = []
        self.ended: list[Job] = []
        self._jobs: dict[Key, Job] = {}
        self._key_of: dict[str, Key] = {}
        self._starts = 0

    # The view

    @property
    def head(self) -> Job | None:
        """The job at the front of the queue, or None."""
        return self.queue.head

    @property
    def free(self) -> RuledRoom:
        """What is free now."""
        assert self._nodes is not None
        left = [np.maximum(self.table.free_of(resource), 0) for resource in self._nodes.row_of]
        return RuledRoom(np.array(left, dtype=np.int64), self._nodes)

    def estimate(self, job: Job) -> Duration:
        """How long `job` will take at most: its walltime, or what its annotation tells, or very long."""
        return job.walltime if job.walltime is not None else _length(job)

    # What it hears

    def arrived_pod(self, key: Key, pod: KubeObject) -> None:
        """Put the pod into the queue."""
        if key in self._jobs:
            self.queue.remove(self._jobs[key])
        job = self._jobs[key] = _job(key, pod)
        self._key_of[job.key] = key
        self.queue.push(job)
        self.arrived.append(job)

    def left(self, key: Key, *, is_over: bool) -> None:
        """Take the pod out of the queue, or out of what runs when it is over."""
        job = self._jobs.get(key)
        if job is None:
            return
        self.queue.remove(job)
        if is_over:
            del self._jobs[key]
            del self._key_of[job.key]
            self._forget_run(job)
            self.ended.append(job)

    def _forget_run(self, job: Job) -> None:
        self.running = [run for run in self.running if run.job is not job]

    # What it does

    def decide(self, now: Instant) -> None:
        """Ask the policy, and carry out what it says."""
        self.now = now
        policy = self._told_of_nodes()
        if policy is None:
            self._explain(now)
            return
        if self.has_news and not self.ended:
            # Nodes came or changed: whoever looks only at what ended must look at the whole queue again.
            self.arrived = list(self.queue)
        self.has_news = False
        for decision in policy.decisions(self):
            self._carry_out(policy, decision, now)
        self.arrived.clear()
        self.ended.clear()
        self._explain(now)

    def _told_of_nodes(self) -> GuardedPolicy | None:
        """Let the policy begin anew when the nodes have changed; None while there are none."""
        if not self.table.count:
            return None
        if self._generation != self.table.generation or self._guarded is None:
            self._generation = self.table.generation
            machines = [_machine(column, node) for column, node in enumerate(self.table.nodes)]
            self._nodes = RuledNodes(machines, self._accepts)
            self._guarded = GuardedPolicy(self._policy, len(machines))
            self._guarded.begin(machines, self._rng)
        return self._guarded

    def _accepts(self, job: Job) -> Mask:
        pod = self.store.get(POD, self._key_of[job.key])
        if pod is None:
            return np.zeros(len(self.table.nodes), dtype=np.bool_)
        mask = self.table.acceptance(pod).mask
        for _, refused in self.neighbours.objections(pod, mask):
            mask = mask & ~refused
        return mask

    def _carry_out(self, policy: GuardedPolicy, decision: Decision, now: Instant) -> None:
        match decision:
            case Start():
                self._start(policy, decision, now)
            case Evict():
                self._evict(decision.job, now)
            case Reject():
                self._reject(decision, now)
            case WakeAt():
                self.agenda.book(decision.at, Rank.WAKE, self.decide)

    def _start(self, policy: GuardedPolicy, start: Start, now: Instant) -> None:
        job, (column,) = start.job, policy.machine_ids(start)
        key = self._key_of.get(job.key)
        pod = None if key is None else self.store.get(POD, key)
        if key is None or pod is None or job not in self.queue:
            raise policy.failure(f"started job {job.key}, which is not waiting")
        run = RunningJob(start, now, Instant(now + self.estimate(job)), self._starts, None)
        self._starts += 1
        if self.bind(key, pod, self.table.name_of(column), now):
            bisect.insort(self.running, run, key=lambda one: (one.end, one.number))
        else:
            self.queue.remove(job)

    def _evict(self, job: Job, now: Instant) -> None:
        self._forget_run(job)
        try:
            self.client.delete(POD, self._key_of[job.key], now)
        except Refused:
            return

    def _reject(self, reject: Reject, now: Instant) -> None:
        pod = self.store.get(POD, self._key_of[reject.job.key])
        if pod is None:
            return
        status = {
            **pod.get("status", {}),
            "phase": "Failed",
            "reason": REJECTED_BY_SCHEDULER,
            "message": reject.reason,
        }
        try:
            self.client.update(POD, {**pod, "status": status}, now, subresource="status")
        except Refused:
            return

    def _explain(self, now: Instant) -> None:
        """Tell the pods that wait why they do, as far as one can know."""
        name = type(self._policy).__name__
        for key in list(self.waiting):
            pod = self.store.get(POD, key)
            if pod is not None:
                judgement = self.judge(pod, demand_of(pod))
                waits = f"the policy {name} has not started it yet"
                self.set_aside(key, waits if judgement.fits.any() else self.why_not(judgement), now)


def _machine(column: int, node: KubeObject | None) -> Machine:
    if node is None:
        return Machine(column, f"(none {column})", {CPU: 0, PODS: 0})
    metadata, offered = node["metadata"], allocatable_of(node)
    return Machine(column, metadata["name"], {CPU: 0, PODS: 0, **offered}, labels=metadata.get("labels") or {})


def _job(key: Key, pod: KubeObject) -> Job:
    annotations, spec = pod["metadata"].get("annotations") or {}, pod["spec"]
    deadline = spec.get("activeDeadlineSeconds")
    walltime = _told(annotations.get(WALLTIME)) or (None if deadline is None else seconds(deadline))
    length = _told(annotations.get(DURATION)) or _UNKNOWN_LENGTH
    requests = {resource: count for resource, count in demand_of(pod).items() if resource != PODS}
    return Job(
        workload=_WORKLOAD,
        name=str(key),
        submit=instant_of(pod["metadata"]["creationTimestamp"]),
        size=1,
        profile=Delay(name=str(key), duration=length),
        walltime=walltime,
        requests=tuple(sorted(requests.items())),
        priority=spec.get("priority", 0),
    )


def _length(job: Job) -> Duration:
    return job.profile.duration if isinstance(job.profile, Delay) else _UNKNOWN_LENGTH


def _told(text: str | None) -> Duration | None:
    if text is None:
        return None
    try:
        return duration(text)
    except ValueError:
        return None
