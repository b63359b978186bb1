"""Resample a recorded workload, to get replicates for an experiment on a trace.

A trace is one sample, and running it ten times is still one observation. Two methods draw more samples from it:

* *windows*: a part of the trace, drawn uniformly in time or by jobs. Everything in it is as recorded, including bursts
  and user sessions. Windows of a short trace overlap, and then they are not independent of each other. *Disjoint*
  windows do not overlap: the trace is cut into windows once, and consecutive seeds select different ones.
* *blocks*: the trace is cut into blocks such as days or weeks; blocks are drawn with replacement and concatenated
  (a block bootstrap: H. R. Künsch, Annals of Statistics 17 (1989) 1217-1241). Blocks of whole days preserve the daily
  cycle, blocks of whole weeks the weekly one; correlations longer than a block are lost. More on resampling workloads:
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

#: The number of windows that are drawn to find one with a job in it.
_MAX_DRAWS = 1000


def time_window(workload: Workload, length: Duration, rng: random.Random) -> Workload:
    """Return the jobs submitted in a window of `length` that begins at a random second; its begin becomes 0."""
    first, last = _span(workload)
    _check_length(workload, length, last - first)
    latest_s = (last - first - length) // NANOSECONDS_PER_SECOND
    for _ in range(_MAX_DRAWS):
        begin = first + rng.randint(0, latest_s) * NANOSECONDS_PER_SECOND
        jobs = [job for job in workload.jobs if begin <= job.submit < begin + length]
        if jobs:
            return _shifted(workload, jobs, begin)
    problem = f"none of {_MAX_DRAWS:,} windows of {human_duration(length)} has a job in it"
    raise InputError(workload.source, problem=problem, remedy="use a longer window")


def job_window(workload: Workload, count: int, rng: random.Random) -> Workload:
    """Return `count` consecutive jobs from a random one on; the first is submitted at 0."""
    if count > len(workload.jobs):
        problem = f"has {len(workload.jobs):,} jobs, fewer than the window of {count:,}"
        raise InputError(workload.source, problem=problem, remedy="use a smaller window")
    begin = rng.randint(0, len(workload.jobs) - count)
    jobs = workload.jobs[begin : begin + count]
    return _shifted(workload, jobs, jobs[0].submit)


def disjoint_time_window(workload: Workload, length: Duration, seed: int) -> Workload:
    """Cut the trace into windows of `length`, and return the jobs of one; windows without jobs do not count."""
    first, last = _span(workload)
    _check_length(workload, length, last - first)
    windows: dict[int, list[Job]] = {}
    for job in workload.jobs:
        windows.setdefault((job.submit - first) // length, []).append(job)
    windows.pop((last - first) // length)  # the incomplete window at the end
    place = _window_index(workload, sorted(windows), human_duration(length), seed)
    return _shifted(workload, windows[place], first + place * length)


def disjoint_job_window(workload: Workload, count: int, seed: int) -> Workload:
    """Cut the trace into windows of `count` jobs, and return one; its first job is submitted at 0."""
    begin = count * _window_index(workload, range(len(workload.jobs) // count), f"{count:,} jobs", seed)
    jobs = workload.jobs[begin : begin + count]
    return _shifted(workload, jobs, jobs[0].submit)


def _window_index(workload: Workload, places: Sequence[int], length: str, seed: int) -> int:
    """Map a seed to the index of a window, such that consecutive seeds use all windows before one repeats."""
    if len(places) < 2:
        problem = f"has fewer than two disjoint windows of {length}"
        raise InputError(workload.source, problem=problem, remedy="use a smaller window, or overlapping windows")
    shuffled = list(places)
    # The order must not depend on the seed, or two seeds could select the same window.
    Streams(0).named("workload.resampling.places").shuffle(shuffled)
    return shuffled[seed % len(shuffled)]


def block_bootstrap(workload: Workload, block: Duration, length: Duration, rng: random.Random) -> Workload:
    """Draw blocks of the trace with replacement and concatenate them up to `length`.

    The same block can occur several times, so the position of the block is prepended to the job's name: `2.17`. The
    incomplete block at the end of the trace is not used.
    """
    first, last = _span(workload)
    count = (last - first) // block
    if count < 2:
        problem = f"lasts {human_duration(last - first)}, less than two blocks of {human_duration(block)}"
        raise InputError(workload.source, problem=problem, remedy="use shorter blocks, or a window")
    if length < block:
        problem = f"the length {human_duration(length)} is less than a block of {human_duration(block)}"
        raise InputError(workload.source, problem=problem, remedy="use a length of several blocks")
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
        raise InputError(workload.source, problem="the drawn blocks contain no job", remedy="use longer blocks")
    return replace(workload, jobs=jobs, objects=(), header=workload.header.without_start_time())


def _span(workload: Workload) -> tuple[Instant, Instant]:
    if not workload.jobs:
        raise InputError(workload.source, problem="contains no jobs to resample")
    return workload.jobs[0].submit, workload.jobs[-1].submit


def _check_length(workload: Workload, length: Duration, span: int) -> None:
    if length <= 0 or length > span:
        problem = f"has submissions over {human_duration(span)}, but the window is {human_duration(length)}"
        raise InputError(workload.source, problem=problem, remedy="use a window that is shorter than the trace")


def _shifted(workload: Workload, jobs: Sequence[Job], begin: int) -> Workload:
    moved = [replace_fields(job, submit=Instant(job.submit - begin)) for job in jobs]
    return replace(workload, jobs=moved, objects=(), header=workload.header.shifted(begin))
