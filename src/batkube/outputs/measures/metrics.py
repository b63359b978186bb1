"""Metrics of a run, computed from its jobs.csv. docs/reference/outputs-metrics.md defines each, with its formula.

Means, percentiles and maxima are over *finished* jobs (those with a start and a finish, whatever their final state, as
in Batsim's schedule.csv) that were submitted in the *window* (`kernel.measured_window`). A number that cannot be
computed from the files is None, never a guess.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant, as_float_s, seconds
from batkube.kernel.measured_window import Window
from batkube.outputs.job_statistics import BOUND_S, UTILISATION_PREFIX, MeasuredJob, job_statistics_of
from batkube.outputs.measures.occupancy.stays import (
    WHOLE_MILLI,
    Floats,
    busy_periods_of,
    capacity_between,
    executions_of,
)
from batkube.outputs.measures.run_data.run_files import RunFiles

#: Tolerance between a number with six decimals and the same number computed in another way.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics of one run; names end in the unit, shares are 0 to 1."""

    jobs: int
    finished: int
    #: Finished jobs that were submitted in the window, and from when to when it lasts.
    measured: int
    measured_from_s: float
    measured_until_s: float
    #: Jobs by final state, in alphabetic order.
    states: dict[str, int]
    makespan_s: float | None
    wait_s_mean: float | None
    wait_s_median: float | None
    wait_s_p90: float | None
    wait_s_p95: float | None
    wait_s_p99: float | None
    wait_s_max: float | None
    turnaround_s_mean: float | None
    slowdown_mean: float | None
    slowdown_max: float | None
    bounded_slowdown_mean: float | None
    utilisation: float | None
    throughput_per_h: float | None
    fairness: float | None
    evictions: int
    #: Machine-seconds, or core-seconds if jobs share machines, of attempts that were lost.
    work_lost_s: float | None
    #: How often the scheduler violated a rule that every cluster enforces.
    violations: int
    #: All of the above and further metrics, by the columns of schedule.csv and results.csv.
    columns: dict[str, float | None]


def metrics_of(results: RunFiles, window: Window) -> Metrics:
    """Return the metrics of a run: counts over all its jobs, and means over those submitted in the window."""
    jobs = results.jobs
    done = jobs_in(window, finished_jobs(jobs))
    wait = done["waiting_time"].to_numpy()
    slowdowns = _slowdowns(done)
    makespan = last_finish_s(jobs)
    begin, end = window_s(window, makespan)
    measures = job_statistics_of(measured_jobs(done))
    evictions = int(jobs["evictions"].fillna(0).sum())
    lost = float(jobs["work_lost"].sum()) if jobs["work_lost"].notna().any() else None
    share = utilisation(results, window)
    ended = int(finished_jobs(jobs)["finish_time"].between(begin, end).sum())
    throughput = ended / (end - begin) * 3600 if end > begin else None
    columns: dict[str, float | None] = {
        "nb_jobs": len(jobs),
        "nb_jobs_finished": len(finished_jobs(jobs)),
        "nb_jobs_measured": len(done),
        "measured_from": begin,
        "measured_until": end,
        "makespan": makespan,
        "mean_waiting_time": _mean(wait),
        "max_waiting_time": _max(wait),
        "mean_turnaround_time": _mean(done["turnaround_time"].to_numpy()),
        "mean_slowdown": _mean(slowdowns),
        "max_slowdown": _max(slowdowns),
        **measures,
        "mean_utilisation": share,
        **_resource_shares(results, window),
        "throughput": throughput,
        "nb_evictions": evictions,
        "work_lost": lost,
        "nb_violations": results.violations,
    }
    return Metrics(
        jobs=len(jobs),
        finished=len(finished_jobs(jobs)),
        measured=len(done),
        measured_from_s=begin,
        measured_until_s=end,
        states={str(state): int(count) for state, count in jobs["final_state"].value_counts().sort_index().items()},
        makespan_s=makespan,
        wait_s_mean=columns["mean_waiting_time"],
        wait_s_median=measures["median_waiting_time"],
        wait_s_p90=measures["p90_waiting_time"],
        wait_s_p95=measures["p95_waiting_time"],
        wait_s_p99=measures["p99_waiting_time"],
        wait_s_max=columns["max_waiting_time"],
        turnaround_s_mean=columns["mean_turnaround_time"],
        slowdown_mean=columns["mean_slowdown"],
        slowdown_max=columns["max_slowdown"],
        bounded_slowdown_mean=measures["mean_bounded_slowdown"],
        utilisation=share,
        throughput_per_h=throughput,
        fairness=measures["fairness_by_user"],
        evictions=evictions,
        work_lost_s=lost,
        violations=results.violations,
        columns=columns,
    )


