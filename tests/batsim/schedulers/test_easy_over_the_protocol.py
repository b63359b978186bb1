"""EASY backfilling in three ways: batsched's published schedule, our policy, and a scheduler of Batsim's protocol.

The last one is the program `examples/batsim/easy.py`, with our Batsim and with our cluster.
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
from tests.batsim.schedulers.schedules import (
    Schedule,
    assert_equal,
    schedule_in_our_batsim,
    schedule_on_our_cluster,
)

from batkube.batsim.protocol.zmq_sockets import free_endpoint

EASY = Path(__file__).resolve().parents[3] / "examples" / "batsim" / "easy.py"


@contextmanager
def easy() -> Iterator[str]:
    """Run the scheduler in a process; yield its endpoint."""
    endpoint = free_endpoint()
    with subprocess.Popen([sys.executable, str(EASY), endpoint]) as process:
        try:
            yield endpoint
            assert process.wait(10) == 0
        finally:
            process.kill()


def easy_in_our_batsim(workload: Path, machines: int, folder: Path) -> Schedule:
    with easy() as endpoint:
        return schedule_in_our_batsim(endpoint, workload, machines, folder)


OVER_THE_PROTOCOL = f"batsim:{sys.executable} {EASY} {{endpoint}}"


@pytest.mark.headline
def test_easy_over_the_protocol_has_batscheds_801_starting_times_and_allocations(tmp_path: Path) -> None:
    workload = published.medium_late(tmp_path)
    rows = published.table("medium_late.csv")

    in_batsim = easy_in_our_batsim(workload, 32, tmp_path)
    on_the_cluster = schedule_on_our_cluster(workload, 32, tmp_path, OVER_THE_PROTOCOL)

    expected = {row["job"]: (in_batsim[row["job"]][0], float(row["start"]), row["machines"]) for row in rows}
    assert len(expected) == 801
    assert_equal(in_batsim, expected)
    assert_equal(on_the_cluster, expected)


@pytest.mark.headline
@pytest.mark.parametrize("seed", range(3))
def test_easy_over_the_protocol_and_our_policy_agree_on_any_workload(seed: int, tmp_path: Path) -> None:
    """Jobs are submitted in bursts, some at one instant; a few reach their walltimes."""
    rng = random.Random(seed)
    # Dates are multiples of 1/8 s, whose sums are exact, so that doubles and our integers have the same ties.
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

    in_batsim = easy_in_our_batsim(workload, 12, tmp_path)
    on_the_cluster = schedule_on_our_cluster(workload, 12, tmp_path, OVER_THE_PROTOCOL)
    with_our_policy = schedule_on_our_cluster(workload, 12, tmp_path / "policy", "policy:easy")

    assert len({start for _, start, _ in with_our_policy.values()}) > 100
    assert_equal(on_the_cluster, in_batsim)
    assert_equal(on_the_cluster, with_our_policy)
