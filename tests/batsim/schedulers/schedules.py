"""Schedules of jobs by our Batsim and by our cluster, for comparison."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.batsim.platforms import silent_platform
from tests.batsim.recordings import read_table

import batkube
from batkube.batsim.simulator.run import SimulatorArguments, run_batsim

Schedule = dict[str, tuple[str, float, str]]
"""The final state, the start and the machines of each job."""


def read_schedule(path: Path) -> Schedule:
    """Return the schedule in a jobs.csv."""
    header, *rows = read_table(path)
    columns = ("job_id", "final_state", "starting_time", "allocated_resources")
    places = [header.index(name) for name in columns]
    cells = ([row[place] for place in places] for row in rows)
    return {job: (state, float(start or "nan"), machines) for job, state, start, machines in cells}


def schedule_in_our_batsim(endpoint: str, workload: Path, machines: int, folder: Path) -> Schedule:
    """Run our Batsim with the scheduler at an endpoint."""
    platform = silent_platform(folder, machines)
    run_batsim(
        SimulatorArguments(platform=platform, workloads=[workload], endpoint=endpoint, prefix=str(folder / "ours"))
    )
    return read_schedule(folder / "ours_jobs.csv")


def schedule_on_our_cluster(workload: Path, machines: int, folder: Path, scheduler: str) -> Schedule:
    """Run a simulated cluster with a scheduler."""
    batkube.run(workload=workload, platform=f"{machines}x1", scheduler=scheduler, out=folder / "run")
    return read_schedule(folder / "run" / "jobs.csv")


def assert_equal(ours: Schedule, theirs: Schedule) -> None:
    """Assert that two schedules are equal."""
    assert ours.keys() == theirs.keys()
    for job, (state, start, machines) in theirs.items():
        assert (ours[job][0], ours[job][2]) == (state, machines), job
        # Both have six decimals of the same sums, Batsim's of doubles: the last digit may differ.
        assert ours[job][1] == pytest.approx(start, abs=1.5e-6, nan_ok=True), job
