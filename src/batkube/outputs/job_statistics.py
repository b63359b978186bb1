"""Percentiles of waits, slowdowns and fairness of jobs, defined once for running simulations and for their files.

Times are in seconds. An undefined number is None. Names are columns of schedule.csv and results.csv.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

#: τ: the bounded slowdown counts shorter jobs as this long (Feitelson and Rudolph, JSSPP 1998: 10 s).
BOUND_S = 10.0
#: Longest short job and widest narrow job: an hour of run time and eight machines, as in
#: S. Srinivasan, R. Kettimuthu, V. Subramani, P. Sadayappan, Characterization of backfilling strategies for parallel
#: job scheduling, ICPP workshops 2002.
SHORT_S, NARROW = 3600.0, 8
CLASSES = ("short_narrow", "short_wide", "long_narrow", "long_wide")
PERCENTILES = (90, 95, 99)
#: Prefix of the columns with the utilisation of one resource, whose name follows.
UTILISATION_PREFIX = "utilisation_"


class MeasuredJob(NamedTuple):
    """A job that started and ended."""

    wait_s: float
    turnaround_s: float
    execution_s: float
    size: float
    user: str


def job_statistics_of(jobs: Iterable[MeasuredJob]) -> dict[str, float | None]:
    """Return the measures by column. Jobs are iterated once and not stored: long traces have many."""
    by_user: dict[str, array[float]] = {}
    by_class = {kind: array("d") for kind in CLASSES}
    narrow, wide = [(by_class[f"short_{width}"], by_class[f"long_{width}"]) for width in ("narrow", "wide")]
    for wait_s, turnaround_s, execution_s, size, user in jobs:
        # The bounded slowdown: max(1, turnaround / max(execution, τ)).
        slowdown = max(1.0, turnaround_s / max(execution_s, BOUND_S))
        by_user.setdefault(user, array("d")).append(slowdown)
        (narrow if size <= NARROW else wide)[execution_s > SHORT_S].append(wait_s)
    return {
        **_wait_statistics(sorted(itertools.chain.from_iterable(by_class.values()))),
        **_slowdown_statistics(sorted(itertools.chain.from_iterable(by_user.values()))),
        **{f"mean_waiting_time_{kind}": mean(of_class) for kind, of_class in by_class.items()},
        "fairness_by_user": jain_index(values)
        if len(values := [math.fsum(slowdowns) / len(slowdowns) for slowdowns in by_user.values()]) > 1
        else None,
    }


def size_class(execution_s: float, size: float) -> str:
    """Return the class of a job, one of `CLASSES`."""
    return f"{'long' if execution_s > SHORT_S else 'short'}_{'narrow' if size <= NARROW else 'wide'}"


def _wait_statistics(ordered: Sequence[float]) -> dict[str, float | None]:
    percentiles = {f"p{rank}_waiting_time": percentile(ordered, rank) for rank in PERCENTILES}
    return {"median_waiting_time": percentile(ordered, 50), **percentiles}


def _slowdown_statistics(ordered: Sequence[float]) -> dict[str, float | None]:
    return {"mean_bounded_slowdown": mean(ordered), "p95_bounded_slowdown": percentile(ordered, 95)}


def mean(values: Sequence[float]) -> float | None:
    """Return the mean; None for no values."""
    return math.fsum(values) / len(values) if values else None


def percentile(ordered: Sequence[float], rank: float) -> float | None:
    """Return the percentile of sorted values, interpolated linearly as numpy does; None for no values."""
    if not ordered:
        return None
    position = (len(ordered) - 1) * rank / 100
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def jain_index(values: Iterable[float]) -> float:
    """Return Jain's fairness index (Σx)² / (n Σx²): 1 if all values are equal, 1/n if all but one are 0."""
    numbers = list(values)
    return math.fsum(numbers) ** 2 / (len(numbers) * math.fsum(value**2 for value in numbers))
