"""Gangs: the pods of one job, seen together.

A job's work begins when the last of its pods runs and ends for all of them at once, so what happens to pods is kept
per gang. A gang lives from its pods' creation until they are all gone; a job that was evicted and queued again gets a
new one.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.store import ObjectKey
from batkube.kernel.instants import Instant
from batkube.workloads.model import Job, Requests


class Gang:
    """The live pods of one job; index i of every list is the pod of rank i."""

    __slots__ = (
        "created",
        "demand",
        "evictions",
        "finish_appointment",
        "job",
        "keys",
        "machine_ids",
        "over",
        "released",
        "running",
        "scheduled",
        "started",
    )

    def __init__(self, job: Job, keys: Sequence[ObjectKey], demand: Requests, created: Instant, evictions: int) -> None:
        self.job = job
        self.keys = keys
        #: What each pod takes from its node.
        self.demand = demand
        self.created = created
        self.evictions = evictions
        #: The machine that admitted each pod; None before.
        self.machine_ids: list[int | None] = [None] * job.size
        self.scheduled: list[Instant | None] = [None] * job.size
        self.started: list[Instant | None] = [None] * job.size
        #: How many pods have started; the work begins when it reaches the job's size.
        self.running = 0
        #: The end of the work, once it has begun.
        self.finish_appointment: int | None = None
        #: True once the job's fate is sealed; whatever was still booked for the gang is void then.
        self.over = False
        #: True once the pods' resources were given back to their nodes.
        self.released = False


class Roster:
    """Which gang, and which rank in it, a pod is."""

    def __init__(self) -> None:
        #: Exactly the pods of gangs that are not over.
        self._places: dict[ObjectKey, tuple[Gang, int]] = {}

    def add(self, gang: Gang) -> None:
        """Take up a new gang."""
        for rank, key in enumerate(gang.keys):
            self._places[key] = (gang, rank)

    def find(self, key: ObjectKey) -> tuple[Gang, int] | None:
        """Return the gang and rank of the pod `key`, or None when it belongs to no live gang."""
        return self._places.get(key)

    def remove(self, gang: Gang) -> None:
        """Forget a gang that is over."""
        for key in gang.keys:
            del self._places[key]
