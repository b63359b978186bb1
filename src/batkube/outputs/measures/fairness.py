"""Measures of fairness between the users of a run. docs/reference/cli-fairness.md defines and discusses each.

None of them has a best value: they are 1 (or 0) even if the results of all users are equally bad. Read them together
with the means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from batkube.kernel.errors import InputError
from batkube.kernel.quantities import CPU
from batkube.outputs.job_statistics import UTILISATION_PREFIX, jain_index
from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.measures.metrics import bounded_slowdowns, finished_jobs, jobs_in
from batkube.outputs.measures.occupancy.stays import WHOLE_MILLI, Floats, capacity_of
from batkube.outputs.measures.occupancy.step_functions import StepFunction, cumulative_steps

#: Columns of `users_frame` from which indices are computed, with their titles.
MEASURES = {
    "bounded_slowdown": "mean bounded slowdown",
    "wait_s": "mean wait",
    "share": "dominant share while present",
    "share_of_entitled": "share received / entitled",
    "solo_slowdown": "slowdown against a solo run",
}


@dataclass(frozen=True, slots=True)
class FairnessIndex:
    """Indices of one measure over all users for whom it is known."""

    measure: str
    users: int
    jain: float
    gini: float
    #: Largest value divided by the smallest; None if the smallest is 0.
    spread: float | None


def gini_coefficient(values: Sequence[float]) -> float:
    """Return the Gini coefficient: 0 if all values are equal, (n − 1)/n if all but one are 0.

    It is half the mean absolute difference of all pairs, divided by the mean (C. Gini, 1912).
    """
    ordered, total = sorted(values), math.fsum(values)
    count = len(ordered)
    if total == 0:
        return 0.0
    weighted = math.fsum((2 * rank - count - 1) * value for rank, value in enumerate(ordered, 1))
    return weighted / (count * total)


def indices_of(users: pd.DataFrame) -> list[FairnessIndex]:
    """Return the indices of each measure that is known for at least two users."""
    indices = []
    for measure in MEASURES:
        values = [float(value) for value in users[measure].dropna()]
        if len(values) > 1:
            jain = jain_index(values) if any(values) else 1.0
            spread = max(values) / min(values) if min(values) > 0 else None
            indices.append(FairnessIndex(measure, len(values), jain, gini_coefficient(values), spread))
    return indices


def users_frame(run: MeasuredRun, solo_runs: Sequence[MeasuredRun] = ()) -> pd.DataFrame:
    """Return a row per user with finished jobs: `jobs` and the `MEASURES`, NaN where unknown.

    `solo_runs` are runs of the jobs of single users, alone on the platform and under the same scheduler.
    """
    done = jobs_in(run.window, finished_jobs(run.jobs))
    by_user = done.assign(bounded=bounded_slowdowns(done)).groupby("user")
    frame = pd.DataFrame({"jobs": by_user.size()})
    frame["bounded_slowdown"] = by_user["bounded"].mean()
    frame["wait_s"] = by_user["waiting_time"].mean()
    received = received_shares(run, done)
    present = _presence(done)
    entitled = _entitlements(present)
    for user in frame.index:
        length = math.fsum(end - begin for begin, end in present[user])
        frame.loc[user, "share"] = received[user] / length if length and received else math.nan
        frame.loc[user, "share_of_entitled"] = received[user] / entitled[user] if length and received else math.nan
    frame["solo_slowdown"] = pd.Series(_solo_slowdowns(done, solo_runs), dtype="float64").reindex(frame.index)
    return frame


def has_single_resource(run: MeasuredRun) -> bool:
    """Return whether machines or cpu are the only resource in use. jobs.csv has no amounts of others."""
    others = [
        name
        for name, value in run.schedule.items()
        if str(name).startswith(UTILISATION_PREFIX) and name != f"{UTILISATION_PREFIX}{CPU}" and value
    ]
    return not (run.shares_machines and others)


def shares_of_jobs(run: MeasuredRun, jobs: pd.DataFrame) -> pd.Series[float]:
    """Return the share of the platform that each job holds while it runs."""
    sizes = jobs["requested_number_of_resources"].fillna(1).astype(float)
    amounts = sizes * (jobs["cpu"].fillna(0) if run.shares_machines else 1.0) * WHOLE_MILLI
    return amounts / float(capacity_of(run).sum())


def received_shares(run: MeasuredRun, done: pd.DataFrame) -> dict[str, float]:
    """Return the integral of each user's dominant share over time; empty if the outputs lack some resources."""
    if not has_single_resource(run):
        return {}
    held = shares_of_jobs(run, done) * (done["finish_time"] - done["starting_time"])
    return {str(user): float(amount) for user, amount in held.groupby(done["user"]).sum().items()}


