"""schedule.csv: the whole run in one row, Batsim v4's columns (lexicographic), then ours.

Batsim's `scheduling_time` and `simulation_time` are real seconds. They are empty here, because outputs of repeated runs
are byte-identical; the manifest has them.
"""

from __future__ import annotations

import csv
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path

from batkube.cluster.jobs.outcomes import ONE_ATTEMPT, FinalState, Outcome
from batkube.cluster.nodes.resource_usage import ResourceUsage
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant, as_float_s, format_seconds
from batkube.kernel.measured_window import NO_TRIM, Trim, window_of
from batkube.kernel.quantities import CPU, MACHINE
from batkube.outputs.job_statistics import UTILISATION_PREFIX, MeasuredJob, job_statistics_of, mean
from batkube.outputs.writers.streaming_csv import MachineStatesWriter

_KILLED = (FinalState.KILLED, FinalState.WALLTIME)


def summary_of(
    outcomes: Sequence[Outcome],
    states: MachineStatesWriter,
    usage: ResourceUsage,
    *,
    machine_count: int,
    whole_machines: bool,
    job_count: int,
    version: str,
    warm_up: Trim = NO_TRIM,
    cool_down: Trim = NO_TRIM,
) -> dict[str, str | int]:
    """Return the row by column name.

    `states` has the time that machines were busy, absent and asleep, and `usage` the resources that pods held.
    `machine_count` includes nodes that programs created. `job_count` includes jobs without an outcome. Means and maxima
    are over the jobs between `warm_up` and `cool_down`.
    """
    ran = [outcome for outcome in outcomes if outcome.started is not None]
    makespan = max((outcome.finished for outcome in ran if outcome.finished is not None), default=Instant(0))
    window = window_of([outcome.job.submit for outcome in outcomes], warm_up, cool_down)
    measured = [outcome for outcome in ran if window.contains(outcome.job.submit)]
    waits = _durations(done.started - done.job.submit for done in measured if done.started is not None)
    turnarounds = _durations(done.finished - done.job.submit for done in measured if done.finished is not None)
    slowdowns = _slowdowns(measured)
    counts = Counter(map(attrgetter("state"), outcomes))
    repeated = [outcome.past for outcome in outcomes if outcome.past is not ONE_ATTEMPT]
    sleeping, switching_on, switching_off = map(format_seconds, states.asleep_machine_ns)
    begin, end = window.begin, window.usage_end(makespan if ran else states.busy_until)
    requested = {name for outcome in outcomes for name, _ in outcome.job.requests}
    shares = _utilisations(usage, requested, begin, end, whole_machines=whole_machines)
    return {
        "batsim_version": f"batkube-{version}",
        "consumed_joules": -1,
        "makespan": format_seconds(makespan) if ran else "",
        "max_slowdown": _format_decimal(max(slowdowns, default=None)),
        "max_turnaround_time": _aggregate_seconds(max, turnarounds),
        "max_waiting_time": _aggregate_seconds(max, waits),
        "mean_slowdown": _format_decimal(mean(slowdowns)),
        "mean_turnaround_time": _aggregate_seconds(_mean, turnarounds),
        "mean_waiting_time": _aggregate_seconds(_mean, waits),
        "nb_computing_machines": machine_count,
        "nb_grouped_switches": 0,
        "nb_jobs": job_count,
        "nb_jobs_finished": len(ran),
        "nb_jobs_killed": sum(counts[state] for state in _KILLED),
        "nb_jobs_success": counts[FinalState.SUCCESS],
        "nb_machine_switches": 0,
        "scheduling_time": "",
        "simulation_time": "",
        "success_rate": f"{counts[FinalState.SUCCESS] / max(1, job_count):.6f}",
        "time_computing": format_seconds(states.busy_machine_ns),
        "time_idle": format_seconds(_idle_ns(states, makespan)),
        "time_sleeping": sleeping,
        "time_switching_off": switching_off,
        "time_switching_on": switching_on,
        "mean_utilisation": _format_decimal(shares.pop("mean_utilisation")),
        "time_unavailable": format_seconds(states.absent_machine_ns),
        "work_lost": format_seconds(sum(past.lost_work for past in repeated) // 1000),
        "measured_from": format_seconds(begin),
        "measured_until": format_seconds(end),
        "nb_jobs_measured": len(measured),
        "nb_jobs_failed": counts[FinalState.FAILED],
        "nb_jobs_rejected": counts[FinalState.REJECTED],
        "nb_evictions": sum(past.evictions for past in repeated),
        "throughput": _format_decimal(_throughput(ran, begin, end)),
        **{name: _format_decimal(value) for name, value in job_statistics_of(_measured_jobs(measured)).items()},
        **{name: _format_decimal(share) for name, share in shares.items()},
    }


def _idle_ns(states: MachineStatesWriter, makespan: Instant) -> int:
    """Return the idle time of existing machines; late reports may keep them busy past the makespan."""
    existing_ns = states.machine_count * max(makespan, states.busy_until) + states.created_machine_ns
    used_ns = states.busy_machine_ns + states.absent_machine_ns + sum(states.asleep_machine_ns)
    return max(0, existing_ns - used_ns)


def _measured_jobs(ran: Iterable[Outcome]) -> Iterator[MeasuredJob]:
    for outcome in ran:
        if outcome.finished is not None and outcome.started is not None:
            job, started, finished = outcome.job, outcome.started, outcome.finished
            times = as_float_s(started - job.submit), as_float_s(finished - job.submit), as_float_s(finished - started)
            yield MeasuredJob(*times, job.size, job.user)


def _throughput(ran: Iterable[Outcome], begin: Instant, end: Instant) -> float | None:
    """Return the number of jobs that ended in the window, whenever they were submitted, per hour of it."""
    count = sum(outcome.finished is not None and begin <= outcome.finished <= end for outcome in ran)
    return count * 3600 * NANOSECONDS_PER_SECOND / (end - begin) if end > begin else None


def _format_decimal(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def write_schedule(path: Path, summary: dict[str, str | int]) -> None:
    """Write the header and the row."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(summary.keys())
        writer.writerow(summary.values())


def _durations(lengths_ns: Iterable[int]) -> Sequence[int]:
    """Store nanoseconds in a quarter of the memory of a list: a trace has many jobs."""
    return array("q", lengths_ns)


def _aggregate_seconds(measure: Callable[[Sequence[int]], int], lengths_ns: Sequence[int]) -> str:
    """Return a measure of durations in seconds; empty for none, since 0 would look like a good result."""
    return format_seconds(measure(lengths_ns)) if lengths_ns else ""


def _mean(values: Sequence[int]) -> int:
    return round(sum(values) / len(values))


def _slowdowns(ran: Iterable[Outcome]) -> Sequence[float]:
    """Return turnaround / execution of each job that took any time."""
    return array(
        "d",
        (
            (outcome.finished - outcome.job.submit) / (outcome.finished - outcome.started)
            for outcome in ran
            if outcome.finished is not None and outcome.started is not None and outcome.finished > outcome.started
        ),
    )


def _utilisations(
    usage: ResourceUsage, requested: set[str], begin: Instant, end: Instant, *, whole_machines: bool
) -> dict[str, float | None]:
    """Return the columns for the share of the nodes' capacity that pods held from `begin` to `end`.

    With `whole_machines`, it is the share of machines; otherwise there is a column for cpu and for each other resource
    that jobs `requested` or pods held.
    """
    main = MACHINE if whole_machines else CPU
    names = requested.union(usage.resources_held)
    more = [] if whole_machines else [name for name in sorted(names) if usage.was_offered(name)]
    shares = {name: usage.utilisation(name, begin, end) for name in (main, *more)}
    return {"mean_utilisation": shares[main], **{f"{UTILISATION_PREFIX}{name}": shares[name] for name in more}}
