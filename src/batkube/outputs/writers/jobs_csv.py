"""jobs.csv: one row per job, with Batsim v4's columns, then ours."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from batkube.cluster.jobs.outcomes import FinalState, Outcome
from batkube.kernel.instants import format_seconds
from batkube.kernel.intervals import format_intervals
from batkube.kernel.quantities import CPU
from batkube.workloads.model import Job

BATSIM_COLUMNS = (
    "job_id",
    "workload_name",
    "profile",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "final_state",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
    "consumed_energy",
    "metadata",
)
BATKUBE_COLUMNS = (
    "user",
    "priority",
    "scheduler",
    "scheduled_time",
    "evictions",
    "cpu",
    "tries",
    "attempts",
    "work_lost",
)


#: Only if a program places jobs of many pods: the form in which a job was submitted, when its scheduler admitted it,
#: and how long some of its pods held nodes while others had none.
GANG_COLUMNS = ("submitted_as", "admitted_time", "member_wait")


class ExtraColumns(NamedTuple):
    """Columns that only some runs have, at the end of each row."""

    names: tuple[str, ...] = ()
    cells_of: Callable[[Job], Sequence[str]] = lambda _: ()


_NO_EXTRA = ExtraColumns()


def write_jobs(
    path: Path,
    outcomes: Iterable[Outcome],
    more: ExtraColumns = _NO_EXTRA,
    joules_of: Mapping[str, float] | None = None,
) -> None:
    """Write the rows sorted by workload, then by job id as a string, as Batsim v4 does.

    `joules_of` is the energy that jobs used, by their keys; None if it was not measured.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(BATSIM_COLUMNS + BATKUBE_COLUMNS + more.names)
        # Two stable sorts need less memory than a sort by pairs, of which a long trace would have many.
        ordered = sorted(outcomes, key=attrgetter("job.name"))
        ordered.sort(key=attrgetter("job.workload"))
        for outcome, row in zip(ordered, _rows(ordered, joules_of), strict=True):
            writer.writerow([*row, *more.cells_of(outcome.job)])


def _rows(outcomes: Iterable[Outcome], joules_of: Mapping[str, float] | None) -> Iterator[list[str | int]]:
    for outcome in outcomes:
        job, past = outcome.job, outcome.past
        walltime = "-1.000000" if job.walltime is None else format_seconds(job.walltime)
        cpu_milli = dict(job.requests).get(CPU)
        yield [
            job.name,
            job.workload,
            job.profile.name,
            format_seconds(job.submit),
            job.size,
            walltime,
            int(outcome.state is FinalState.SUCCESS),
            outcome.state.value,
            *_time_cells(outcome),
            format_intervals(outcome.machines) if outcome.started is not None else "",
            -1 if joules_of is None else f"{joules_of.get(job.key, 0.0):.6f}",
            "",
            job.user,
            job.priority,
            job.scheduler,
            "" if outcome.scheduled is None else format_seconds(outcome.scheduled),
            past.evictions,
            "" if cpu_milli is None else f"{cpu_milli // 1000}.{cpu_milli % 1000:03d}",
            job.size * max(1, past.attempts) if past.pod_count is None else past.pod_count,
            past.attempts,
            format_seconds(past.lost_work // 1000),
        ]


def _time_cells(outcome: Outcome) -> list[str]:
    """Return start, execution, finish, waiting, turnaround and stretch; empty for a job that never ran.

    The stretch of a job that took no time at all is undefined, and left empty.
    """
    started, finished, submit = outcome.started, outcome.finished, outcome.job.submit
    if started is None or finished is None:
        return [""] * 6
    execution, turnaround = finished - started, finished - submit
    return [
        format_seconds(started),
        format_seconds(execution),
        format_seconds(finished),
        format_seconds(started - submit),
        format_seconds(turnaround),
        f"{turnaround / execution:.6f}" if execution else "",
    ]
