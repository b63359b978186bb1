"""Find periods of a trace with a given utilisation of the machine.

The method is that of evalys (Workload.extract_periods_with_given_utilisation, version 4.0.7). The trace is cut into
periods of equal length from the first start on, without the first and the last one. The utilisation of a period is the
mean number of used processors divided by all processors. The jobs *submitted* in a period are its workload.

The usage follows from the recorded starts (submit time plus wait time, fields 2 and 3 of SWF). Workloads in other
formats have no recorded starts: there each job counts from its submission on, which is the offered load.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, Instant, human_duration
from batkube.workloads.files import open_lines
from batkube.workloads.formats.traces import swf
from batkube.workloads.model import Workload
from batkube.workloads.run_times import run_time

BusyInterval = tuple[int, int, int]
"""The execution of one job: (start, end, processors)."""

_MAX_CLOSEST_IN_MESSAGE = 3


@dataclass(frozen=True, slots=True)
class Period:
    """A period of the trace and its mean utilisation."""

    begin: Instant
    end: Instant
    utilisation: float


def recorded_intervals(path: Path) -> list[BusyInterval]:
    """Return the recorded executions in the SWF file `path`, without jobs that lack run time or processors."""
    intervals: list[BusyInterval] = []
    with open_lines(path) as text:
        for number, fields in swf.job_lines(path, text):
            if fields[swf.STATUS] in swf.PARTIAL_STATUSES:
                continue
            submit, wait, run = (
                swf.time_field(path, number, fields, at) for at in (swf.SUBMIT, swf.WAIT, swf.RUN_TIME)
            )
            processors = swf.count_field(path, number, fields, swf.ALLOCATED_PROCESSORS)
            if run >= 0 and processors > 0:
                start = submit + max(wait, 0)
                intervals.append((start, start + run, processors))
    return intervals


def has_recorded_waits(path: Path) -> bool:
    """Return whether any job of the SWF file `path` has a wait time; without them, its starts are unknown."""
    with open_lines(path) as text:
        return any(swf.time_field(path, number, fields, swf.WAIT) >= 0 for number, fields in swf.job_lines(path, text))


def offered_intervals(workload: Workload) -> list[BusyInterval]:
    """Return the executions of the jobs if each started at its submission."""
    intervals: list[BusyInterval] = []
    for job in workload.jobs:
        length = run_time(job.profile)
        if length is not None:
            intervals.append((job.submit, job.submit + length, job.size))
    return intervals


def periods(intervals: Iterable[BusyInterval], processors: int, length: Duration) -> list[Period]:
    """Return the periods of `length` with their mean utilisation, without the first and the last."""
    times, areas, loads = _load_steps(intervals)

    def area_until(at: int) -> int:
        index = bisect.bisect_right(times, at) - 1
        return areas[index] + loads[index] * (at - times[index])

    windows = []
    begins = range(times[0], times[-1], length)
    for begin in begins[1:-1]:
        mean = (area_until(begin + length) - area_until(begin)) / length
        windows.append(Period(Instant(begin), Instant(begin + length), mean / processors))
    return windows


def _load_steps(intervals: Iterable[BusyInterval]) -> tuple[list[int], list[int], list[int]]:
    """Return the instants at which the load changes, with the integral up to each and the load from each on."""
    change_at: dict[int, int] = {}
    for start, end, processors in intervals:
        change_at[start] = change_at.get(start, 0) + processors
        change_at[end] = change_at.get(end, 0) - processors
    times = sorted(change_at)
    loads = list(itertools.accumulate(change_at[at] for at in times))
    steps = (load * (later - at) for load, (at, later) in zip(loads, itertools.pairwise(times), strict=False))
    return times, list(itertools.accumulate(steps, initial=0)), loads


def find_period(
    workload: Workload,
    intervals: Iterable[BusyInterval],
    length: Duration,
    target: float,
    variation: float,
    nth: int = 1,
) -> Period:
    """Return the `nth` period (from 1) whose mean utilisation is within `variation` of `target`."""
    if workload.size_machines is None:
        raise InputError(
            workload.source,
            problem="has no machine size, which utilisation needs",
            remedy="add it with --machines",
        )
    busy_intervals = list(intervals)
    if length <= 0 or not busy_intervals:
        raise InputError(workload.source, problem="utilisation needs a --period longer than 0 and jobs with run times")
    candidates = periods(busy_intervals, workload.size_machines, length)
    matching = [period for period in candidates if target - variation <= period.utilisation <= target + variation]
    if len(matching) < nth:
        closest = sorted(candidates, key=lambda period: abs(period.utilisation - target))[:_MAX_CLOSEST_IN_MESSAGE]
        nearest = ", ".join(f"{period.utilisation:.4f}" for period in closest) or "none, because the trace is too short"
        raise InputError(
            workload.source,
            problem=f"has {len(matching)} periods of {human_duration(length)} with a mean utilisation of "
            f"{target} ± {variation}, not {nth}",
            remedy=f"closest: {nearest}; use a larger --variation or another --period",
        )
    return matching[nth - 1]
