"""Recorded runs of a real cluster: jobs.csv with the columns scheduled, pulling, pulled and created.

`batkube emulate` writes such files, and the published k3s runs of 2020 have the same columns. Times are those of the
arrival of events, so an event may be missing (an empty cell), and two close ones may be in the wrong order.
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

#: The events of a pod's start, recorded in addition to Batsim's columns.
EVENTS = ("scheduled", "pulling", "pulled", "created")
_REQUIRED = ("job_id", "submission_time", "starting_time", "execution_time", "finish_time", "allocated_resources")
_REMEDY = "use runs that were recorded on a real cluster, for example with `batkube emulate`, not simulated ones"


@dataclass(frozen=True)
class RecordedRun:
    """One recorded run. Element i of every array is job i of the file; NaN is an unknown time."""

    source: Path
    job_ids: list[str]
    profiles: list[str]
    #: The node of each job; "" if unknown.
    nodes: list[str]
    submitted: Floats
    scheduled: Floats
    pulling: Floats
    pulled: Floats
    created: Floats
    started: Floats
    finished: Floats
    #: The time from the recorded start to the recorded end.
    execution_times: Floats
    #: The number of nodes of the cluster; None if not recorded.
    node_count: int | None = None
    #: The workload's seconds per real second. The times of the file are the workload's; those of this class are real.
    speed: float = 1.0

    def __len__(self) -> int:
        return len(self.job_ids)

    @cached_property
    def is_first(self) -> Bools:
        """Whether each job was the first on its node; False if its node is unknown."""
        first = np.zeros(len(self), dtype=np.bool_)
        used_nodes = {""}
        for row in np.argsort(self.started, kind="stable"):
            if self.nodes[row] not in used_nodes:
                used_nodes.add(self.nodes[row])
                first[row] = True
        return first

    @cached_property
    def bound(self) -> Floats:
        """The binding of each job or, if that event is missing, its first later event."""
        earliest = self.scheduled
        for event in (self.pulling, self.pulled, self.created, self.started):
            earliest = np.where(np.isnan(earliest), event, earliest)
        return earliest


def read_recorded_runs(paths: Iterable[Path]) -> list[RecordedRun]:
    """Read output folders or jobs.csv files."""
    return [_read(Results(path)) for path in paths]


def _read(results: Results) -> RecordedRun:
    table = read_table(results.jobs_path)
    table.require(_REQUIRED, "use the jobs.csv of a recorded run, or its output folder")
    if not any(event in table.columns for event in EVENTS):
        raise InputError(
            results.jobs_path, at="line 1", problem=f"has none of the columns {', '.join(EVENTS)}", remedy=_REMEDY
        )
    usable = _usable_rows(table)
    if not usable.any():
        raise InputError(results.jobs_path, problem="contains no job that succeeded", remedy=_REMEDY)
    speed = _speed_of(results)
    rows: list[int] = np.flatnonzero(usable).tolist()

    def texts(column: str) -> list[str]:
        cells = table.columns.get(column)
        return ["" if cells is None else cells[row] for row in rows]

    def times(column: str) -> Floats:
        if column not in table.columns:
            return np.full(len(rows), np.nan)
        return np.asarray(_numbers(table, column)[rows] / speed)

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
        node_count=results.machine_count_recorded,
        speed=speed,
        **events,
    )


def _speed_of(results: Results) -> float:
    """Return the `--speed` of an emulation; 1 by default."""
    emulation = results.manifest.get("emulation")
    speed = emulation.get("speed") if isinstance(emulation, dict) else None
    return float(speed) if isinstance(speed, int | float) and speed > 0 else 1.0


def _usable_rows(table: TextTable) -> Bools:
    """Return which jobs to use: those with a single pod that started and succeeded."""
    usable = ~np.isnan(_numbers(table, "starting_time"))
    if "success" in table.columns:
        usable &= _numbers(table, "success") == 1
    if "requested_number_of_resources" in table.columns:
        usable &= ~(_numbers(table, "requested_number_of_resources") > 1)
    return usable


def _numbers(table: TextTable, column: str) -> Floats:
    return np.asarray(table.numbers(column), dtype=np.float64)
