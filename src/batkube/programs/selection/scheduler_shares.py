"""Assigns jobs to schedulers by name, if real programs schedule.

A pod whose `schedulerName` no scheduler serves stays pending forever. A job that names a scheduler that is not part of
the run therefore gets the main scheduler. A job that names none gets the main one or, with `shares`, another one.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from batkube.cluster.mapping import ANY_SCHEDULER
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.programs.program import ExternalProgram
from batkube.programs.startup.command_lines import served_scheduler_names
from batkube.workloads.model import Job

_NOTE = FidelityNote("scheduler", "jobs name a scheduler that is not part of the run; the main one schedules them")


def assign_schedulers(
    jobs: Iterable[Job], schedulers: Sequence[ExternalProgram], notes: FidelityNotes, shares: SchedulerShares
) -> Iterator[Job]:
    """Yield the jobs, each with a scheduler of the run. Jobs that name none are distributed by `shares`."""
    main, *_ = names = [name for scheduler in schedulers for name in served_scheduler_names(scheduler)]
    for job in jobs:
        if job.scheduler in names:
            yield job
            continue
        name = main
        if job.scheduler in ANY_SCHEDULER:
            name = shares.draw() or main
        else:
            notes.add(_NOTE, example=f"job {job.key} names {job.scheduler!r}")
        yield msgspec.structs.replace(job, scheduler=name)


class SchedulerShares:
    """Draws the scheduler of each job that names none."""

    def __init__(self, shares: Mapping[str, float], stream: random.Random) -> None:
        self._shares = shares
        self._stream = stream

    def draw(self) -> str:
        """Draw one of the additional schedulers with the probability of its share; "" stands for the main one."""
        if not self._shares:
            return ""
        draw = self._stream.random()
        for name, share in self._shares.items():
            draw -= share
            if draw < 0:
                return name
        return ""
