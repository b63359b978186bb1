"""Which scheduler a job's pods ask for by name, when real programs schedule.

A pod whose `schedulerName` nobody serves waits for ever. So a job that names no scheduler, or one that is not there,
goes to the run's main one, but for those that are shared out to others.
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

_NOTE = FidelityNote("scheduler", "jobs ask for a scheduler that the run has not; its main one took them")


def assign_schedulers(
    jobs: Iterable[Job], schedulers: Sequence[ExternalProgram], notes: FidelityNotes, lots: SchedulerShares
) -> Iterator[Job]:
    """Yield the jobs, each naming a scheduler that is there; those that leave it open are shared out by `lots`."""
    main, *_ = served = [name for scheduler in schedulers for name in served_scheduler_names(scheduler)]
    for job in jobs:
        if job.scheduler in served:
            yield job
            continue
        name = main
        if job.scheduler in ANY_SCHEDULER:
            name = lots.draw() or main
        else:
            notes.add(_NOTE, example=f"job {job.key} asks for {job.scheduler!r}")
        yield msgspec.structs.replace(job, scheduler=name)


class SchedulerShares:
    """Draws for each job the further scheduler that it goes to, if any."""

    def __init__(self, shares: Mapping[str, float], stream: random.Random) -> None:
        self._shares = shares
        self._stream = stream

    def draw(self) -> str:
        """Return the name of a further scheduler, each as often as its share says; "" for the main one."""
        if not self._shares:
            return ""
        lot = self._stream.random()
        for name, share in self._shares.items():
            lot -= share
            if lot < 0:
                return name
        return ""
