"""Other workloads like a recorded one: what replicates of an experiment on a trace are made of.

A trace is one sample, and running it ten times is still one observation. Two ways of drawing more from it:

* *windows*: a stretch of the trace, drawn uniformly in time or by jobs. Everything within it is as recorded, bursts and
  sessions of users included; windows overlap where the trace is short, and then are not independent of each other.
  *Separate* ones do not: the trace is cut into windows once, and seeds that follow each other stand for different ones.
* *blocks*: the trace cut into whole days or weeks, of which so many are drawn with replacement and laid end to end
  (a block bootstrap: H. R. Künsch, Annals of Statistics 17 (1989) 1217-1241). Blocks of whole days keep the daily
  cycle, of whole weeks the weekly one; what lasts longer than a block is lost. More on resampling workloads:
  N. Zakay and D. G. Feitelson, Concurrency and Computation: Practice and Experience 26 (2014) 2079-2105.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from msgspec.structs import replace as replace_fields

from batkube.kernel.errors import InputError
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant, human_duration
from batkube.kernel.streams import Streams
from batkube.workloads.model import Job, Workload

#: A window is drawn so often until there is a job in it.
_MAX_TRIES = 1000


def time_window(workload: Workload, length: Duration, rng: random.Random) -> Workload:
    """Return the jobs submitted in a window of `length`, which begins at any second of the trace; it becomes 0."""
    first, last = _span(workload)
    _check_length(workload, length, last - first)
    latest_s = (last - first - length) // NANOSECONDS_PER_SECOND
    for _ in range(_MAX_TRIES):
        begin = first + rng.randint(0, latest_s) * NANOSECONDS_PER_SECOND
        jobs = [job for job in workload.jobs if begin <= job.submit < begin + length]
        if jobs:
            return _shifted(workload, jobs, begin)
    problem = f"none of {_MAX_TRIES:,} windows of {human_duration(length)} has a job in it"
    raise InputError(workload.source, problem=problem, remedy="ask for a longer window")


def job_window(workload: Workload, count: int, rng: random.Random) -> Workload:
    """Return `count` consecutive jobs, the first of which may be any; it is submitted at 0."""
    if count > len(workload.jobs):
        problem = f"has {len(workload.jobs):,} jobs, fewer than the window of {count:,}"
        raise InputError(workload.source, problem=problem, remedy="ask for a smaller window")
    begin = rng.randint(0, len(workload.jobs) - count)
    jobs = workload.jobs[begin : begin + count]
    return _shifted(workload, jobs, jobs[0].submit)


def disjoint_time_window(workload: Workload, length: Duration, seed: int) -> Workload:
    """Return the jobs of one of the windows of `length` that the trace is cut into; those without jobs do not count."""
    first, last = _span(workload)
    _check_length(workload, length, last - first)
    windows: dict[int, list[Job]] = {}
    for job in workload.jobs:
        windows.setdefault((job.submit - first) // length, []).append(job)
    windows.pop((last - first) // length)  # the rest of the trace, which is no whole window
    place = _window_index(workload, sorted(windows), human_duration(length), seed)
    return _shifted(workload, windows[place], first + place * length)


def disjoint_job_window(workload: Workload, count: int, seed: int) -> Workload:
    """Return one of the windows of `count` jobs that the trace is cut into; its first job is submitted at 0."""
    begin = count * _window_index(workload, range(len(workload.jobs) // count), f"{count:,} jobs", seed)
    jobs = workload.jobs[begin : begin + count]
    return _shifted(workload, jobs, jobs[0].submit)


def _window_index(workload: Workload, places: Sequence[int], length: str, seed: int) -> int:
    """Return the place of the window that a seed stands for: all are drawn before one is drawn again."""
    if len(places) < 2:
        problem = f"has no two windows of {length} that do not overlap"
        raise InputError(workload.source, problem=problem, remedy="ask for a smaller window, or let them overlap")
    drawn = list(places)
    # The same order for every seed, or two of them could draw the same place.
    Streams(0).named("workload.resampling.places").shuffle(drawn)
    return drawn[seed % len(drawn)]


def block_bootstrap(workload: Workload, block: Duration, length: Duration, rng: random.Random) -> Workload:
    """Return blocks of the trace, drawn with replacement and laid end to end until `length` is full.

    A job is called after the place of its block and its own name, `2.17`: a block may come more than once. The rest of
    the trace that fills no block is not drawn from.
    """
    first, last = _span(workload)
    count = (last - first) // block
    if count < 2:
        problem = f"lasts {human_duration(last - first)}, which is fewer than two blocks of {human_duration(block)}"
        raise InputError(workload.source, problem=problem, remedy="take shorter blocks, or a window")
    if length < block:
        problem = f"{human_duration(length)} is less than a block of {human_duration(block)}"
        raise InputError(workload.source, problem=problem, remedy="let the length be a few blocks")
    blocks: list[list[Job]] = [[] for _ in range(count)]
    for job in workload.jobs:
        number = (job.submit - first) // block
        if number < count:
            blocks[number].append(job)
    jobs: list[Job] = []
    for place in range(-(-length // block)):
        number = rng.randrange(count)
        offset = place * block - number * block - first
        moved = (replace_fields(job, submit=Instant(job.submit + offset)) for job in blocks[number])
        jobs += [replace_fields(job, name=f"{place + 1}.{job.name}") for job in moved if job.submit < length]
    if not jobs:
        raise InputError(workload.source, problem="no job is in the blocks drawn", remedy="take longer blocks")
    return replace(workload, jobs=jobs, objects=(), header=workload.header.without_start_time())


def _span(workload: Workload) -> tuple[Instant, Instant]:
    if not workload.jobs:
        raise InputError(workload.source, problem="has no jobs to draw from")
    return workload.jobs[0].submit, workload.jobs[-1].submit


def _check_length(workload: Workload, length: Duration, span: int) -> None:
    if length <= 0 or length > span:
        problem = f"lasts {human_duration(span)} from the first submission to the last, and the window is {human_duration(length)}"
        raise InputError(workload.source, problem=problem, remedy="ask for a window within the trace")


def _shifted(workload: Workload, jobs: Sequence[Job], begin: int) -> Workload:
    moved = [replace_fields(job, submit=Instant(job.submit - begin)) for job in jobs]
    return replace(workload, jobs=moved, objects=(), header=workload.header.shifted(begin))
