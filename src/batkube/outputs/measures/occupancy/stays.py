"""Stays of jobs on machines, computed from a run's files.

A *stay* is a period in which a job used machines with consecutive ids, `milli` thousandths of a core of each of them
(of the machine, if jobs take whole machines). jobs.csv has each job's last attempt. pods.csv also has the
attempts that were lost to evictions and node failures, and shows which pods share a machine. Without pods.csv, a job's
pods are spread evenly over its machines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from batkube.cluster.jobs.outcomes import OBJECT_PROFILE
from batkube.kernel.intervals import parse_intervals, runs
from batkube.outputs.measures.run_data.run_files import RunFiles

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Capacity of a machine if jobs take it whole.
WHOLE_MILLI = 1000


@dataclass(frozen=True, slots=True)
class Stays:
    """Parallel arrays, a stay per position."""

    #: Row of the job in `RunFiles.jobs`.
    job: Ints
    first: Ints
    last: Ints
    start: Floats
    end: Floats
    milli: Ints
    #: True when the work done was lost: the pod was evicted and its job ran again later.
    lost: Bools
    #: Each machine's capacity, in the unit of `milli`.
    capacity: Ints
    #: Number of started jobs whose machines are unknown (the emulated runs of 2020 missed events).
    unplaced: int = 0

    def __len__(self) -> int:
        return len(self.job)

    def per_machine(self) -> Stays:
        """Return the same stays, each on one machine only."""
        width = self.last - self.first + 1
        source = np.repeat(np.arange(len(self)), width)
        within = np.arange(len(source)) - np.repeat(np.cumsum(width) - width, width)
        machine = self.first[source] + within
        return replace(self._select(source), first=machine, last=machine)

    def only_lost(self) -> Stays:
        """Return the stays whose work was lost."""
        return self._select(np.flatnonzero(self.lost))

    def merged(self) -> Stays:
        """Return the same stays, with simultaneous ones of a job on consecutive machines merged."""
        order = np.lexsort((self.first, self.end, self.start, self.job))
        stays = self._select(order)
        alike = (np.diff(stays.job) == 0) & (np.diff(stays.start) == 0) & (np.diff(stays.end) == 0)
        continues = alike & (stays.first[1:] == stays.last[:-1] + 1)
        heads = np.flatnonzero(np.concatenate(([True], ~continues))[: len(stays)])
        tails = np.concatenate((heads[1:] - 1, [len(stays) - 1]))[: len(heads)]
        return replace(stays._select(heads), last=stays.last[tails])

    def concatenated_with(self, other: Stays) -> Stays:
        """Return the stays of both, on the machines of the first."""
        columns: dict[str, Any] = {
            name: np.concatenate((getattr(self, name), getattr(other, name))) for name in _COLUMNS
        }
        return replace(self, **columns)

    def _select(self, numbers: Ints) -> Stays:
        return replace(self, **{name: getattr(self, name)[numbers] for name in _COLUMNS})


#: The arrays of `Stays` that have an entry per stay.
_COLUMNS = ("job", "first", "last", "start", "end", "milli", "lost")


def stays_of(results: RunFiles) -> Stays:
    """Return every stay of the run, including lost attempts, as far as its files have them."""
    jobs = results.jobs
    is_any_lost = bool(((jobs["evictions"] > 0) | (jobs["attempts"] > 1)).any())
    # A Job that is retried, or whose pods run one after another, is not on all its machines from its start to its end.
    is_object = jobs["profile"] == OBJECT_PROFILE
    in_turns = bool((is_object & (jobs["tries"] > jobs["requested_number_of_resources"])).any())
    if (results.shares_machines or in_turns) and results.pods["started"].notna().any():
        return _stays_of_pods(results)
    executions = executions_of(results)
    if not is_any_lost or not results.pods["started"].notna().any():
        return executions
    return executions.concatenated_with(_stays_of_pods(results).only_lost().merged())


def horizon_s(jobs: pd.DataFrame) -> float:
    """Return the last time in the jobs; work that never ended is assumed to last until then."""
    times = jobs[["submission_time", "starting_time", "finish_time"]].to_numpy()
    return float(np.nanmax(times)) if np.isfinite(times).any() else 0.0


def executions_of(results: RunFiles) -> Stays:
    """Return the stays that jobs.csv records: each job's last attempt, on each interval of its machines."""
    jobs = results.jobs
    sharing = results.shares_machines
    started = jobs["starting_time"].notna().to_numpy()
    ends = jobs["finish_time"].fillna(horizon_s(jobs)).to_numpy()
    sizes = jobs["requested_number_of_resources"].fillna(1).to_numpy()
    cpu_milli = jobs["cpu"].fillna(0).to_numpy() * 1000
    masks = {text: parse_intervals(text) for text in jobs["allocated_resources"].unique()}
    job, first, last, milli, unplaced = [], [], [], [], 0
    for row, text in enumerate(jobs["allocated_resources"]):
        mask = masks[text]
        if not started[row] or not mask:
            unplaced += bool(started[row])
            continue
        amount = int(np.ceil(cpu_milli[row] * sizes[row] / mask.bit_count())) if sharing else WHOLE_MILLI
        for low, high in runs(mask):
            job.append(row)
            first.append(low)
            last.append(high)
            milli.append(amount)
    rows = np.array(job, dtype=np.int64)
    return Stays(
        rows,
        np.array(first, dtype=np.int64),
        np.array(last, dtype=np.int64),
        jobs["starting_time"].to_numpy()[rows],
        ends[rows],
        np.array(milli, dtype=np.int64),
        np.zeros(len(rows), dtype=np.bool_),
        capacity_of(results),
        unplaced,
    )


