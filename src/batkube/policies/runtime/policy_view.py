"""What a policy sees when it is asked: the jobs that wait, those that run, and what is free."""

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
    """A job some of whose pods are alive; it is `Running` to a policy once it has nodes."""

    __slots__ = (
        "_on_true_end_read",
        "end",
        "job",
        "keys",
        "lost_ranks",
        "nodes",
        "number",
        "placement",
        "seen_count",
        "since",
    )

    #: What it has taken out of the free room, since when, and until when at most, for our own use.
    placement: Placement
    since: Instant
    end: Instant
    #: Counts the starts of the run, so that jobs which end at one instant still have an order in `running`.
    number: int

    def __init__(self, job: Job, keys: Sequence[Key], peek: Callable[[Job], None] | None) -> None:
        self.job = job
        self.keys = keys
        #: How many of its pods have come; it can be started when all have.
        self.seen_count = 0
        #: The ranks of pods that have ended or are gone, while others are left, as a set (kernel/intervals.py).
        self.lost_ranks = 0
        #: The node of each pod; empty while it waits.
        self.nodes: Sequence[str] = ()
        #: Called when the policy looks at an end that no real scheduler could know.
        self._on_true_end_read = peek

    def mark_lost(self, ranks: Sequence[int]) -> bool:
        """Take note of pods that have ended or are gone; return whether none is left."""
        if len(ranks) == len(self.keys):
            return True
        self.lost_ranks |= mask_of(ranks)
        return self.lost_ranks.bit_count() == len(self.keys)

    @property
    def until(self) -> Instant:
        """When it must have ended, as the policy sees it."""
        if self._on_true_end_read is not None:
            self._on_true_end_read(self.job)
        return self.end


class PolicyView:
    """A policy's `View`, kept up to date by who hears of the changes."""

    #: What is free; as of the latest look at the nodes.
    free: Room

    def __init__(
        self, cluster_room: ClusterCapacity, notes: FidelityNotes, true_length: Callable[[Job], Duration] | None = None
    ) -> None:
        """`true_length` tells how long jobs take that have no walltime; pods tell it themselves."""
        self._cluster_capacity = cluster_room
        self._notes = notes
        self._true_length = true_length
        self.now = START
        self.queue = JobQueue()
        self.running: list[PolicyJob] = []
        #: Of each running job, in the same order: its end and its number, which they are sorted by.
        self._ends: list[tuple[Instant, int]] = []
        self.arrived: list[Job] = []
        self.ended: list[Job] = []
        #: Every job that has pods alive, by the job's key.
        self.tracked: dict[str, PolicyJob] = {}
        #: Jobs whose true length the policy was told for want of a walltime.
        self._noted_jobs: set[str] = set()
        self._starts = 0

    # What a policy asks

    @property
    def head(self) -> Job | None:
        """The job at the front of the queue, or None."""
        return self.queue.head

    def estimate(self, job: Job) -> Duration:
        """How long `job` will take at most, as far as a scheduler can know; noted where it cannot."""
        # Asked a hundred million times in a long trace, so the usual answer comes first.
        if job.walltime is not None:
            return job.walltime
        if not isinstance(job, PodJob):
            self._note_true_run_time(job)
        return self._length(job)

    def _length(self, job: Job) -> Duration:
        if job.walltime is not None:
            return job.walltime
        if isinstance(job, PodJob):
            return job.length
        assert self._true_length is not None, "jobs come with somebody who knows their lengths"
        return self._true_length(job)

    def _note_true_run_time(self, job: Job) -> None:
        if job.key not in self._noted_jobs:
            self._noted_jobs.add(job.key)
            self._notes.add(TRUE_RUN_TIME_USED, example=f"job {job.key}")

    # What changes

    def track(self, job: Job, keys: Sequence[Key]) -> PolicyJob:
        """Return the job of the pods `keys`, known from now on."""
        known = self.tracked.get(job.key)
        if known is None:
            known = self.tracked[job.key] = PolicyJob(
                job, keys, None if _has_known_length(job) else self._note_true_run_time
            )
        return known

    def enqueue(self, job: Job) -> None:
        """Let a job wait."""
        self.queue.push(job)
        self.arrived.append(job)

    def start(self, known: PolicyJob, placement: Placement, nodes: Sequence[str]) -> None:
        """Let a job run, and take its placement out of the free room.

        A policy may over-allocate, as a real scheduler may: then nothing is taken here, the kubelet rejects the pods,
        and the run says so. TypeError if the placement is of another resource model.
        """
        try:
            self.free = self.free - placement
        except ValueError:
            placement = self.free.taken_by(known.job, ())
        known.placement, known.nodes = placement, nodes
        known.since, known.end = self.now, Instant(self.now + self._length(known.job))
        known.number = self._starts
        self._starts += 1
        place = bisect.bisect(self._ends, (known.end, known.number))
        self._ends.insert(place, (known.end, known.number))
        self.running.insert(place, known)

    def stop(self, known: PolicyJob) -> None:
        """Let a job run no longer, and take its placement back."""
        place = bisect.bisect_left(self._ends, (known.end, known.number))
        del self._ends[place], self.running[place]
        known.nodes = ()
        if not self._cluster_capacity.is_stale:
            self.free = self.free + known.placement

    def forget(self, known: PolicyJob) -> None:
        """Take a job out of everything."""
        del self.tracked[known.job.key]
        if known.nodes:
            self.stop(known)
        else:
            self.queue.remove(known.job)

    def end(self, known: PolicyJob) -> None:
        """Take a job out of everything because it has ended."""
        self.forget(known)
        self.ended.append(known.job)

    def refresh_nodes(self) -> list[Machine] | None:
        """Work out anew what is free if nodes have changed, and return the machines as they are now; None if not."""
        if not self._cluster_capacity.is_stale:
            return None
        machines, self.free = self._cluster_capacity.recompute()
        for known in self.running:
            known.placement = self.free.taken_by(known.job, self._cluster_capacity.machine_ids(known.nodes))
            self.free = self.free - known.placement
        # Whoever looks only at what is new must look at the whole queue again.
        self.arrived = list(self.queue)
        return machines


def _has_known_length(job: Job) -> bool:
    return job.walltime is not None or isinstance(job, PodJob)
