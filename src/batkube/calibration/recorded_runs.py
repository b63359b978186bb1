"""Recorded runs of a real cluster: jobs.csv with the columns scheduled, pulling, pulled and created.

Such files are written by `batkube emulate`, and the published k3s runs of 2020 have the same columns. Times were taken
when an event arrived, so events may be missing (an empty cell) and two that were close may be in the wrong order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from batkube.kernel.errors import InputError
from batkube.outputs.measures.run_data.text_table import TextTable, read_table
from batkube.outputs.results import Results

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: The events of a pod's start that are recorded beside Batsim's columns.
EVENTS = ("scheduled", "pulling", "pulled", "created")
_REQUIRED = ("job_id", "submission_time", "starting_time", "execution_time", "finish_time", "allocated_resources")
_REMEDY = "give runs recorded on a real cluster, as `batkube emulate` writes them; simulated runs hold no such events"


@dataclass(frozen=True)
class RecordedRun:
    """One recorded run. Element i of every array is job i of the file; NaN stands for a time that is not known."""

    source: Path
    job_ids: list[str]
    profiles: list[str]
    #: The node of each job; empty where it is not known.
    nodes: list[str]
    submitted: Floats
    scheduled: Floats
    pulling: Floats
    pulled: Floats
    created: Floats
    started: Floats
    finished: Floats
    #: From the start as recorded to the end as recorded.
    execution_times: Floats
    #: How many nodes the cluster had, if the run says so.
    stated_node_count: int | None = None
    #: How many seconds of the workload passed in a real one. The file's times are the workload's; those here are real.
    speed: float = 1.0

    def __len__(self) -> int:
        return len(self.job_ids)

    @cached_property
    def is_first(self) -> Bools:
        """Which jobs were the first of the run on their node, as far as nodes are known."""
        first = np.zeros(len(self), dtype=np.bool_)
        seen = {""}
        for row in np.argsort(self.started, kind="stable"):
            if self.nodes[row] not in seen:
                seen.add(self.nodes[row])
                first[row] = True
        return first

    @cached_property
    def bound(self) -> Floats:
        """When each job was bound, or the first sign of it where that event is missing."""
        known = self.scheduled
        for later in (self.pulling, self.pulled, self.created, self.started):
            known = np.where(np.isnan(known), later, known)
        return known


def read_recorded_runs(paths: Iterable[Path]) -> list[RecordedRun]:
    """Read output folders or jobs.csv files."""
    return [_read(Results(path)) for path in paths]


def _read(results: Results) -> RecordedRun:
    table = read_table(results.jobs_path)
    table.require(_REQUIRED, "give the jobs.csv of a recorded run, or the folder that holds it")
    if not any(event in table.columns for event in EVENTS):
        raise InputError(
            results.jobs_path, at="line 1", problem=f"has none of the columns {', '.join(EVENTS)}", remedy=_REMEDY
        )
    used = _usable_rows(table)
    if not used.any():
        raise InputError(results.jobs_path, problem="contains no job that succeeded", remedy=_REMEDY)
    speed = _speed_of(results)
    picked: list[int] = np.flatnonzero(used).tolist()

    def texts(column: str) -> list[str]:
        cells = table.columns.get(column)
        return ["" if cells is None else cells[row] for row in picked]

    def times(column: str) -> Floats:
        if column not in table.columns:
            return np.full(len(picked), np.nan)
        return np.asarray(_numbers(table, column)[picked] / speed)

    events = {event: times(event) for event in EVENTS}
    return RecordedRun(
        source=results.jobs_path,
        job_ids=texts("job_id"),
        profiles=texts("profile"),
        nodes=texts("allocated_resources"),
        submitted=times("submission_time"),
        started=times("starting_time"),
        finished=times("finish_time"),
        execution_times=times("execution_time"),
        stated_node_count=results.machine_count_stated,
        speed=speed,
        **events,
    )


def _speed_of(results: Results) -> float:
    """Return the `--speed` of an emulation; 1 by default."""
    emulation = results.manifest.get("emulation")
    speed = emulation.get("speed") if isinstance(emulation, dict) else None
    return float(speed) if isinstance(speed, int | float) and speed > 0 else 1.0


def _usable_rows(table: TextTable) -> Bools:
    """Return which jobs to learn from: those of one pod that started and succeeded."""
    used = ~np.isnan(_numbers(table, "starting_time"))
    if "success" in table.columns:
        used &= _numbers(table, "success") == 1
    if "requested_number_of_resources" in table.columns:
        used &= ~(_numbers(table, "requested_number_of_resources") > 1)
    return used


def _numbers(table: TextTable, column: str) -> Floats:
    return np.asarray(table.numbers(column), dtype=np.float64)
