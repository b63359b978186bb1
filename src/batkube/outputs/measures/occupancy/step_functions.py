"""Utilisation and queue length over time, as step functions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from batkube.outputs.measures.occupancy.stays import Floats, Stays, busy_periods_of, capacity_of
from batkube.outputs.measures.run_data.run_files import RunFiles


@dataclass(frozen=True, slots=True)
class StepFunction:
    """A step function: `values[i]` holds from `times[i]` until `times[i + 1]`, 0 before the first."""

    times: Floats
    values: Floats

    def at(self, times: Floats) -> Floats:
        """Return the value at each moment."""
        position = np.searchsorted(self.times, times, side="right")
        values: Floats = np.concatenate(([0.0], self.values))[position]
        return values

    def averaged(self, edges: Floats) -> StepFunction:
        """Return the exact time average between consecutive edges, a step per bin; the last edge closes it."""
        boundaries = np.union1d(self.times, edges)
        area = np.concatenate(([0.0], np.cumsum(self.at(boundaries[:-1]) * np.diff(boundaries))))
        means = np.diff(np.interp(edges, boundaries, area)) / np.diff(edges)
        return StepFunction(edges, np.concatenate((means, means[-1:])))

    def within(self, start: float, end: float, *, max_steps: int) -> StepFunction:
        """Return the steps between two times; if there are more than `max_steps`, averages over as many bins."""
        inside = self.times[(self.times > start) & (self.times < end)]
        if len(inside) > max_steps:
            return self.averaged(np.linspace(start, end, max_steps + 1))
        times = np.concatenate(([start], inside, [end]))
        return StepFunction(times, self.at(times))


def utilisation_steps(results: RunFiles, stays: Stays) -> StepFunction:
    """Return the busy share of the existing machines over time."""
    busy = busy_periods_of(stays, sharing=results.shares_machines)
    times = np.concatenate((busy.start, busy.end))
    changes = np.concatenate((busy.milli, -busy.milli)).astype(np.float64)
    steps, missing = cumulative_steps(times, changes), _absent_capacity_steps(results)
    times = np.union1d(steps.times, missing.times)
    offered = np.maximum(busy.total_milli - missing.at(times), 1)
    return StepFunction(times, steps.at(times) / offered)


def _absent_capacity_steps(results: RunFiles) -> StepFunction:
    """Return the capacity of machines whose nodes do not exist, over time."""
    capacity = capacity_of(results)
    changes = [(0.0, float(capacity[machine])) for machine in results.presence_s]
    for machine, spans in results.presence_s.items():
        for begin, end in spans:
            changes += [(begin, -float(capacity[machine])), (end, float(capacity[machine]))]
    finite = [(at, amount) for at, amount in changes if math.isfinite(at)]
    return cumulative_steps(np.array([at for at, _ in finite]), np.array([amount for _, amount in finite]))


def queue_length(results: RunFiles, weights: pd.Series[float] | None = None) -> StepFunction:
    """Return how many jobs wait over time, or the sum of their `weights`.

    Computed from the jobs if each waited once, which is fast; otherwise from the pods, if the run wrote them.
    """
    jobs = results.jobs
    waited_once = bool(jobs["starting_time"].notna().all() and (jobs["evictions"].fillna(0) == 0).all())
    if waited_once or results.pods.empty:
        return queue_steps(jobs, weights)
    keys = pd.MultiIndex.from_frame(jobs[["workload_name", "job_id"]])
    return pod_queue_steps(results.pods, None if weights is None else weights.set_axis(keys))


def queue_steps(jobs: pd.DataFrame, weights: pd.Series[float] | None = None) -> StepFunction:
    """Return how many jobs are submitted and not started, or the sum of their `weights`.

    Rejected jobs are left out, since jobs.csv has no time of rejection; jobs that never started wait until the end.
    """
    weight_of = pd.Series(1.0, index=jobs.index) if weights is None else weights
    waiting = jobs[(jobs["final_state"] != "REJECTED") | jobs["starting_time"].notna()]
    starts = waiting["starting_time"].dropna()
    times = np.concatenate((waiting["submission_time"].to_numpy(), starts.to_numpy()))
    changes = np.concatenate((weight_of[waiting.index].to_numpy(), -weight_of[starts.index].to_numpy()))
    return cumulative_steps(times, changes.astype(np.float64))


def pod_queue_steps(pods: pd.DataFrame, weights: pd.Series[float] | None = None) -> StepFunction:
    """Return how many jobs wait, or the sum of their `weights`, from their pods: also right after evictions.

    The pods of one job that were created together are one attempt. It waits until the last of them runs, or until
    they are deleted. Weights are by workload and job.
    """
    attempts = pods.groupby(["workload_name", "job_id", "created"], sort=False)
    ran = attempts["started"].count() == attempts["pod"].count()
    ends = attempts["started"].max().where(ran, attempts["finished"].max())
    begins = ends.index.get_level_values("created").to_numpy(dtype=np.float64)
    # Pods without a job count as one job, and have weight 0.
    owners = pd.MultiIndex.from_arrays([ends.index.get_level_values(name) for name in ("workload_name", "job_id")])
    amounts = np.ones(len(ends)) if weights is None else weights.reindex(owners).fillna(0.0).to_numpy()
    times = np.concatenate((begins, ends.to_numpy(dtype=np.float64)))
    return cumulative_steps(times, np.concatenate((amounts, -amounts)))


def cumulative_steps(times: Floats, changes: Floats) -> StepFunction:
    """Return the cumulative sum of the changes, at each distinct time."""
    times, position = np.unique(times, return_inverse=True)
    # Mostly whole numbers below 2**53, whose sums are exact.
    return StepFunction(times, np.cumsum(np.bincount(position, weights=changes, minlength=len(times))))
