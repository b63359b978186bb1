"""Lets jobs arrive: at its submission time each job's pods are created, or a little later, as by a Job controller.

Only the next arrival is on the agenda at any moment, so a long trace costs no memory there. Jobs of one instant arrive
in the workload's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from batkube.cluster.client import Refused
from batkube.cluster.outcomes import NEVER, Past
from batkube.cluster.world import World
from batkube.execution.job_makers import JobMaker
from batkube.execution.latencies import Delays
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant
from batkube.workloads.model import Job


class Submission:
    """Submits `jobs`, which must be ascending by submission time."""

    def __init__(
        self,
        world: World,
        jobs: Iterable[Job],
        maker: JobMaker,
        delays: Delays | None = None,
    ) -> None:
        """`delays` is None when nothing is delayed."""
        self._jobs: Iterator[Job] = iter(jobs)
        self._next: Job | None = next(self._jobs, None)
        self._agenda = world.agenda
        self._journal = world.journal
        self.maker = maker
        self._delays = delays
        #: Told of a job that the API refuses, and why.
        self.on_refusal: Callable[[Job, str, Instant], None] = lambda job, why, now: None

    def begin(self) -> None:
        """Book the first arrival."""
        if self._next is not None:
            self._agenda.book(self._next.submit, Rank.SUBMIT, self._submit)

    def _submit(self, now: Instant) -> None:
        while self._next is not None and self._next.submit == now:
            self._submit_one(self._next, now)
            self._next = next(self._jobs, None)
        self.begin()

    def add(self, job: Job, now: Instant) -> None:
        """Let a job arrive that was not known before: one that a scheduler makes."""
        self._agenda.book(now, Rank.SUBMIT, lambda at: self._submit_one(job, at))

    def _submit_one(self, job: Job, now: Instant) -> None:
        self._journal.append(now, "submit", job=job.key)
        self._spawn(job, now, NEVER)

    def resubmit(self, job: Job, past: Past, now: Instant) -> None:
        """Queue a job again whose pods were stopped or lost, at the end of the queue."""
        self._agenda.book(now, Rank.SUBMIT, lambda at: self._again(job, past, at))

    def _again(self, job: Job, past: Past, now: Instant) -> None:
        self._journal.append(now, "resubmit", job=job.key)
        self._spawn(job, now, past)

    def _spawn(self, job: Job, now: Instant, past: Past) -> None:
        there = now if self._delays is None else self._delays.until_spawned(now)
        if there == now:
            self._make(job, now, past)
        else:
            self._agenda.book(there, Rank.SUBMIT, lambda at: self._make(job, at, past))

    def _make(self, job: Job, now: Instant, past: Past) -> None:
        try:
            self.maker.make(job, now, past)
        except Refused as refusal:
            self.on_refusal(job, refusal.message, now)
