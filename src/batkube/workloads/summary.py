"""Statistics of a workload, for `batkube workload show` and for checking a conversion."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from batkube.kernel.instants import NANOSECONDS_PER_SECOND, as_float_s, human_duration
from batkube.kernel.quantities import CPU, MEMORY
from batkube.workloads.model import Workload
from batkube.workloads.run_times import run_time


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of some values. The fields are keys of `batkube workload show --json`."""

    least: float
    mean: float
    median: float
    most: float
    deviation: float

    @staticmethod
    def of(values: Iterable[float]) -> Spread | None:
        """Return the spread of `values`, or None if there are none. The deviation is that of the population."""
        ordered = sorted(values)
        if not ordered:
            return None
        count = len(ordered)
        mean = math.fsum(ordered) / count
        middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in ordered) / count)
        return Spread(ordered[0], mean, middle, ordered[-1], deviation)


@dataclass(frozen=True, slots=True)
class Summary:
    """The statistics of one workload. Times are in nanoseconds; None means unknown."""

    jobs: int
    profiles: int
    users: int
    size_machines: int | None
    first_submit: int
    last_submit: int
    size: Spread
    #: Of the jobs with a fixed run time.
    run_time: Spread | None
    run_times_unknown: int
    #: The number of jobs with a walltime, and walltime / run time of those with a run time above 0.
    walltimes: int
    overestimation: Spread | None
    #: Jobs that reach their walltime and will be killed. As in Batsim, a job succeeds only strictly before it.
    overruns: int
    #: Sum over jobs of size × run time.
    work_ns: int
    #: The work times the cores per pod; None unless all jobs request CPU.
    work_core_ns: int | None
    #: Gaps between consecutive submissions; None for a single job.
    gaps: Spread | None
    #: By resource: the number of jobs that request it, and the spread of the amounts per pod.
    requests: dict[str, tuple[int, Spread]]

    @property
    def span(self) -> int:
        """The time from the first submission to the last."""
        return self.last_submit - self.first_submit

    @property
    def offered_load(self) -> float | None:
        """The work per machine and time of the span. If it is above 1, queues grow without bound.

        It counts whole machines, so it is None if jobs have requests and so share machines, or if some run times are
        unknown.
        """
        if not self.size_machines or not self.span or self.requests or self.run_times_unknown:
            return None
        return self.work_ns / (self.size_machines * self.span)


def summarise(workload: Workload) -> Summary:
    """Return the statistics of `workload`."""
    jobs = workload.jobs
    runs = [(run_time(job.profile), job) for job in jobs]
    timed = [(run, job) for run, job in runs if run is not None]
    limited = [(run, job.walltime) for run, job in timed if job.walltime is not None]
    amounts: dict[str, list[int]] = {}
    for job in jobs:
        for resource, amount in job.requests:
            amounts.setdefault(resource, []).append(amount)
    size = Spread.of(job.size for job in jobs)
    assert size is not None, "a workload has at least one job"
    return Summary(
        jobs=len(jobs),
        profiles=len({id(job.profile) for job in jobs}),
        users=len({job.user for job in jobs if job.user}),
        size_machines=workload.size_machines,
        first_submit=jobs[0].submit,
        last_submit=jobs[-1].submit,
        size=size,
        run_time=Spread.of(run for run, _ in timed),
        run_times_unknown=len(jobs) - len(timed),
        walltimes=sum(job.walltime is not None for job in jobs),
        overestimation=Spread.of(walltime / run for run, walltime in limited if run > 0),
        overruns=sum(run >= walltime for run, walltime in limited),
        work_ns=sum(run * job.size for run, job in timed),
        work_core_ns=sum(run * job.size * dict(job.requests)[CPU] for run, job in timed) // 1000
        if len(amounts.get(CPU, ())) == len(jobs)
        else None,
        gaps=Spread.of(later.submit - job.submit for job, later in itertools.pairwise(jobs)),
        requests={
            resource: (len(per_pod), spread)
            for resource, per_pod in sorted(amounts.items())
            if (spread := Spread.of(per_pod)) is not None
        },
    )


