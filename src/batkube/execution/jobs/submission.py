"""Submits jobs: their pods are created at the submission time, or after a latency, as by a Job controller.

Only the next submission is on the agenda at any time, so a long trace costs no memory there. Jobs of one instant are
submitted in the workload's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from batkube.cluster.client import ApiError
from batkube.cluster.jobs.outcomes import NO_ATTEMPTS, PastAttempts
from batkube.cluster.world import World
from batkube.execution.jobs.creators import JobCreator
from batkube.execution.latencies.delays import NO_DELAYS, Delays
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant
from batkube.workloads.model import Job


class Submission:
    """Submits `jobs`, which must be sorted by submission time."""

    def __init__(
        self,
        world: World,
        jobs: Iterable[Job],
        creator: JobCreator,
        delays: Delays = NO_DELAYS,
    ) -> None:
        self._jobs: Iterator[Job] = iter(jobs)
        self._next: Job | None = next(self._jobs, None)
        self._agenda = world.agenda
        self._journal = world.journal
        self.creator = creator
        self._delays = delays
        #: Called with a job that the API server rejects, and its message.
        self.on_refusal: Callable[[Job, str, Instant], None] = lambda job, message, now: None

    def start(self) -> None:
        """Book the first submission."""
        if self._next is not None:
            self._agenda.book(self._next.submit, Rank.SUBMIT, self._submit)

    def _submit(self, now: Instant) -> None:
        while self._next is not None and self._next.submit == now:
            self._submit_one(self._next, now)
            self._next = next(self._jobs, None)
        self.start()

    def submit_now(self, job: Job, now: Instant) -> None:
        """Submit a job that a scheduler registers during the run."""
        self._agenda.book(now, Rank.SUBMIT, lambda at: self._submit_one(job, at))

    def _submit_one(self, job: Job, now: Instant) -> None:
        self._journal.append(now, "submit", job=job.key)
        self._create_after_delay(job, now, NO_ATTEMPTS)

    def resubmit(self, job: Job, past: PastAttempts, now: Instant) -> None:
        """Submit a job again whose pods were stopped or lost, at the end of the queue."""
        self._agenda.book(now, Rank.SUBMIT, lambda at: self._resubmit(job, past, at))

    def _resubmit(self, job: Job, past: PastAttempts, now: Instant) -> None:
        self._journal.append(now, "resubmit", job=job.key)
        self._create_after_delay(job, now, past)

    def _create_after_delay(self, job: Job, now: Instant, past: PastAttempts) -> None:
        created = self._delays.spawned_at(now)
        if created == now:
            self._create(job, now, past)
        else:
            self._agenda.book(created, Rank.SUBMIT, lambda at: self._create(job, at, past))

    def _create(self, job: Job, now: Instant, past: PastAttempts) -> None:
        try:
            self.creator.create(job, now, past)
        except ApiError as refusal:
            self.on_refusal(job, refusal.message, now)
