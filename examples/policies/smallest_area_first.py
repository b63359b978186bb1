"""Smallest area first: jobs with the least machine time start first, after jobs that have waited too long."""

from collections.abc import Iterator

from batkube.kernel.instants import duration
from batkube.policies import Decision, Policy, Start, View
from batkube.workloads.model import Job


class SmallestAreaFirst(Policy):
    def __init__(self, patience: str = "1h") -> None:
        self.patience = duration(patience)

    def decide(self, view: View) -> Iterator[Decision]:
        def order(job: Job) -> tuple[bool, int]:
            is_patient = view.now - job.submit < self.patience
            return is_patient, job.size * view.estimate(job) if is_patient else job.submit

        for job in sorted(view.queue, key=order):
            placement = view.free.fit(job)
            if placement is not None:
                yield Start(job, placement)
