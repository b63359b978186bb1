"""Count what a transformation changed, by comparing the jobs before and after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from batkube.workloads.model import Job, Workload
from batkube.workloads.run_times import run_time

#: Phrases for values that differ, apart from walltimes.
_VALUES: tuple[tuple[str, Callable[[Job], object]], ...] = (
    ("submission times changed", lambda job: job.submit),
    ("run times changed", lambda job: run_time(job.profile)),
    ("sizes changed", lambda job: job.size),
    ("requests changed", lambda job: job.requests),
    ("schedulers changed", lambda job: job.scheduler),
    ("gang terms changed", lambda job: job.gang),
)


def changes_between(before: Workload, after: Workload) -> dict[str, int]:
    """Count the jobs that were left out, and those whose values changed, by phrase."""
    counts: Counter[str] = Counter()
    old_jobs = {job.name: job for job in before.jobs}
    for job in after.jobs:
        old = old_jobs[job.name]
        if old is job:
            continue
        for phrase, value_of in _VALUES:
            counts[phrase] += value_of(old) != value_of(job)
        if old.walltime != job.walltime:
            counts[_walltime_change(old, job)] += 1
    left_out = {"jobs left out": len(before.jobs) - len(after.jobs)}
    return {phrase: count for phrase, count in (left_out | counts).items() if count}


def _walltime_change(old: Job, new: Job) -> str:
    if old.walltime is None:
        return "walltimes added"
    return "walltimes removed" if new.walltime is None else "walltimes replaced"
