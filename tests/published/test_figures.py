"""The inputs that are generated or stored here equal the published ones, where these are available."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

import published
from batkube.kernel.instants import seconds
from batkube.workloads.model import Delay, Job
from batkube.workloads.reader import read_workload

Facts = tuple[object, ...]


def facts(job: Job) -> Facts:
    assert isinstance(job.profile, Delay)
    return job.name, job.submit, job.size, job.walltime, job.requests, job.profile.duration


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (published.burst, "200_delay170.json"),
        (published.spaced, "spaced_200_delay170.json"),
        (published.kit, "KIT_10h_80.json"),
    ],
)
def test_the_workloads_of_2020_are_the_published_ones(
    shared_data: Path, tmp_path: Path, make: Callable[[Path], Path], name: str
) -> None:
    theirs = read_workload(shared_data / "batkube" / "workloads" / name)

    assert [facts(job) for job in read_workload(make(tmp_path)).jobs] == [facts(job) for job in theirs.jobs]


def test_the_801_jobs_are_those_that_batsim_ran(shared_data: Path, tmp_path: Path) -> None:
    theirs = {job.name: job for job in read_workload(shared_data / "medium_late" / "medium_late.json").jobs}
    with (shared_data / "medium_late" / "easy" / "out_jobs.csv").open(newline="") as file:
        outcomes = {row["job_id"]: row for row in csv.DictReader(file)}

    ours = read_workload(published.medium_late(tmp_path)).jobs
    assert {job.name for job in ours} == theirs.keys() == outcomes.keys()
    for job in ours:
        # Submission times are Batsim's, which have six decimals.
        assert job.submit == pytest.approx(theirs[job.name].submit, abs=seconds("0.000001"))
        assert facts(job)[2:] == facts(theirs[job.name])[2:]
    for row in published.table("medium_late.csv"):
        outcome = outcomes[row["job"]]
        assert float(row["start"]) == float(outcome["starting_time"])
        assert row["machines"] == outcome["allocated_resources"]


def test_the_backfilling_instances_are_the_published_ones(shared_data: Path) -> None:
    theirs = {}
    for path in (shared_data / "backfilling").glob("*_input.*"):
        lines = [line.split() for line in path.read_text().splitlines() if line.strip() and line[0] != "#"]
        theirs[path.name.replace("_input", "")] = [tuple(map(float, line[:5])) for line in lines]

    ours: dict[str, list[tuple[float, ...]]] = {}
    for row in published.table("backfilling.csv"):
        fields = ("submit", "end", "walltime", "size", "run")
        ours.setdefault(row["instance"], []).append(tuple(float(row[name]) for name in fields))
    assert ours == theirs
