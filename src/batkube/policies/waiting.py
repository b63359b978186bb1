"""Jobs that wait, in an order of the policy's own."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable

from batkube.workloads.model import Job

Precedence = int | tuple[int, ...]


class Waiting:
    """Holds waiting jobs by rank, the lowest first; jobs of equal rank in the order they were added.

    A policy with an order other than submission adds `view.arrived` at each call and asks for the head, which costs
    a logarithm per job where sorting `view.queue` at each call would cost the whole queue. A job that was started is
    no longer in the queue, and so is passed over, as is the second of a job that arrived twice.
    """

    def __init__(self, rank: Callable[[Job], Precedence]) -> None:
        self._rank = rank
        #: A heap of (rank, number of the addition, job); the number makes the order total.
        self._heap: list[tuple[Precedence, int, Job]] = []
        self._added = 0

    def add(self, jobs: Iterable[Job]) -> None:
        """Put `jobs` in their places."""
        for job in jobs:
            heapq.heappush(self._heap, (self._rank(job), self._added, job))
            self._added += 1

    def head(self, queue: Collection[Job]) -> Job | None:
        """Return the job of the lowest rank that is in `queue` still, or None; jobs may leave it in many ways."""
        while self._heap and self._heap[0][2] not in queue:
            heapq.heappop(self._heap)
        return self._heap[0][2] if self._heap else None
