"""Gangs: the pods of one job, seen together.

A job's work begins when the last of its pods runs and ends for all of them at once, so schedulers of jobs and kubelets
alike look from a pod to its gang. A gang lives from its pods' creation until they are all gone; a job that was evicted
and queued again gets a new one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

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
        #: How often the job was stopped to make room.
        self.evictions = evictions


class GangPods(NamedTuple):
    """Pods of one gang in a batch: where in the batch they stand, and their ranks."""

    gang: Gang
    positions: Sequence[int]
    ranks: Sequence[int]


class Roster:
    """Which gang, and which rank in it, a pod is."""

    def __init__(self) -> None:
        #: Exactly the pods of live gangs.
        self._places: dict[Key, tuple[Gang, int]] = {}

    def add(self, gang: Gang) -> None:
        """Take up a new gang."""
        for rank, key in enumerate(gang.keys):
            self._places[key] = (gang, rank)

    def remove(self, gang: Gang) -> None:
        """Forget a gang whose pods are gone."""
        for key in gang.keys:
            del self._places[key]

    def gangs(self, keys: Sequence[Key]) -> Iterator[GangPods]:
        """Yield the gangs that the pods `keys` belong to, leaving out pods of none.

        Mostly the pods are exactly one gang, and the very list it has; then nothing is looked up but the first.
        """
        place = self._places.get(keys[0]) if keys else None
        if place is not None and keys is place[0].keys:
            yield GangPods(place[0], range(len(keys)), range(len(keys)))
            return
        places = [(position, self._places.get(key)) for position, key in enumerate(keys)]
        known = [(position, found[0], found[1]) for position, found in places if found is not None]
        for gang, group in itertools.groupby(known, key=lambda entry: entry[1]):
            entries = list(group)
            yield GangPods(gang, [position for position, _, _ in entries], [rank for _, _, rank in entries])
