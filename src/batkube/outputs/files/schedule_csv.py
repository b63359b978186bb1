"""schedule.csv: the whole run in one row, Batsim v4's columns (lexicographic), then ours.

Batsim's `scheduling_time` and `simulation_time` are real seconds. They are left empty here, because outputs repeat byte
for byte; the manifest has them.
"""

from __future__ import annotations

import csv
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path

from batkube.cluster.outcomes import ONCE, FinalState, Outcome
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant, as_float_s, format_seconds
from batkube.kernel.job_measures import UTILISATION_OF, MeasuredJob, mean, measures_of
from batkube.kernel.quantities import CPU
from batkube.kernel.windows import NO_TRIM, Trim, Window, window_of
from batkube.platforms.model import Machine

_KILLED = (FinalState.KILLED, FinalState.WALLTIME)


def summary_of(
    outcomes: Sequence[Outcome],
    *,
    machines: Sequence[Machine],
    whole_machines: bool,
    busy_machine_ns: int,
    busy_until: Instant,
    job_count: int,
    version: str,
    absent_machine_ns: int = 0,
    asleep_machine_ns: Sequence[int] = (0, 0, 0),
    warm_up: Trim = NO_TRIM,
    cool_down: Trim = NO_TRIM,
) -> dict[str, str | int]:
    """Return the row by column name.

    `busy_machine_ns` is how long machines held work, summed over machines, `absent_machine_ns` how long they were of no
    use to anybody, `asleep_machine_ns` how long they slept, were switched on and off, and `busy_until` when the last of
    them was free: after the makespan where the ends of jobs are reported late. `job_count` is of all jobs, also those
    left without an outcome. Means and maxima are of the jobs between `warm_up` and `cool_down`.
    """
    ran = [outcome for outcome in outcomes if outcome.started is not None]
    makespan = max((outcome.finished for outcome in ran if outcome.finished is not None), default=Instant(0))
    window = window_of([outcome.job.submit for outcome in outcomes], warm_up, cool_down)
    measured = [outcome for outcome in ran if window.has(outcome.job.submit)]
    waits = _lengths(one.started - one.job.submit for one in measured if one.started is not None)
    turnarounds = _lengths(one.finished - one.job.submit for one in measured if one.finished is not None)
    slowdowns = _slowdowns(measured)
    states = Counter(map(attrgetter("state"), outcomes))
    setbacks = [outcome.past for outcome in outcomes if outcome.past is not ONCE]
    idle_ns = len(machines) * max(makespan, busy_until) - busy_machine_ns - absent_machine_ns - sum(asleep_machine_ns)
    sleeping, switching_on, switching_off = map(format_seconds, asleep_machine_ns)
    return {
        "batsim_version": f"batkube-{version}",
        "consumed_joules": -1,
        "makespan": format_seconds(makespan) if ran else "",
        "max_slowdown": _decimal(max(slowdowns, default=None)),
        "max_turnaround_time": _seconds(max, turnarounds),
        "max_waiting_time": _seconds(max, waits),
        "mean_slowdown": _decimal(mean(slowdowns)),
        "mean_turnaround_time": _seconds(_mean, turnarounds),
        "mean_waiting_time": _seconds(_mean, waits),
        "nb_computing_machines": len(machines),
        "nb_grouped_switches": 0,
        "nb_jobs": job_count,
        "nb_jobs_finished": len(ran),
        "nb_jobs_killed": sum(states[state] for state in _KILLED),
        "nb_jobs_success": states[FinalState.SUCCESS],
        "nb_machine_switches": 0,
        "scheduling_time": "",
        "simulation_time": "",
        "success_rate": f"{states[FinalState.SUCCESS] / max(1, job_count):.6f}",
        "time_computing": format_seconds(busy_machine_ns),
        "time_idle": format_seconds(max(0, idle_ns)),
        "time_sleeping": sleeping,
        "time_switching_off": switching_off,
        "time_switching_on": switching_on,
        "mean_utilisation": _decimal(_utilisation(ran, machines, whole_machines, window, makespan)),
        "time_unavailable": format_seconds(absent_machine_ns),
        "work_lost": format_seconds(sum(past.work for past in setbacks) // 1000),
        "measured_from": format_seconds(window.begin),
        "measured_until": format_seconds(window.until(makespan)),
        "nb_jobs_measured": len(measured),
        "nb_jobs_failed": states[FinalState.FAILED],
        "nb_jobs_rejected": states[FinalState.REJECTED],
        "nb_evictions": sum(past.evictions for past in setbacks),
        "throughput": _decimal(_throughput(ran, window.begin, window.until(makespan))),
        **{name: _decimal(value) for name, value in measures_of(_measured_jobs(measured)).items()},
        **_utilisations(ran, machines, whole_machines, window, makespan),
    }


def _measured_jobs(ran: Iterable[Outcome]) -> Iterator[MeasuredJob]:
    for outcome in ran:
        if outcome.finished is not None and outcome.started is not None:
            job, started, finished = outcome.job, outcome.started, outcome.finished
            times = as_float_s(started - job.submit), as_float_s(finished - job.submit), as_float_s(finished - started)
            yield MeasuredJob(*times, job.size, job.user)


def _throughput(ran: Iterable[Outcome], begin: Instant, end: Instant) -> float | None:
    """Return how many jobs ended in the window, whenever they came, per hour of it."""
    count = sum(outcome.finished is not None and begin <= outcome.finished <= end for outcome in ran)
    return count * 3600 * NANOSECONDS_PER_SECOND / (end - begin) if end > begin else None


def _decimal(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def write_schedule(path: Path, summary: dict[str, str | int]) -> None:
    """Write the header and the row."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(summary.keys())
        writer.writerow(summary.values())


def _lengths(lengths_ns: Iterable[int]) -> Sequence[int]:
    """Return nanoseconds, kept in a quarter of the memory that a list takes: a trace has many jobs."""
    return array("q", lengths_ns)


def _seconds(measure: Callable[[Sequence[int]], int], lengths_ns: Sequence[int]) -> str:
    """Return a measure of some lengths in seconds; of none it is unknown, and not 0, which would look good."""
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


def _utilisation(
    ran: Sequence[Outcome], machines: Sequence[Machine], whole_machines: bool, window: Window, makespan: Instant
) -> float | None:
    """Return the share of the cluster that jobs held in the window: machines, or requested cpu."""
    offered = len(machines) if whole_machines else sum(machine.cpu_milli for machine in machines)
    return _share(ran, None if whole_machines else CPU, offered, window, makespan)


def _utilisations(
    ran: Sequence[Outcome], machines: Sequence[Machine], whole_machines: bool, window: Window, makespan: Instant
) -> dict[str, str]:
    """Return the share of each resource that any job asked for, where jobs share machines by their requests."""
    if whole_machines:
        return {}
    names = sorted({name for outcome in ran for name, _ in outcome.job.requests})
    offered = {name: sum(machine.capacity.get(name, 0) for machine in machines) for name in names}
    return {
        f"{UTILISATION_OF}{name}": _decimal(_share(ran, name, offered[name], window, makespan))
        for name in names
        if offered[name]
    }


def _share(
    ran: Sequence[Outcome], resource: str | None, offered: int, window: Window, makespan: Instant
) -> float | None:
    """Return how much of what was offered in the window jobs held; of machines where no resource is named.

    None where none ran, or the window has no length.
    """
    used, begin, end = 0, window.begin, window.until(makespan)
    for outcome in ran:
        if outcome.finished is not None and outcome.started is not None:
            inside = min(outcome.finished, end) - max(outcome.started, begin)
            if inside > 0:
                amount = 1 if resource is None else dict(outcome.job.requests).get(resource, 0)
                used += outcome.job.size * amount * inside
    return used / (offered * (end - begin)) if ran and offered and end > begin else None
