"""Generate workloads: bursts, evenly spaced jobs, Poisson arrivals, and the Lublin–Feitelson model.

Each random variable (arrivals, run times, sizes, CPU, walltimes) has its own named stream of the seed. Changing the
distribution of one variable therefore does not change the others. Times are rounded to milliseconds.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from batkube.kernel.distributions import Distribution, parse_distribution
from batkube.kernel.errors import InputError
from batkube.kernel.instants import LATEST_NS, NANOSECONDS_PER_SECOND, Duration, Instant, seconds
from batkube.kernel.quantities import CPU, MEMORY
from batkube.kernel.streams import Streams
from batkube.workloads.delay_profiles import DelayProfiles
from batkube.workloads.model import Job, Requests, Workload
from batkube.workloads.synthetic.lublin import ALL_JOBS, BATCH_JOBS, INTERACTIVE_JOBS, LublinModel

_SOURCE = "batkube workload generate"


@dataclass(frozen=True, slots=True)
class JobShape:
    """The properties of generated jobs. Run times and walltimes are in seconds, CPU in cores, memory in bytes."""

    run_time: Distribution
    size: Distribution = field(default_factory=lambda: parse_distribution(1))
    cpu: Distribution | None = None
    memory_bytes: int | None = None
    walltime: Distribution | None = None


def burst(count: int, shape: JobShape, seed: int = 0, name: str = "w0") -> Workload:
    """Return `count` jobs that all arrive at 0."""
    return _workload(f"burst of {count}", name, itertools.repeat(0, _checked_count(count)), shape, Streams(seed))


def spaced(count: int, interval: Duration, shape: JobShape, seed: int = 0, name: str = "w0") -> Workload:
    """Return `count` jobs, the first at 0 and each `interval` after the one before."""
    if interval < 0:
        raise InputError(_SOURCE, problem="the interval is negative", remedy="use a duration of at least 0")
    if interval * _checked_count(count) > LATEST_NS:
        raise InputError(_SOURCE, problem="the last job would arrive after the longest possible run, 292 years")
    arrivals = range(0, interval * count, interval) if interval else itertools.repeat(0, count)
    return _workload(f"spaced {count}", name, arrivals, shape, Streams(seed))


def poisson(count: int, rate_per_s: float, shape: JobShape, seed: int = 0, name: str = "w0") -> Workload:
    """Return `count` jobs with independent, exponentially distributed gaps of mean 1 / `rate_per_s`."""
    if not 0 < rate_per_s < float("inf"):
        raise InputError(_SOURCE, problem=f"the arrival rate must be larger than 0, not {rate_per_s}")
    streams = Streams(seed)
    arrivals = _poisson_arrivals(_checked_count(count), rate_per_s, streams.named("workload.arrivals"))
    return _workload(f"poisson {count}", name, arrivals, shape, streams)


def lublin(count: int, machines: int, *, by_type: bool = False, seed: int = 0, name: str = "w0") -> Workload:
    """Return `count` jobs of the Lublin–Feitelson model for a machine of `machines` processors.

    `by_type` mixes the model's batch and interactive jobs (distinguished by their `user`), each with its own
    parameters; otherwise all jobs are drawn with the parameters of the whole.
    """
    if machines < 2:
        problem = f"the model needs a machine of at least 2 processors, not {machines}"
        raise InputError(_SOURCE, problem=problem)
    models = {"batch": BATCH_JOBS, "interactive": INTERACTIVE_JOBS} if by_type else {"": ALL_JOBS}
    streams = Streams(seed)
    kinds = [
        _lublin_jobs(kind, model.for_machine(machines), streams.named(f"workload.lublin.{kind}"))
        for kind, model in models.items()
    ]
    delays = DelayProfiles()
    jobs = []
    for number, (at_s, kind, size, run_s) in enumerate(itertools.islice(heapq.merge(*kinds), _checked_count(count)), 1):
        jobs.append(
            Job(
                workload=name,
                name=str(number),
                submit=Instant(at_s * NANOSECONDS_PER_SECOND),
                size=size,
                profile=delays.profile_for(Duration(run_s * NANOSECONDS_PER_SECOND)),
                user=kind,
            )
        )
    return Workload(name=name, source=f"{_SOURCE} lublin {count}", jobs=jobs, size_machines=machines)


def _lublin_jobs(kind: str, model: LublinModel, rng: random.Random) -> Iterator[tuple[int, str, int, int]]:
    for at_s in model.arrivals_s(rng):
        size = model.sizes.draw(rng)
        yield at_s, kind, size, model.run_time_s(rng, size)


def _poisson_arrivals(count: int, rate_per_s: float, rng: random.Random) -> Iterator[int]:
    at_s = 0.0
    for _ in range(count):
        at_s += rng.expovariate(rate_per_s)
        yield _milliseconds(at_s)


def _workload(kind: str, name: str, arrivals: Iterable[int], shape: JobShape, streams: Streams) -> Workload:
    delays = DelayProfiles()
    requests_of: dict[Requests, Requests] = {}
    jobs = []
    for number, submit in enumerate(arrivals, 1):
        requests = _requests(shape, streams)
        jobs.append(
            Job(
                workload=name,
                name=str(number),
                submit=Instant(submit),
                size=max(1, round(shape.size.draw(streams.named("workload.size")))),
                profile=delays.profile_for(_milliseconds(shape.run_time.draw(streams.named("workload.run-time")))),
                walltime=_walltime(shape, streams),
                requests=requests_of.setdefault(requests, requests),
            )
        )
    return Workload(name=name, source=f"{_SOURCE} {kind}", jobs=jobs)


def _requests(shape: JobShape, streams: Streams) -> Requests:
    requests = []
    if shape.cpu is not None:
        requests.append((CPU, max(1, round(shape.cpu.draw(streams.named("workload.cpu")) * 1000))))
    if shape.memory_bytes is not None:
        requests.append((MEMORY, shape.memory_bytes))
    return tuple(requests)


def _walltime(shape: JobShape, streams: Streams) -> Duration | None:
    if shape.walltime is None:
        return None
    return Duration(max(1_000_000, _milliseconds(shape.walltime.draw(streams.named("workload.walltime")))))


def _milliseconds(value_s: float) -> Duration:
    """Return float seconds as a Duration of whole milliseconds, at least 0."""
    try:
        return seconds(max(0.0, round(value_s, 3)))
    except ValueError as error:
        raise InputError(
            _SOURCE, problem=f"drew an invalid time: {error}", remedy="use a distribution of shorter times"
        ) from None


def _checked_count(count: int) -> int:
    if count < 1:
        raise InputError(_SOURCE, problem=f"cannot generate {count} jobs", remedy="use a number of at least 1")
    return count
