"""Courses: what the pods of one job do together.

A job's work begins when the last of its pods runs and ends for all of them at once, so schedulers of jobs and kubelets
alike look from a pod to its course. A course lives from its pods' creation until they are all gone; a job that was
evicted and queued again gets a new one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Protocol

from batkube.cluster.outcomes import FinalState
from batkube.cluster.store import Key
from batkube.kernel.instants import Instant
from batkube.workloads.model import Job, Requests


class Course:
    """The pods of one job, and how far they have come; index i of every list is the pod of rank i."""

    __slots__ = (
        "created",
        "demand",
        "end_appointment",
        "ended",
        "evictions",
        "job",
        "keys",
        "machine_ids",
        "nodes",
        "running",
        "scheduled",
        "started",
        "state",
    )

    def __init__(self, job: Job, keys: Sequence[Key], demand: Requests, created: Instant, evictions: int) -> None:
        self.job = job
        self.keys = keys
        #: What each pod takes from its node.
        self.demand = demand
        self.created = created
        #: How often the job was stopped to make room.
        self.evictions = evictions
        size = job.size
        #: The machine that each pod was bound to, the node that holds it, when that admitted it, when the pod came up.
        self.machine_ids: list[int | None] = [None] * size
        self.nodes: list[str | None] = [None] * size
        self.scheduled: list[Instant | None] = [None] * size
        self.started: list[Instant | None] = [None] * size
        #: How many pods have come up; the work begins when all have.
        self.running = 0
        #: The end of the work, while it goes on.
        self.end_appointment: int | None = None
        #: How the work ended, and when; None before, and when it was broken off.
        self.state: FinalState | None = None
        self.ended: Instant | None = None

    def is_on(self, node: str, key: Key) -> bool:
        """Return whether the pod `key` of this course is on `node`."""
        return self.nodes[self.keys.index(key)] == node

    @property
    def began(self) -> Instant | None:
        """When the last pod came up; None while some have not."""
        if self.running < len(self.started):
            return None
        return max([instant for instant in self.started if instant is not None])


class Conductor(Protocol):
    """Who knows what courses are about."""

    def bound(self, course: Course, ranks: Sequence[int], nodes: Sequence[str], now: Instant) -> None:
        """Hear that pods of the course were bound, before their nodes have admitted them."""

    def begin(self, course: Course, now: Instant) -> Instant:
        """All pods of the course run: return when its work ends, and settle how."""


CoursePods = tuple[Course, Sequence[int], Sequence[int]]
"""Pods of one course in a batch: where in the batch they stand, and their ranks. A tuple, for its speed."""


class Courses:
    """Which course a pod has part in, and as which rank."""

    def __init__(self) -> None:
        #: Exactly the pods of live courses.
        self._places: dict[Key, tuple[Course, int]] = {}

    def add(self, course: Course) -> None:
        """Take up a new course."""
        self._places.update(zip(course.keys, zip(itertools.repeat(course), itertools.count()), strict=False))

    def remove(self, course: Course) -> None:
        """Forget a course whose pods are gone."""
        for key in course.keys:
            del self._places[key]

    def live(self) -> list[Course]:
        """Return the courses that have pods, in the order in which they were taken up."""
        return list(dict.fromkeys(course for course, _ in self._places.values()))

    def place(self, key: Key) -> tuple[Course, int] | None:
        """Return the course and the rank of a pod; None when it has a life of its own."""
        return self._places.get(key)

    def among(self, keys: Sequence[Key]) -> Sequence[CoursePods]:
        """Return the courses that the pods `keys` have part in, leaving out pods of none.

        Mostly the pods are exactly those of one course, and the very list it has; then only the first is looked up.
        """
        place = self._places.get(keys[0]) if keys else None
        if place is not None and keys is place[0].keys:
            ranks = range(len(keys))
            return ((place[0], ranks, ranks),)
        places = [(position, self._places.get(key)) for position, key in enumerate(keys)]
        known = [(position, place[0], place[1]) for position, place in places if place is not None]
        grouped = ((course, list(group)) for course, group in itertools.groupby(known, key=lambda entry: entry[1]))
        return [(course, [entry[0] for entry in some], [entry[2] for entry in some]) for course, some in grouped]
