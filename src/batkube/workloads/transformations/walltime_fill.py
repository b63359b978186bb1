"""Fill in the walltimes of the jobs that have none; recorded walltimes are unchanged.

| model | walltime |
|---|---|
| `factor:X` | X times the run time |
| `noisy:F` | uniform between the run time and F + 1 times it (the f-model of Mu'alem and Feitelson, 2001) |
| a distribution, as `lognormal:3600,1` | drawn from it, in seconds, among the values above the run time |
| `tsafrir`, `tsafrir:18h` | Tsafrir's model of user estimates, with this longest one |

No filled walltime ends its job: each is above the run time. All but those of `factor` are whole seconds.
A. W. Mu'alem, D. G. Feitelson: Utilization, Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM
SP2 with Backfilling. IEEE Transactions on Parallel and Distributed Systems 12 (2001) 529-543.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from msgspec.structs import replace as replace_fields

from batkube.kernel.distributions import Distribution, parse_distribution
from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import LATEST_NS, NANOSECONDS_PER_SECOND, Duration, duration
from batkube.kernel.streams import Streams
from batkube.workloads.model import Job, Workload
from batkube.workloads.run_times import run_time
from batkube.workloads.transformations.conversions import RUN_TIME_UNKNOWN, with_note
from batkube.workloads.transformations.tsafrir_estimates import assigned_estimates, estimate_counts

NOTHING_TO_FILL = FidelityNote("workload", "no job lacks a walltime, so none was filled in")
RAISED = FidelityNote("workload", "a walltime of the fill model was not above the run time and was raised above it")
_STREAM = "workload.walltime-fill"
_OPTION = "--walltime-fill"
_REMEDY = "write factor:1.5, noisy:2, a distribution such as lognormal:3600,1, tsafrir, or tsafrir:18h"
#: The number of draws to find a value above the run time.
_MAX_DRAWS = 100
_HOUR_NS = 3600 * NANOSECONDS_PER_SECOND

Fill = Callable[[Sequence[int], random.Random], tuple[list[int], int]]
"""Returns a walltime per run time, in nanoseconds, and how many of them had to be raised above it."""


def fill_walltimes(workload: Workload, model: str, seed: int) -> Workload:
    """Fill in missing walltimes by a model, which is written as in this module's table. Raises InputError."""
    fill = _parsed(model, workload)
    missing = [job for job in workload.jobs if job.walltime is None]
    run_times = {job.key: run for job in missing if (run := run_time(job.profile)) is not None}
    walltimes, raised = fill(list(run_times.values()), Streams(seed).named(_STREAM)) if run_times else ([], 0)
    if any(walltime > LATEST_NS for walltime in walltimes):
        raise InputError(_OPTION, problem="a walltime would exceed the longest possible run, 292 years")
    filled = dict(zip(run_times, walltimes, strict=True))
    jobs = [_with_walltime(job, filled.get(job.key)) for job in workload.jobs]
    noted = with_note(replace(workload, jobs=jobs), NOTHING_TO_FILL, int(not missing))
    return with_note(with_note(noted, RUN_TIME_UNKNOWN, len(missing) - len(filled)), RAISED, raised)


def _with_walltime(job: Job, walltime: int | None) -> Job:
    return job if walltime is None else replace_fields(job, walltime=Duration(walltime))


def _parsed(model: str, workload: Workload) -> Fill:
    """Parse the text of a model, and return its function. Raises InputError."""
    name, _, value = model.strip().partition(":")
    try:
        if name == "factor":
            return _scaled(_number(value, above=1))
        if name == "noisy":
            return _noisy(float(_number(value, above=0)))
        if name == "tsafrir":
            return _tsafrir(workload, duration(value) if value else None)
        return _drawn(parse_distribution(model))
    except (ValueError, ZeroDivisionError) as error:
        raise InputError(_OPTION, problem=f"{model!r} is not a model: {error}", remedy=_REMEDY) from None


def _number(text: str, above: int) -> Fraction:
    number = Fraction(text)
    if not above < number < 10**9:
        raise ValueError(f"{text} is not a number above {above}")
    return number


def _next_second(run: int) -> int:
    """Return the first whole second above a run time."""
    return (run // NANOSECONDS_PER_SECOND + 1) * NANOSECONDS_PER_SECOND


def _whole_seconds(value_s: float) -> int:
    return math.ceil(value_s) * NANOSECONDS_PER_SECOND


def _scaled(factor: Fraction) -> Fill:
    return lambda run_times, _: ([round(run * factor) or NANOSECONDS_PER_SECOND for run in run_times], 0)


def _noisy(factor: float) -> Fill:
    def fill(run_times: Sequence[int], rng: random.Random) -> tuple[list[int], int]:
        drawn = (_whole_seconds(run / NANOSECONDS_PER_SECOND * (1 + factor * rng.random())) for run in run_times)
        return [max(value, _next_second(run)) for run, value in zip(run_times, drawn, strict=True)], 0

    return fill


def _drawn(distribution: Distribution) -> Fill:
    def fill(run_times: Sequence[int], rng: random.Random) -> tuple[list[int], int]:
        values = []
        for run in run_times:
            draws = (_whole_seconds(distribution.draw(rng)) for _ in range(_MAX_DRAWS))
            values.append(next((value for value in draws if value > run), None))
        filled = [_next_second(run) if value is None else value for run, value in zip(run_times, values, strict=True)]
        return filled, values.count(None)

    return fill


def _tsafrir(workload: Workload, longest: Duration | None) -> Fill:
    recorded = max((job.walltime for job in workload.jobs if job.walltime is not None), default=0)

    def fill(run_times: Sequence[int], rng: random.Random) -> tuple[list[int], int]:
        needed = max(run_times)
        hours_above = (needed // _HOUR_NS + 1) * _HOUR_NS
        longest_ns = longest or max(recorded if recorded > needed else 0, hours_above)
        if longest_ns <= needed or longest_ns < _HOUR_NS:
            least = f"{hours_above // _HOUR_NS}h"
            problem = "the longest estimate must be at least 1h and above all run times of jobs without walltime"
            raise InputError(_OPTION, problem=problem, remedy=f"use at least tsafrir:{least}, or --trim")
        counts = estimate_counts(len(run_times), longest_ns // NANOSECONDS_PER_SECOND, rng)
        seconds_of = [run / NANOSECONDS_PER_SECOND for run in run_times]
        # The longest estimate must be available for the longest job, whatever the shares of few jobs.
        counts.setdefault(longest_ns // NANOSECONDS_PER_SECOND, 0)
        estimates, raised = assigned_estimates(seconds_of, counts, rng)
        return [estimate * NANOSECONDS_PER_SECOND for estimate in estimates], raised

    return fill
