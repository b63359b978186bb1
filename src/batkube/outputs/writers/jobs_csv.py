"""jobs.csv: one row per job, with Batsim v4's columns, then ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from batkube.cluster.jobs.outcomes import FinalState, Outcome
from batkube.kernel.instants import format_seconds
from batkube.kernel.intervals import format_intervals
from batkube.kernel.quantities import CPU
from batkube.outputs.writers.csv_fields import csv_field, format_cores
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
    extra: ExtraColumns = _NO_EXTRA,
    joules_of: Mapping[str, float] | None = None,
) -> None:
    """Write the rows sorted by workload, then by job id as a string, as Batsim v4 does.

    `joules_of` is the energy that jobs used, by their keys; None if it was not measured.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(BATSIM_COLUMNS + BATKUBE_COLUMNS + extra.names) + "\n")
        # Two stable sorts need less memory than a sort by pairs: a long trace would have many pairs.
        ordered = sorted(outcomes, key=attrgetter("job.name"))
        ordered.sort(key=attrgetter("job.workload"))
        for outcome in ordered:
            joules = "-1" if joules_of is None else f"{joules_of.get(outcome.job.key, 0.0):.6f}"
            cells = "".join(f",{csv_field(cell)}" for cell in extra.cells_of(outcome.job))
            file.write(f"{_row(outcome, joules)}{cells}\n")


def _row(outcome: Outcome, joules: str) -> str:
    job, past = outcome.job, outcome.past
    walltime = "-1.000000" if job.walltime is None else format_seconds(job.walltime)
    machines = "" if outcome.started is None else format_intervals(outcome.machines)
    scheduled = "" if outcome.scheduled is None else format_seconds(outcome.scheduled)
    cpu_milli = dict(job.requests).get(CPU)
    cpu = "" if cpu_milli is None else format_cores(cpu_milli)
    pods = job.size * max(1, past.attempts) if past.pod_count is None else past.pod_count
    return (
        f"{csv_field(job.name)},{csv_field(job.workload)},{csv_field(job.profile.name)},{format_seconds(job.submit)},"
        f"{job.size},{walltime},{outcome.state is FinalState.SUCCESS:d},{outcome.state.value},{_times(outcome)},"
        f"{machines},{joules},,{csv_field(job.user)},{job.priority},{csv_field(job.scheduler)},{scheduled},"
        f"{past.evictions},{cpu},{pods},{past.attempts},{format_seconds(past.lost_work // 1000)}"
    )


def _times(outcome: Outcome) -> str:
    """Return start, execution, finish, waiting, turnaround and stretch; empty for a job that never ran.

    The stretch of a job that took no time at all is undefined, and left empty.
    """
    started, finished, submit = outcome.started, outcome.finished, outcome.job.submit
    if started is None or finished is None:
        return "," * 5
    execution, turnaround = finished - started, finished - submit
    stretch = f"{turnaround / execution:.6f}" if execution else ""
    return (
        f"{format_seconds(started)},{format_seconds(execution)},{format_seconds(finished)},"
        f"{format_seconds(started - submit)},{format_seconds(turnaround)},{stretch}"
    )