SPREAD_COLUMNS = ("min", "mean", "median", "max", "sd")


def summary_rows(summary: Summary) -> list[tuple[str, str]]:
    """Return the rows (title, value) of the table of single numbers."""
    machines, load = summary.size_machines, summary.offered_load
    rows = [
        ("jobs", f"{summary.jobs:,}"),
        ("profiles", f"{summary.profiles:,}"),
        ("users", f"{summary.users:,}" if summary.users else "not given"),
        ("machine size", f"{machines:,}" if machines else "not given"),
        ("first submission", _time(summary.first_submit)),
        ("last submission", _time(summary.last_submit)),
        ("span", _time(summary.span)),
        ("work", _work(summary)),
        ("offered load", f"{load:.4f} of the machine, over the span" if load is not None else "not known"),
        ("with walltime", f"{summary.walltimes:,} of {summary.jobs:,} jobs ({summary.walltimes / summary.jobs:.1%})"),
    ]
    if summary.overruns:
        rows.append(("at or over walltime", f"{summary.overruns:,} jobs, which will be killed"))
    if summary.run_times_unknown:
        rows.append(("run time not fixed", f"{summary.run_times_unknown:,} jobs: it depends on the machines"))
    for resource, (count, _) in summary.requests.items():
        rows.append((f"requesting {resource}", f"{count:,} jobs"))
    return rows


def spread_rows(summary: Summary) -> list[tuple[str, ...]]:
    """Return the rows (title, `SPREAD_COLUMNS` as texts) of the table of values that vary between jobs."""
    rows: list[tuple[str, ...]] = [("size (machines or pods)", *_texts(summary.size, _number))]
    for title, spread in (("run time", summary.run_time), ("gap between submissions", summary.gaps)):
        if spread is not None:
            rows.append((title, *_texts(spread, lambda value: human_duration(round(value)))))
    if summary.overestimation is not None:
        rows.append(("walltime / run time", *_texts(summary.overestimation, _number)))
    for resource, (_, spread) in summary.requests.items():
        rows.append(
            (
                f"{resource} per pod{_UNIT_NAMES.get(resource, '')}",
                *_texts(spread, _AMOUNT_TEXTS.get(resource, _number)),
            )
        )
    return rows


def _texts(spread: Spread, text: Callable[[float], str]) -> tuple[str, ...]:
    return tuple(text(value) for value in (spread.least, spread.mean, spread.median, spread.most, spread.deviation))


def _work(summary: Summary) -> str:
    """Return the work of the jobs with a known run time; say so if that is not all of them."""
    known_jobs = summary.jobs - summary.run_times_unknown
    if not known_jobs:
        return "not known"
    if summary.work_core_ns is not None:
        amount_ns, unit = summary.work_core_ns, "core-seconds"
    else:
        amount_ns, unit = summary.work_ns, "pod-seconds" if summary.requests else "machine-seconds"
    work = f"{amount_ns / NANOSECONDS_PER_SECOND:,.0f} {unit}"
    return work if known_jobs == summary.jobs else f"{work} of {known_jobs:,} jobs; that of the others is not known"


def _time(ns: int) -> str:
    return (
        human_duration(ns) if ns < 60 * NANOSECONDS_PER_SECOND else f"{as_float_s(ns):,.10g} s ({human_duration(ns)})"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _cores(value: float) -> str:
    return f"{value / 1000:.4g}"


def _bytes(value: float) -> str:
    unit, size = ("GiB", 1 << 30) if value >= 1 << 30 else ("MiB", 1 << 20)
    return f"{value / size:.4g} {unit}"


_AMOUNT_TEXTS = {CPU: _cores, MEMORY: _bytes}
_UNIT_NAMES = {CPU: " (cores)"}
