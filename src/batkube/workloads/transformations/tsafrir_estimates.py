"""Tsafrir's model of the run times that users estimate when they submit jobs.

Users choose few round values: about twenty *head* estimates (15 min, 1 h, 4 h, …) are used by 89 % of the jobs, and the
longest that the system allows is the most popular. The others are a *tail* of rare values. The model gives the values
and how many jobs use each; jobs then get random ones that are above their run times.

D. Tsafrir, Y. Etsion, D. G. Feitelson: Modeling User Runtime Estimates. JSSPP 2005, LNCS 3834, 1-35. The constants are
those of the paper and of the authors' program (est_model, 2005). Unlike there, estimates must exceed run times
strictly, because a job that reaches its walltime is killed here.
"""

from __future__ import annotations

import bisect
import math
import random
from collections.abc import Sequence
from itertools import pairwise

_MINUTE = 60
_HEAD_SIZE = 20
#: The share of jobs that use a head estimate.
_HEAD_SHARE = 0.89
#: Percentage of the jobs with the head estimate of popularity x, from the second: a·exp(b·x) + c.
_HEAD_SIZES = (14.0491, -0.177531, 0.462513)
#: Percentage of the jobs with the tail estimate of popularity x, before normalisation: a·x**b.
_TAIL_SIZES = (795.6, -2.267)
#: Estimates that were popular in all four examined traces, besides the longest, in minutes.
_POPULAR_MIN = (5, 10, 15, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 720, 1080)
#: Multiples of these complete the head, from the longest estimate downwards, in minutes.
_ROUND_MIN = (12000, 6000, 3000, 600, 300, 120, 60, 20, 10, 5)
#: Popularity ranks of the head estimates in the four traces: the longest estimate, then the others by time.
_POPULARITY = (
    (3, 1, 1, 1),
    (1, 3, 4, 6),
    (4, 4, 10, 5),
    (17, 2, 14, 3),
    (13, 12, 20, 7),
    (7, 9, 2, 2),
    (8, 8, 3, 18),
    (18, 18, 7, 19),
    (2, 6, 12, 4),
    (6, 7, 6, 11),
    (16, 11, 19, 20),
    (10, 20, 5, 9),
    (5, 16, 18, 10),
    (15, 5, 16, 14),
    (14, 14, 9, 13),
    (19, 13, 17, 16),
    (11, 10, 15, 15),
    (12, 15, 13, 17),
    (9, 17, 8, 8),
    (20, 19, 11, 12),
)
#: Points (jobs, number of different estimates) of a piecewise linear function.
_DIFFERENT_ESTIMATES = ((0, 0), (20, 10), (200, 20), (1000, 35), (10_000, 90), (70_000, 340), (250_000, 565))
#: Seconds by which a tail estimate is moved if its minute is already used.
_OFFSETS_S = (0, 30, -30, 20, -20, 10, -10)


def estimate_counts(jobs: int, longest_s: int, rng: random.Random) -> dict[int, int]:
    """Return the number of jobs by estimate in seconds; `longest_s`, at least an hour, is the longest estimate."""
    head = _head_shares(longest_s, rng)
    tail = _tail_shares(max(0, different_estimates(jobs) - len(head)), longest_s, set(head), rng)
    shares = head | tail
    return _apportioned({time: share / math.fsum(shares.values()) for time, share in shares.items()}, jobs)


def assigned_estimates(
    run_times_s: Sequence[float], counts: dict[int, int], rng: random.Random
) -> tuple[list[int], int]:
    """Return an estimate above each run time, in the order of the run times, and how many had to be raised.

    The longest job takes a random one of the estimates above its run time, then the next one, and so on. If the model
    has too few estimates above the run times, as for many jobs of nearly the longest estimate, some are raised.
    """
    values = sorted(counts)
    estimates = sorted((time for time, count in counts.items() for _ in range(count)), reverse=True)
    order = sorted(range(len(run_times_s)), key=lambda index: -run_times_s[index])
    raised = 0
    for rank, index in enumerate(order):
        if estimates[rank] <= run_times_s[index]:
            estimates[rank] = values[bisect.bisect_right(values, run_times_s[index])]
            raised += 1
    chosen, high = [0] * len(order), 0
    for rank, index in enumerate(order):
        high = max(high, rank)
        while high + 1 < len(order) and estimates[high + 1] > run_times_s[index]:
            high += 1
        place = rng.randint(rank, high)
        estimates[rank], estimates[place] = estimates[place], estimates[rank]
        chosen[index] = estimates[rank]
    return chosen, raised


