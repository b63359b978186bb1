"""Which scheduler a job's pods ask for by name, when real programs schedule.

A pod whose `schedulerName` nobody serves waits for ever. So a job that names no scheduler, or one that is not there,
goes to the run's main one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from batkube.cluster.mapping import ANY_SCHEDULER
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.programs.command_lines import names_served
from batkube.programs.program import OutsideScheduler
from batkube.workloads.model import Job

_NOTE = FidelityNote("scheduler", "jobs ask for a scheduler that the run has not; its main one took them")


def served_jobs(jobs: Iterable[Job], schedulers: Sequence[OutsideScheduler], notes: FidelityNotes) -> Iterator[Job]:
    """Yield the jobs, each naming a scheduler that is there."""
    main, *_ = served = [name for scheduler in schedulers for name in names_served(scheduler)]
    for job in jobs:
        if job.scheduler in served:
            yield job
            continue
        if job.scheduler not in ANY_SCHEDULER:
            notes.add(_NOTE, example=f"job {job.key} asks for {job.scheduler!r}")
        yield msgspec.structs.replace(job, scheduler=main)
