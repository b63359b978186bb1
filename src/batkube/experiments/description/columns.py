"""The columns of results.csv and timings.csv."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterable

from batkube.cluster.nodes.resource_usage import ResourceUsage
from batkube.outputs.measures.metric_columns import COMPLETED
from batkube.outputs.writers.schedule_csv import summary_of
from batkube.outputs.writers.streaming_csv import MachineStatesWriter

#: Columns that identify the run of a row; the axes stand after the first.
RUN, SEED, REPEAT, STATE = "run", "seed", "repeat", "state"
#: Further columns of schedule.csv in paced runs (`pacing.tally`).
PACED_COLUMNS = ("cycles", "cycles_cut_short", "decisions", "late_decisions", "mean_lateness", "max_lateness")
#: Its further columns for jobs of many pods, and for schedulers that share a cluster (`simulation.record`).
PROGRAM_COLUMNS = ("nb_jobs_deadlocked", "nb_bindings_refused", "nb_pods_rejected")
#: Number of pods that were bound to a node without room for them: in paced runs from schedule.csv, which has its own
#: name for it, otherwise from the fidelity notes.
OVERALLOCATIONS, PACED_OVERALLOCATIONS = "overallocations", "over_allocations"
#: How often the scheduler violated a rule that every cluster enforces, of any kind.
VIOLATIONS = "nb_violations"
#: The columns of timings.csv after the run, in order. They are real times, so results.csv does not have them.
TIMING_COLUMNS = ("real_s", "cpu_s", "scheduler_cpu_s", "peak_memory_bytes", "virtual_per_real")
#: A column that reports add to each run: the digest of its journal.
DIGEST = "digest"

#: Columns of schedule.csv that results.csv omits: only there for Batsim, or available elsewhere.
_EXCLUDED_COLUMNS = (
    PACED_OVERALLOCATIONS,
    "batsim_version",
    "consumed_joules",
    "nb_grouped_switches",
    "nb_machine_switches",
    "scheduling_time",
    "simulation_time",
    "time_sleeping",
    "time_switching_off",
    "time_switching_on",
)


@functools.cache
def measured_columns() -> tuple[str, ...]:
    """Return the columns of every schedule.csv that are results, in their order."""
    states = MachineStatesWriter(io.StringIO(), 0)
    usage = ResourceUsage()
    empty = summary_of((), states, usage, machine_count=0, whole_machines=True, job_count=0, version="")
    return result_columns_among(empty)


def result_columns_among(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of a schedule.csv that are results."""
    return tuple(name for name in names if name not in _EXCLUDED_COLUMNS)


@functools.cache
def number_columns() -> tuple[str, ...]:
    """Return the columns that have a number for each run, which figures can show."""
    return (
        *measured_columns(),
        *PROGRAM_COLUMNS,
        *PACED_COLUMNS,
        VIOLATIONS,
        OVERALLOCATIONS,
        *TIMING_COLUMNS,
        COMPLETED,
    )


@functools.cache
def reserved_columns() -> tuple[str, ...]:
    """Return the names that an axis must not have."""
    return (RUN, SEED, REPEAT, STATE, DIGEST, *number_columns())