def different_estimates(jobs: int) -> int:
    """Return the number of different estimates of a trace of `jobs`."""
    for (few, low), (many, high) in pairwise(_DIFFERENT_ESTIMATES):
        if jobs <= many:
            return low + round((jobs - few) * (high - low) / (many - few))
    return _DIFFERENT_ESTIMATES[-1][1]


def head_percentages(count: int) -> list[float]:
    """Return the percentages of jobs with the head estimates, the most popular first."""
    a, b, c = _HEAD_SIZES
    others = [a * math.exp(b * rank) + c for rank in range(2, count + 1)]
    return [100 * _HEAD_SHARE - math.fsum(others), *others]


def _head_shares(longest_s: int, rng: random.Random) -> dict[int, float]:
    times = _head_times(longest_s)
    percentages = head_percentages(len(times))
    ranks = _popularity_ranks(len(times), rng)
    return {time: percentages[rank - 1] / 100 for time, rank in zip(times, ranks, strict=True)}


def _head_times(longest_s: int) -> list[int]:
    """Return the longest estimate, then the other head estimates by time."""
    times = {minutes * _MINUTE for minutes in _POPULAR_MIN if minutes * _MINUTE < longest_s}
    for unit in (minutes * _MINUTE for minutes in _ROUND_MIN):
        for time in range(longest_s // unit * unit, 0, -unit):
            if len(times) < _HEAD_SIZE - 1 and time < longest_s:
                times.add(time)
    return [longest_s, *sorted(times)]


def _popularity_ranks(count: int, rng: random.Random) -> list[int]:
    """Return a popularity rank per head estimate: the first one for the longest, the others near those of the traces.

    The ranks that an estimate had in the traces go into a pool, from which it draws two and takes the more popular. A
    rank that no later estimate had in any trace must be used at once.
    """
    last_place = {rank: place for place, ranks in enumerate(_POPULARITY) for rank in ranks}
    pool: list[int] = []
    chosen: list[int] = []
    for place in range(count):
        pool += [rank for rank in _POPULARITY[place] if rank not in chosen and rank <= count]
        last_chances = [rank for rank in range(1, count + 1) if last_place[rank] <= place and rank not in chosen]
        candidates = pool or [rank for rank in range(1, count + 1) if rank not in chosen]
        drawn = min(rng.choice(candidates), rng.choice(candidates))
        rank = 1 if place == 0 else min(last_chances, default=drawn)
        chosen.append(rank)
        pool = [other for other in pool if other != rank]
    return chosen


def _tail_shares(count: int, longest_s: int, used: set[int], rng: random.Random) -> dict[int, float]:
    """Return the share of each tail estimate; times and sizes are matched at random."""
    a = 1 + 12.1039 * (count + len(used)) ** -0.6026
    times: list[int] = []
    for number in range(1, count + 1):
        rank = number / count
        time = round((a - 1) * rank / (a - rank) * longest_s / _MINUTE) * _MINUTE
        free = (time + offset for offset in _OFFSETS_S if time + offset not in used and 0 < time + offset < longest_s)
        if (moved := next(free, None)) is not None:
            times.append(moved)
            used.add(moved)
    factor, exponent = _TAIL_SIZES
    sizes = [factor * rank**exponent for rank in range(_HEAD_SIZE + 1, _HEAD_SIZE + 1 + len(times))]
    rng.shuffle(sizes)
    return {time: (1 - _HEAD_SHARE) * size / math.fsum(sizes) for time, size in zip(times, sizes, strict=True)}


def _apportioned(shares: dict[int, float], jobs: int) -> dict[int, int]:
    """Return whole numbers of jobs in proportion to the shares, by largest remainders."""
    counts = {time: math.floor(share * jobs) for time, share in shares.items()}
    remainders = sorted(shares, key=lambda time: (counts[time] - shares[time] * jobs, -time))
    for time in remainders[: jobs - sum(counts.values())]:
        counts[time] += 1
    return {time: count for time, count in counts.items() if count}
