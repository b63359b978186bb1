"""Utilisation and queue length over time, as step functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from batkube.outputs.measures.occupation import Busy, Floats


@dataclass(frozen=True, slots=True)
class StepFunction:
    """A step function: `values[i]` holds from `times[i]` until `times[i + 1]`, 0 before the first."""

    times: Floats
    values: Floats

    def at(self, moments: Floats) -> Floats:
        """Return the value at each moment."""
        position = np.searchsorted(self.times, moments, side="right")
        values: Floats = np.concatenate(([0.0], self.values))[position]
        return values

    def averaged(self, edges: Floats) -> StepFunction:
        """Return the exact time average between consecutive edges, a step per bin; the last edge closes it."""
        knots = np.union1d(self.times, edges)
        area = np.concatenate(([0.0], np.cumsum(self.at(knots[:-1]) * np.diff(knots))))
        means = np.diff(np.interp(edges, knots, area)) / np.diff(edges)
        return StepFunction(edges, np.concatenate((means, means[-1:])))

    def within(self, start: float, end: float, *, most: int) -> StepFunction:
        """Return the steps between two times, averaged over `most` bins when there are more steps than that."""
        inside = self.times[(self.times > start) & (self.times < end)]
        if len(inside) > most:
            return self.averaged(np.linspace(start, end, most + 1))
        times = np.concatenate(([start], inside, [end]))
        return StepFunction(times, self.at(times))


def utilisation_steps(busy: Busy) -> StepFunction:
    """Return the busy share of the cluster."""
    times = np.concatenate((busy.start, busy.end))
    changes = np.concatenate((busy.milli, -busy.milli)).astype(np.float64)
    steps = _accumulate(times, changes)
    return StepFunction(steps.times, steps.values / max(busy.total_milli, 1))


def queue_steps(jobs: pd.DataFrame) -> StepFunction:
    """Return how many jobs are submitted and not started.

    Rejected jobs are left out, since jobs.csv does not tell when they were; jobs that never started stay to the end.
    """
    waiting = jobs[(jobs["final_state"] != "REJECTED") | jobs["starting_time"].notna()]
    left = waiting["starting_time"].dropna().to_numpy()
    times = np.concatenate((waiting["submission_time"].to_numpy(), left))
    return _accumulate(times, np.concatenate((np.ones(len(waiting)), -np.ones(len(left)))))


def pod_queue_steps(pods: pd.DataFrame) -> StepFunction:
    """Return how many jobs wait, from their pods: also right for jobs that were evicted, rejected or never started.

    The pods of one job that were created together are one attempt. It waits until the last of them runs, or until
    they are gone.
    """
    attempts = pods.groupby(["workload_name", "job_id", "created"], sort=False)
    ran = attempts["started"].count() == attempts["pod"].count()
    ends = attempts["started"].max().where(ran, attempts["finished"].max())
    begins = ends.index.get_level_values("created").to_numpy(dtype=np.float64)
    times = np.concatenate((begins, ends.to_numpy(dtype=np.float64)))
    return _accumulate(times, np.concatenate((np.ones(len(begins)), -np.ones(len(begins)))))


def _accumulate(times: Floats, changes: Floats) -> StepFunction:
    moments, position = np.unique(times, return_inverse=True)
    # Whole numbers below 2**53, so that sums of floats are exact.
    return StepFunction(moments, np.cumsum(np.bincount(position, weights=changes, minlength=len(moments))))
