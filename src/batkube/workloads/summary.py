"""What a workload is like, in numbers: for `batkube workload show`, and for checking a conversion."""

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
    """How some values are distributed."""

    least: float
    mean: float
    median: float
    most: float
    deviation: float

    @staticmethod
    def of(values: Iterable[float]) -> Spread | None:
        """Return the spread of `values`; None when there are none. The deviation is that of the whole population."""
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
    """The numbers of one workload. Times are nanoseconds; None stands for what cannot be told."""

    jobs: int
    profiles: int
    users: int
    size_machines: int | None
    first_submit: int
    last_submit: int
    size: Spread
    #: Of the jobs whose profile says how long it takes.
    run_time: Spread | None
    run_times_unknown: int
    #: Jobs that have a walltime, and walltime / run time of those of them that run at all.
    walltimes: int
    overestimation: Spread | None
    #: Jobs that need all of their walltime or more, and so will be killed: Batsim lets a job succeed only before it.
    overruns: int
    #: Sum over jobs of size × run time.
    work_ns: int
    #: The same times the cores of each pod; None unless every job asks for some.
    work_core_ns: int | None
    #: Gaps between consecutive submissions; None for a single job.
    gaps: Spread | None
    #: By resource: how many jobs ask for it, and the spread of the amounts per pod.
    requests: dict[str, tuple[int, Spread]]

    @property
    def span(self) -> int:
        """From the first submission to the last."""
        return self.last_submit - self.first_submit

    @property
    def offered_load(self) -> float | None:
        """The work per unit of the machine and of the span: above 1, queues grow without end.

        It counts whole machines, so it cannot be told when pods share them by their requests, nor when nobody knows how
        long some jobs run.
        """
        if not self.size_machines or not self.span or self.requests or self.run_times_unknown:
            return None
        return self.work_ns / (self.size_machines * self.span)


def summarise(workload: Workload) -> Summary:
    """Return the numbers of `workload`."""
    jobs = workload.jobs
    runs = [(run_time(job.profile), job) for job in jobs]
    known = [(run, job) for run, job in runs if run is not None]
    limited = [(run, job.walltime) for run, job in known if job.walltime is not None]
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
        run_time=Spread.of(run for run, _ in known),
        run_times_unknown=len(jobs) - len(known),
        walltimes=sum(job.walltime is not None for job in jobs),
        overestimation=Spread.of(walltime / run for run, walltime in limited if run > 0),
        overruns=sum(run >= walltime for run, walltime in limited),
        work_ns=sum(run * job.size for run, job in known),
        work_core_ns=sum(run * job.size * dict(job.requests)[CPU] for run, job in known) // 1000
        if len(amounts.get(CPU, ())) == len(jobs)
        else None,
        gaps=Spread.of(later.submit - job.submit for job, later in itertools.pairwise(jobs)),
        requests={
            resource: (len(held), spread)
            for resource, held in sorted(amounts.items())
            if (spread := Spread.of(held)) is not None
        },
    )


SPREAD_COLUMNS = ("min", "mean", "median", "max", "sd")


def summary_rows(summary: Summary) -> list[tuple[str, str]]:
    """Return (what, value) of the single numbers, for a table, in the order a reader asks."""
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
        rows.append((f"asking for {resource}", f"{count:,} jobs"))
    return rows


def spread_rows(summary: Summary) -> list[tuple[str, ...]]:
    """Return (what, and the `SPREAD_COLUMNS` as texts) of everything that varies from job to job."""
    rows: list[tuple[str, ...]] = [("size (machines or pods)", *_texts(summary.size, _number))]
    for what, spread in (("run time", summary.run_time), ("gap between submissions", summary.gaps)):
        if spread is not None:
            rows.append((what, *_texts(spread, lambda value: human_duration(round(value)))))
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
    """Return the work of the jobs whose run time is known, which nobody shall take for that of all."""
    known = summary.jobs - summary.run_times_unknown
    if not known:
        return "not known"
    if summary.work_core_ns is not None:
        amount_ns, unit = summary.work_core_ns, "core-seconds"
    else:
        amount_ns, unit = summary.work_ns, "pod-seconds" if summary.requests else "machine-seconds"
    work = f"{amount_ns / NANOSECONDS_PER_SECOND:,.0f} {unit}"
    return work if known == summary.jobs else f"{work} of {known:,} jobs; that of the others is not known"


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
