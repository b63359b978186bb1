"""Gangs: the pods of one job, seen together.

A job's work begins when the last of its pods runs and ends for all of them at once, so schedulers of jobs and kubelets
alike look from a pod to its gang. A gang lives from its pods' creation until they are all gone; a job that was evicted
and queued again gets a new one.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.store import Key
from batkube.kernel.instants import Instant
from batkube.workloads.model import Job, Requests


class Gang:
    """The live pods of one job."""

    __slots__ = ("created", "demand", "evictions", "job", "keys")

    def __init__(self, job: Job, keys: Sequence[Key], demand: Requests, created: Instant, evictions: int) -> None:
        self.job = job
        #: The pods in order of rank.
        self.keys = keys
        #: What each pod takes from its node.
        self.demand = demand
        self.created = created
        #: How often the job was stopped to make room before these pods were made.
        self.evictions = evictions


class Roster:
    """Which gang, and which rank in it, a pod is."""

    def __init__(self) -> None:
        #: Exactly the pods of live gangs.
        self._places: dict[Key, tuple[Gang, int]] = {}
        #: Returns the gang and rank of a pod, or None when it belongs to no live gang. Asked for every change of every
        #: pod, so it is the dictionary's own method.
        self.find = self._places.get

    def add(self, gang: Gang) -> None:
        """Take up a new gang."""
        for rank, key in enumerate(gang.keys):
            self._places[key] = (gang, rank)

    def remove(self, gang: Gang) -> None:
        """Forget a gang whose pods are gone."""
        for key in gang.keys:
            del self._places[key]