def share_steps(run: MeasuredRun, users: Sequence[str]) -> StepFunction:
    """Return the share of the platform that some users hold together over time."""
    jobs = finished_jobs(run.jobs)
    jobs = jobs[jobs["user"].isin(users)]
    shares = shares_of_jobs(run, jobs).to_numpy(dtype=np.float64)
    times = np.concatenate((jobs["starting_time"].to_numpy(), jobs["finish_time"].to_numpy()))
    return cumulative_steps(times.astype(np.float64), np.concatenate((shares, -shares)))


def _presence(done: pd.DataFrame) -> dict[str, list[tuple[float, float]]]:
    """Return the periods in which each user has a job that waits or runs."""
    periods: dict[str, list[tuple[float, float]]] = {}
    ordered = done.sort_values("submission_time", kind="stable")
    for user, begin, end in zip(ordered["user"], ordered["submission_time"], ordered["finish_time"], strict=True):
        own = periods.setdefault(str(user), [])
        if own and begin <= own[-1][1]:
            own[-1] = (own[-1][0], max(own[-1][1], float(end)))
        else:
            own.append((float(begin), float(end)))
    return periods


def _entitlements(present: dict[str, list[tuple[float, float]]]) -> dict[str, float]:
    """Return the integral of 1 / (number of present users) over the time in which each user is present."""
    periods = [period for own in present.values() for period in own]
    begins, ends = (np.array([period[side] for period in periods], dtype=np.float64) for side in (0, 1))
    changes = np.concatenate((np.ones_like(begins), -np.ones_like(ends)))
    users = cumulative_steps(np.concatenate((begins, ends)), changes)
    rate = 1 / np.maximum(np.round(users.values), 1.0)
    area: Floats = np.concatenate(([0.0], np.cumsum(rate[:-1] * np.diff(users.times))))
    return {
        user: float(sum(np.interp(end, users.times, area) - np.interp(begin, users.times, area) for begin, end in own))
        for user, own in present.items()
    }


def _solo_slowdowns(done: pd.DataFrame, solo_runs: Sequence[MeasuredRun]) -> dict[str, float]:
    """Return the total turnaround of each user divided by that in the solo run, over the jobs that are in both runs."""
    slowdowns = {}
    for solo in solo_runs:
        alone = finished_jobs(solo.jobs)
        users = set(alone["user"])
        if len(users) != 1:
            problem = f"has finished jobs of {len(users)} users, but a solo run has those of one"
            remedy = "make its workload with: batkube workload convert --user NAME"
            raise InputError(solo.path, problem=problem, remedy=remedy)
        user = str(users.pop())
        shared = done[done["user"] == user].set_index("job_id")["turnaround_time"]
        own = alone.set_index("job_id")["turnaround_time"]
        common = shared.index.intersection(own.index)
        total = float(own[common].sum())
        if total <= 0:
            problem = f"has no finished job of user {user!r} in common with the shared run"
            raise InputError(solo.path, problem=problem, remedy="use the same job ids in both workloads")
        slowdowns[user] = float(shared[common].sum()) / total
    return slowdowns
