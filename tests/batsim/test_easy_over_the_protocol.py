"""EASY backfilling three times: batsched's published schedule, our policy, and a scheduler over Batsim's protocol.

The last one is `examples/batsim/easy.py`, a process of its own, in front of our Batsim and in front of our cluster.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests import published
from tests.batsim.platforms import silent_platform
from tests.batsim.recordings import read_table

import batkube
from batkube.batsim.protocol.zmq_sockets import free_endpoint
from batkube.batsim.simulator.run import SimulatorArguments, run_batsim

EASY = Path(__file__).resolve().parents[2] / "examples" / "batsim" / "easy.py"

Schedule = dict[str, tuple[str, float, str]]
"""Of each job: how it ended, when it started, and where."""


@contextmanager
def easy() -> Iterator[str]:
    """The scheduler, in a process of its own; yields where it listens."""
    endpoint = free_endpoint()
    with subprocess.Popen([sys.executable, str(EASY), endpoint]) as process:
        try:
            yield endpoint
            assert process.wait(10) == 0
        finally:
            process.kill()


def schedule(path: Path) -> Schedule:
    """Return what a jobs.csv says."""
    header, *rows = read_table(path)
    columns = ("job_id", "final_state", "starting_time", "allocated_resources")
    places = [header.index(name) for name in columns]
    cells = ([row[place] for place in places] for row in rows)
    return {job: (state, float(start or "nan"), machines) for job, state, start, machines in cells}


def by_our_batsim(workload: Path, machines: int, folder: Path) -> Schedule:
    platform = silent_platform(folder, machines)
    with easy() as endpoint:
        run_batsim(
            SimulatorArguments(platform=platform, workloads=[workload], endpoint=endpoint, prefix=str(folder / "out"))
        )
    return schedule(folder / "out_jobs.csv")


def by_our_cluster(workload: Path, machines: int, folder: Path, scheduler: str) -> Schedule:
    batkube.run(workload=workload, platform=f"{machines}x1", scheduler=scheduler, out=folder / "run")
    return schedule(folder / "run" / "jobs.csv")


OVER_THE_PROTOCOL = f"batsim:{sys.executable} {EASY} {{endpoint}}"


def assert_equal(ours: Schedule, theirs: Schedule) -> None:
    assert ours.keys() == theirs.keys()
    for job, (state, start, machines) in theirs.items():
        assert (ours[job][0], ours[job][2]) == (state, machines), job
        # Both print six decimals of the same sums, Batsim's of doubles: the last digit may differ.
        assert ours[job][1] == pytest.approx(start, abs=1.5e-6, nan_ok=True), job


@pytest.mark.headline
def test_easy_over_the_protocol_gives_batsched_s_801_starting_times_and_allocations(tmp_path: Path) -> None:
    workload = published.medium_late(tmp_path)
    rows = published.table("medium_late.csv")

    in_batsim = by_our_batsim(workload, 32, tmp_path)
    on_the_cluster = by_our_cluster(workload, 32, tmp_path, OVER_THE_PROTOCOL)

    expected = {row["job"]: (in_batsim[row["job"]][0], float(row["start"]), row["machines"]) for row in rows}
    assert len(expected) == 801
    assert_equal(in_batsim, expected)
    assert_equal(on_the_cluster, expected)


@pytest.mark.headline
@pytest.mark.parametrize("seed", range(3))
def test_easy_over_the_protocol_and_our_policy_agree_on_any_workload(seed: int, tmp_path: Path) -> None:
    """Jobs that come in bursts, some at one instant; a few reach their walltimes."""
    rng = random.Random(seed)
    # Dates in eighths of a second: sums of such are exact, so that a tie is a tie for doubles as for our integers.
    now, jobs = 0.0, []
    for number in range(200):
        now += rng.choice((0, 0, rng.randint(0, 400) / 8))
        size = min(12, 1 + round(rng.expovariate(0.3)))
        length = rng.randint(1, 800) / 8
        jobs.append(
            {
                "id": f"{number:03}",
                "subtime": now,
                "res": size,
                "profile": f"d{length}",
                "walltime": max(1, length * rng.choice((0.5, 1, 1.5, 4))),
            }
        )
    profiles = {str(job["profile"]): {"type": "delay", "delay": float(str(job["profile"])[1:])} for job in jobs}
    workload = tmp_path / "workload.json"
    workload.write_text(json.dumps({"nb_res": 12, "jobs": jobs, "profiles": profiles}))

    in_batsim = by_our_batsim(workload, 12, tmp_path)
    on_the_cluster = by_our_cluster(workload, 12, tmp_path, OVER_THE_PROTOCOL)
    by_our_policy = by_our_cluster(workload, 12, tmp_path / "policy", "policy:easy")

    assert len({start for _, start, _ in by_our_policy.values()}) > 100
    assert_equal(on_the_cluster, in_batsim)
    assert_equal(on_the_cluster, by_our_policy)