def finished_jobs(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs that started and ended, in the same order."""
    return jobs[jobs["starting_time"].notna() & jobs["finish_time"].notna()]


def bounded_slowdowns(done: pd.DataFrame) -> Floats:
    """Return max(1, turnaround / max(execution, 10 s)) of each finished job."""
    ratio = done["turnaround_time"].to_numpy() / np.maximum(done["execution_time"].to_numpy(), BOUND_S)
    bounded: Floats = np.maximum(1.0, ratio)
    return bounded


def jobs_in(window: Window, jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs that were submitted in the window."""
    submits = (jobs["submission_time"] * NANOSECONDS_PER_SECOND).round()
    return jobs[
        (submits >= window.begin) & (submits <= (math.inf if window.last_submit is None else window.last_submit))
    ]


def last_finish_s(jobs: pd.DataFrame) -> float | None:
    """Return when the last job finished; None when none did."""
    done = finished_jobs(jobs)
    return float(done["finish_time"].max()) if len(done) else None


def window_s(window: Window, makespan_s: float | None) -> tuple[float, float]:
    """Return the beginning and the end of the window for utilisation, in seconds."""
    return as_float_s(window.begin), as_float_s(window.usage_end(Instant(seconds(makespan_s or 0.0))))


def utilisation(results: RunFiles, window: Window) -> float | None:
    """Return the share of cpu, or of machines, that pods held in the window.

    schedule.csv has it for the run's own window. For another one, jobs.csv has it if pods held their requests from the
    starts of jobs to their finishes, and machine_states.csv if they held whole machines. Which of the two applies is
    determined by computing the run's own window; if neither applies, the share is unknown.
    """
    begin, end = _measured_range_s(results, window)
    recorded = results.schedule.get("mean_utilisation")
    if not isinstance(recorded, float):
        return _utilisation_of_jobs(results, begin, end)
    own = results.schedule["measured_from"], results.schedule["measured_until"]
    if (begin, end) == own:
        return recorded
    for compute_share in (_utilisation_of_jobs, _utilisation_of_machines):
        share = compute_share(results, *own)
        if share is not None and abs(share - recorded) <= _ROUNDING:
            return compute_share(results, begin, end)
    return None


def _utilisation_of_jobs(results: RunFiles, begin: float, end: float) -> float | None:
    """Return the busy share of existing machines according to jobs.csv; None if a job's machines are unknown.

    Busy cpu if jobs share machines by their requests, otherwise busy machines. Lost attempts do not count.
    """
    done = finished_jobs(results.jobs)
    stays = executions_of(results)
    if stays.unplaced or not len(done):
        return None
    offered = capacity_between(results, begin, end)
    if not results.shares_machines:
        return busy_periods_of(stays, sharing=False).amount_between(begin, end) / offered if offered > 0 else 0.0
    # From the jobs, not from their stays, which round a job's cpu per machine to whole millicores.
    cores = done["requested_number_of_resources"].fillna(1) * done["cpu"].fillna(0)
    inside = done["finish_time"].clip(upper=end) - done["starting_time"].clip(lower=begin)
    return float((cores * inside.clip(lower=0)).sum() * 1000 / offered) if offered > 0 else 0.0


def _utilisation_of_machines(results: RunFiles, begin: float, end: float) -> float | None:
    """Return the share of machines that had pods; None when jobs share machines."""
    states, offered = results.machine_states, capacity_between(results, begin, end)
    if results.shares_machines or offered <= 0:
        return None
    since = states["time"].to_numpy()
    until = np.append(since[1:], max(since[-1], end)) if len(since) else since
    inside = np.clip(until, begin, end) - np.clip(since, begin, end)
    return float((inside * states["nb_computing"].to_numpy()).sum() * WHOLE_MILLI / offered)


def _measured_range_s(results: RunFiles, window: Window) -> tuple[float, float]:
    """Return the window for utilisation, in seconds; if no job ended, its end is that in schedule.csv."""
    makespan = last_finish_s(results.jobs)
    begin, end = window_s(window, makespan)
    recorded = results.schedule.get("measured_until")
    return begin, max(begin, recorded) if makespan is None and isinstance(recorded, float) else end


def measured_jobs(done: pd.DataFrame) -> list[MeasuredJob]:
    """Return finished jobs for `job_statistics_of`; a job of unknown size counts as one machine."""
    columns = (
        done["waiting_time"],
        done["turnaround_time"],
        done["execution_time"],
        done["requested_number_of_resources"].fillna(1),
        done["user"],
    )
    return [MeasuredJob(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _resource_shares(results: RunFiles, window: Window) -> dict[str, float | None]:
    """Return each resource's utilisation; None unless `window` is the run's own, for which schedule.csv has it."""
    cells = {str(name): value for name, value in results.schedule.items()}
    shares = {name: value for name, value in cells.items() if name.startswith(UTILISATION_PREFIX)}
    own = results.schedule.get("measured_from"), results.schedule.get("measured_until")
    same = _measured_range_s(results, window) == own
    return {name: value if same and isinstance(value, float) else None for name, value in shares.items()}


def users_table(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return a row per user, in alphabetic order: jobs, finished, mean wait, mean bounded slowdown."""
    done = finished_jobs(jobs)
    done = done.assign(bounded=bounded_slowdowns(done))
    by_user = done.groupby("user")
    table = pd.DataFrame({"jobs": jobs.groupby("user").size()})
    table["finished"] = by_user.size().reindex(table.index, fill_value=0)
    table["wait_s_mean"] = by_user["waiting_time"].mean()
    table["bounded_slowdown_mean"] = by_user["bounded"].mean()
    return table


def _slowdowns(done: pd.DataFrame) -> Floats:
    timed = done[done["execution_time"] > 0]
    ratio: Floats = (timed["turnaround_time"] / timed["execution_time"]).to_numpy()
    return ratio


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _max(values: Floats) -> float | None:
    return float(values.max()) if len(values) else None
