"""Courses: what the pods of one job do together.

A job's work begins when the last of its pods runs and ends for all of them at once, so schedulers of jobs and kubelets
alike look from a pod to its course. A course lives from its pods' creation until they are all gone; a job that was
stopped and queued again gets a new one, which knows its past.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from batkube.cluster.jobs.outcomes import NO_ATTEMPTS, ONE_ATTEMPT, FinalState, PastAttempts
from batkube.cluster.store import Key
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import CPU, MACHINE
from batkube.workloads.model import Job, Requests

#: Of all courses whose pods no controller makes: a long trace has many.
_NO_RELEASE_TIMES: dict[int, Instant] = {}


class JobExecution:
    """The pods of one job, and how far they have come; index i of every list is the pod of rank i."""

    __slots__ = (
        "aborted",
        "created",
        "creation_times",
        "demand",
        "end_appointment",
        "ended",
        "has_lost_node",
        "job",
        "keys",
        "machine_ids",
        "nodes",
        "owner",
        "past",
        "release_times",
        "running_count",
        "scheduled",
        "started",
        "state",
    )

    def __init__(self, job: Job, keys: list[Key], demand: Requests, created: Instant, past: PastAttempts) -> None:
        self.job = job
        self.keys = keys
        #: What each pod takes from its node.
        self.demand = demand
        self.created = created
        self.past = past
        #: Of pods that a controller makes: who that is, `Job/w0-7`, when each came, and when it left its node; the keys
        #: of those still to come are "".
        self.owner = ""
        self.creation_times: list[Instant] | None = None
        self.release_times = _NO_RELEASE_TIMES
        size = job.size
        #: The machine that each pod was bound to, the node that holds it, when that admitted it, when the pod came up.
        self.machine_ids: list[int | None] = [None] * size
        self.nodes: list[str | None] = [None] * size
        self.scheduled: list[Instant | None] = [None] * size
        self.started: list[Instant | None] = [None] * size
        #: How many pods have come up; the work begins when all have.
        self.running_count = 0
        #: The end of the work, while it goes on.
        self.end_appointment: int | None = None
        #: How the work ended, and when; None before, and when it was broken off.
        self.state: FinalState | None = None
        self.ended: Instant | None = None
        #: When a pod was taken from the course before its end, and whether that was because its node failed or is gone.
        self.aborted: Instant | None = None
        self.has_lost_node = False

    @property
    def is_owned(self) -> bool:
        """Whether a controller makes its pods, and clears them away."""
        return self.creation_times is not None

    @property
    def began(self) -> Instant | None:
        """When the last pod came up; None while some have not."""
        return None if None in self.started else max(cast(list[Instant], self.started))

    @property
    def was_placed(self) -> bool:
        """Whether nodes have admitted its pods."""
        return self.scheduled.count(None) < len(self.scheduled)

    @property
    def past_if_completed(self) -> PastAttempts:
        """The job's past once this course has ended for what it was meant to be."""
        if not self.was_placed:
            return self.past
        return ONE_ATTEMPT if self.past is NO_ATTEMPTS else self.past._replace(attempts=self.past.attempts + 1)

    def past_if_discarded(self, now: Instant) -> PastAttempts:
        """Return the job's past if this course, too, comes to nothing: with what its pods did until it broke."""
        until = now if self.aborted is None else self.aborted
        ran = sum(until - started for started in self.started if started is not None)
        return self.past_if_completed._replace(lost_work=self.past.lost_work + work_milli(dict(self.demand)) * ran)


def work_milli(demand: Mapping[str, int]) -> int:
    """Return what the time of a pod with this demand counts: thousandths of a machine if it has one, or of a core."""
    return 1000 if MACHINE in demand else demand.get(CPU, 0)


class ExecutionDriver(Protocol):
    """Who knows what courses are about."""

    def record_binding(self, course: JobExecution, ranks: Sequence[int], nodes: Sequence[str], now: Instant) -> None:
        """Hear that pods of the course were bound, before their nodes have admitted them."""

    #: Told when work ends whose end was not known when it began. Set by whoever looks after the pods.
    on_end: Callable[[JobExecution, Instant], None] | None

    def start(self, course: JobExecution, now: Instant) -> Instant | None:
        """All pods of the course run: return when its work ends, and settle how; None when that is to be seen."""

    def complete(self, course: JobExecution, now: Instant) -> None:
        """All pods of the course have ended with it, where nobody reads that from their status."""

    def abort(self, course: JobExecution, now: Instant) -> None:
        """The course was broken off, and its work with it."""

    def handle_node_loss(self, course: JobExecution, now: Instant) -> None:
        """A node with pods of the course failed or is gone, and what they did with it."""


ExecutionGroup = tuple[JobExecution, Sequence[int], Sequence[int]]
"""Pods of one course in a batch: where in the batch they stand, and their ranks. A tuple, for its speed."""


class JobExecutions:
    """Which course a pod has part in, and as which rank."""

    def __init__(self) -> None:
        #: Exactly the pods of live courses.
        self._by_pod: dict[Key, tuple[JobExecution, int]] = {}

    def add(self, course: JobExecution) -> None:
        """Take up a new course."""
        self._by_pod.update(zip(course.keys, zip(itertools.repeat(course), itertools.count()), strict=False))

    def add_pod(self, course: JobExecution, rank: int, key: Key) -> None:
        """Let a pod that is made later have part in a course."""
        course.keys[rank] = key
        self._by_pod[key] = course, rank

    def remove(self, course: JobExecution) -> None:
        """Forget a course whose pods are gone."""
        for key in course.keys:
            self._by_pod.pop(key, None)

    def live(self) -> list[JobExecution]:
        """Return the courses that have pods, in the order in which they were taken up."""
        return list(dict.fromkeys(course for course, _ in self._by_pod.values()))

    def find(self, key: Key) -> tuple[JobExecution, int] | None:
        """Return the course and the rank of a pod; None when it has a life of its own."""
        return self._by_pod.get(key)

    def group_by_execution(self, keys: Sequence[Key]) -> Sequence[ExecutionGroup]:
        """Return the courses that the pods `keys` have part in, leaving out pods of none.

        Mostly the pods are exactly those of one course, and the very list it has; then only the first is looked up.
        """
        place = self._by_pod.get(keys[0]) if keys else None
        if place is not None and keys is place[0].keys:
            ranks = range(len(keys))
            return ((place[0], ranks, ranks),)
        places = [(position, self._by_pod.get(key)) for position, key in enumerate(keys)]
        known = [(position, place[0], place[1]) for position, place in places if place is not None]
        grouped = ((course, list(group)) for course, group in itertools.groupby(known, key=lambda entry: entry[1]))
        return [(course, [entry[0] for entry in some], [entry[2] for entry in some]) for course, some in grouped]
