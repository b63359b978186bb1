"""A policy's view: the waiting jobs, the running jobs, and the free capacity."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence

from batkube.cluster.store import Key
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import START, Duration, Instant
from batkube.kernel.intervals import mask_of
from batkube.platforms.model import Machine
from batkube.policies.pod_scheduling.pod_jobs import PodJob
from batkube.policies.rooms import Placement, Room
from batkube.policies.runtime.cluster_capacity import ClusterCapacity
from batkube.policies.runtime.job_queue import JobQueue
from batkube.workloads.model import Job

TRUE_RUN_TIME_USED = FidelityNote(
    "policy", "jobs without walltime were planned with their true run time, which no scheduler knows"
)


class PolicyJob:
    """A job with existing pods. It is `Running` to a policy once it has nodes."""

    __slots__ = (
        "_on_true_end_read",
        "end",
        "job",
        "keys",
        "lost_ranks",
        "nodes",
        "number",
        "placement",
        "pod_count",
        "since",
    )

    #: The placement taken out of the free room, the start, and the estimated end. `until` is the end
    #: for policies.
    placement: Placement
    since: Instant
    end: Instant
    #: The number of the start within the run, which orders jobs in `running` with equal ends.
    number: int

    def __init__(self, job: Job, keys: Sequence[Key], on_true_end_read: Callable[[Job], None] | None) -> None:
        self.job = job
        self.keys = keys
        #: The number of existing pods. The job can start when all exist.
        self.pod_count = 0
        #: The ranks of pods that ended or were deleted, as an interval set (kernel/intervals.py).
        self.lost_ranks = 0
        #: The node of each pod; empty while the job waits.
        self.nodes: Sequence[str] = ()
        #: Called when the policy reads an end that no real scheduler could know.
        self._on_true_end_read = on_true_end_read

    def mark_lost(self, ranks: Sequence[int]) -> bool:
        """Record pods that ended or were deleted; return whether none is left."""
        if len(ranks) == len(self.keys):
            return True
        self.lost_ranks |= mask_of(ranks)
        return self.lost_ranks.bit_count() == len(self.keys)

    @property
    def until(self) -> Instant:
        """The end for policies, by its estimate."""
        if self._on_true_end_read is not None:
            self._on_true_end_read(self.job)
        return self.end


class PolicyView:
    """A policy's `View`, updated by `PolicyScheduler`."""

    #: The free capacity, as of the last `refresh_nodes`.
    free: Room

    def __init__(
        self,
        cluster_capacity: ClusterCapacity,
        notes: FidelityNotes,
        true_run_time: Callable[[Job], Duration] | None = None,
        *,
        is_explained: bool = False,
    ) -> None:
        """`true_run_time` returns the run time of workload jobs without walltime."""
        #: Whether the policy's reasons are recorded.
        self.is_explained = is_explained
        self._cluster_capacity = cluster_capacity
        self._notes = notes
        self._true_run_time = true_run_time
        self.now = START
        self.queue = JobQueue()
        self.running: list[PolicyJob] = []
        #: The sort keys of `running`, in the same order: end and number.
        self._ends: list[tuple[Instant, int]] = []
        self.arrived: list[Job] = []
        self.ended: list[Job] = []
        #: How long the jobs in `ended` that had started held their resources, by job key.
        self._run_times: dict[str, Duration] = {}
        #: All jobs with existing pods by job key.
        self.tracked: dict[str, PolicyJob] = {}
        #: Jobs without walltime whose true run time the policy has read.
        self._noted_jobs: set[str] = set()
        self._starts = 0

    @property
    def head(self) -> Job | None:
        """The job at the front of the queue, or None."""
        return self.queue.head

    def estimate(self, job: Job) -> Duration:
        """Return the longest run time that a scheduler may assume; noted if it is the true one."""
        # A long trace calls this a hundred million times, so the usual case comes first.
        if job.walltime is not None:
            return job.walltime
        if not isinstance(job, PodJob):
            self._note_true_run_time(job)
        return self._estimate(job)

    def _estimate(self, job: Job) -> Duration:
        if job.walltime is not None:
            return job.walltime
        if isinstance(job, PodJob):
            return job.run_time
        assert self._true_run_time is not None, "set in every run with workload jobs"
        return self._true_run_time(job)

    def _note_true_run_time(self, job: Job) -> None:
        if job.key not in self._noted_jobs:
            self._noted_jobs.add(job.key)
            self._notes.add(TRUE_RUN_TIME_USED, example=f"job {job.key}")

    def track(self, job: Job, keys: Sequence[Key]) -> PolicyJob:
        """Return the job with the pods `keys`, added if it is new."""
        policy_job = self.tracked.get(job.key)
        if policy_job is None:
            policy_job = self.tracked[job.key] = PolicyJob(
                job, keys, None if _has_known_estimate(job) else self._note_true_run_time
            )
        return policy_job

    def enqueue(self, job: Job) -> None:
        """Add a job to the queue."""
        self.queue.push(job)
        self.arrived.append(job)

    def start(self, policy_job: PolicyJob, placement: Placement, nodes: Sequence[str]) -> None:
        """Add a job to `running`, and take its placement out of the free room.

        A policy may over-allocate, as a real scheduler may. Then nothing is taken here: the kubelet
        rejects the pods, and the run reports it. Raises TypeError for a placement of the other
        resource model.
        """
        try:
            self.free = self.free - placement
        except ValueError:
            placement = self.free.taken_by(policy_job.job, ())
        policy_job.placement, policy_job.nodes = placement, nodes
        policy_job.since, policy_job.end = self.now, Instant(self.now + self._estimate(policy_job.job))
        policy_job.number = self._starts
        self._starts += 1
        index = bisect.bisect(self._ends, (policy_job.end, policy_job.number))
        self._ends.insert(index, (policy_job.end, policy_job.number))
        self.running.insert(index, policy_job)

    def stop(self, policy_job: PolicyJob) -> None:
        """Remove a job from `running`, and release its placement."""
        index = bisect.bisect_left(self._ends, (policy_job.end, policy_job.number))
        del self._ends[index], self.running[index]
        policy_job.nodes = ()
        if not self._cluster_capacity.is_stale:
            self.free = self.free + policy_job.placement

    def forget(self, policy_job: PolicyJob) -> None:
        """Remove a job from the view."""
        del self.tracked[policy_job.job.key]
        if policy_job.nodes:
            self.stop(policy_job)
        else:
            self.queue.remove(policy_job.job)

    def end(self, policy_job: PolicyJob, now: Instant) -> None:
        """Remove a job from the view and add it to `ended`."""
        self.release(policy_job, now)
        self.ended.append(policy_job.job)

    def release(self, policy_job: PolicyJob, now: Instant) -> None:
        """Remove a job from the view, and record its run time if it had started."""
        if policy_job.nodes:
            self._run_times[policy_job.job.key] = Duration(now - policy_job.since)
        self.forget(policy_job)

    def run_time(self, job: Job) -> Duration | None:
        """Return how long a job in `ended` ran; None if it never started, or is not in `ended`."""
        return self._run_times.get(job.key)

    def clear_changes(self, evicted: list[Job]) -> None:
        """Prepare the next call of the policy: only the `evicted` jobs are in `ended` so far."""
        self.arrived.clear()
        self.ended = evicted
        run_times = self._run_times
        if run_times:
            self._run_times = {job.key: run_times[job.key] for job in evicted if job.key in run_times}

    def refresh_nodes(self) -> list[Machine] | None:
        """Recompute the free room if nodes have changed, and return the machines; None if not."""
        if not self._cluster_capacity.is_stale:
            return None
        machines, self.free = self._cluster_capacity.recompute()
        for policy_job in self.running:
            machine_ids = self._cluster_capacity.machine_ids(policy_job.nodes)
            policy_job.placement = self.free.taken_by(policy_job.job, machine_ids)
            self.free = self.free - policy_job.placement
        # Policies that try only arrived jobs must try the whole queue again.
        self.arrived = list(self.queue)
        return machines


def _has_known_estimate(job: Job) -> bool:
    return job.walltime is not None or isinstance(job, PodJob)
