"""Waiting jobs in an order of the policy's own."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable

from batkube.workloads.model import Job

Precedence = int | tuple[int, ...]


class Waiting:
    """A priority queue of waiting jobs, lowest rank first; jobs of equal rank in the order of addition.

    A policy whose order is not that of submission adds `view.arrived` at each call and reads the
    head. That costs a logarithm per job, whereas sorting `view.queue` at each call costs the whole
    queue. Jobs that are no longer in the queue are skipped, as are duplicates of a job that arrived
    twice.
    """

    def __init__(self, rank: Callable[[Job], Precedence]) -> None:
        self._rank = rank
        #: A heap of (rank, number of the addition, job); the number makes the order total.
        self._heap: list[tuple[Precedence, int, Job]] = []
        self._added = 0

    def add(self, jobs: Iterable[Job]) -> None:
        """Add jobs."""
        for job in jobs:
            heapq.heappush(self._heap, (self._rank(job), self._added, job))
            self._added += 1

    def head(self, queue: Collection[Job]) -> Job | None:
        """Return the job of the lowest rank that is still in `queue`, or None."""
        while self._heap and self._heap[0][2] not in queue:
            heapq.heappop(self._heap)
        return self._heap[0][2] if self._heap else None