def _stays_of_pods(results: RunFiles) -> Stays:
    jobs, pods = results.jobs, results.pods
    row_of = {key: row for row, key in enumerate(zip(jobs["workload_name"], jobs["job_id"], strict=True))}
    keys = zip(pods["workload_name"], pods["job_id"], strict=True)
    row = np.array([row_of.get(key, -1) for key in keys], dtype=np.int64)
    machine = machine_ids_of(results, pods)
    placed = (row >= 0) & (machine >= 0) & (machine < results.machine_count) & pods["started"].notna().to_numpy()
    row, machine, pods = row[placed], machine[placed], pods[placed]
    end = pods["finished"].fillna(horizon_s(jobs)).to_numpy()
    job_start = jobs["starting_time"].to_numpy()[row]
    # A pod that was over before its job's recorded start belongs to an attempt that was lost.
    lost = np.isnan(job_start) | ((end <= job_start) & (pods["started"].to_numpy() < job_start))
    cpu_milli = np.ceil(jobs["cpu"].fillna(0).to_numpy()[row] * 1000).astype(np.int64)
    milli = cpu_milli if results.shares_machines else np.full(len(row), WHOLE_MILLI, dtype=np.int64)
    return Stays(row, machine, machine, pods["started"].to_numpy(), end, milli, lost, capacity_of(results))


def machine_ids_of(results: RunFiles, pods: pd.DataFrame) -> Ints:
    """Return the id of the machine that each pod was on; -1 where that is unknown."""
    id_of = {name: number for number, name in enumerate(results.machine_names)}
    numbers = [int(text) if text.isdecimal() else id_of.get(text, -1) for text in pods["machine"]]
    return np.array(numbers, dtype=np.int64)


def capacity_of(results: RunFiles) -> Ints:
    """Return each machine's capacity, in thousandths of a core, or of the machine if jobs take it whole."""
    if results.shares_machines:
        return np.array(results.cpu_milli, dtype=np.int64)
    return np.full(results.machine_count, WHOLE_MILLI, dtype=np.int64)


def capacity_between(results: RunFiles, begin_s: float, end_s: float) -> float:
    """Return the capacity that machines offered from `begin_s` to `end_s` while their nodes existed, times seconds."""
    capacity, length = capacity_of(results), max(0.0, end_s - begin_s)
    absent = sum(
        capacity[machine] * (length - sum(max(0.0, min(end_s, end) - max(begin_s, begin)) for begin, end in spans))
        for machine, spans in results.presence_s.items()
    )
    return float(capacity.sum() * length - absent)


@dataclass(frozen=True, slots=True)
class BusyPeriods:
    """When machines were busy: disjoint periods of each machine, or every stay with its cpu if jobs share machines."""

    start: Floats
    end: Floats
    #: Busy capacity during the period, in the unit of `total_milli`.
    milli: Ints
    total_milli: int

    def amount_between(self, begin_s: float, end_s: float) -> float:
        """Return the busy capacity from `begin_s` to `end_s`, times seconds."""
        length = np.clip(self.end, begin_s, end_s) - np.clip(self.start, begin_s, end_s)
        return float((length * self.milli).sum())


def busy_periods_of(stays: Stays, *, sharing: bool) -> BusyPeriods:
    """Return when machines were busy.

    If jobs share machines, every stay counts with its cpu. Otherwise a machine is busy while at least one job is on it,
    so that over-allocation does not count twice.
    """
    total = int(stays.capacity.sum())
    if sharing:
        return BusyPeriods(stays.start, stays.end, stays.milli * (stays.last - stays.first + 1), total)
    single = stays.per_machine()
    order = np.lexsort((single.end, single.start, single.first))
    machine, start, end = single.first[order], single.start[order], single.end[order]
    # The new part of each stay: from the latest end so far on its machine (or its own start) to its own end.
    latest_ends = pd.Series(end).groupby(machine).cummax()
    before = latest_ends.groupby(machine).shift().fillna(-np.inf).to_numpy()
    new_start = np.maximum(start, before)
    has_new = end > new_start
    milli = np.full(int(has_new.sum()), WHOLE_MILLI, dtype=np.int64)
    return BusyPeriods(new_start[has_new], end[has_new], milli, total)
