"""batsched, the C++ scheduler of Batsim's authors, with our Batsim, the real one, and our cluster.

Needs a `batsched` on the PATH (docs/how-to/coming-from-batsim.md describes how to build it).
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.batsim.platforms import silent_platform
from tests.batsim.real_batsim import real_batsim
from tests.batsim.schedulers.schedules import (
    Schedule,
    assert_equal,
    read_schedule,
    schedule_in_our_batsim,
    schedule_on_our_cluster,
)

from batkube.batsim.protocol.zmq_sockets import free_endpoint

MACHINES = 8
KILLER = """-v killer --variant_options {"nb_kills_per_job":1,"delay_before_kill":10}"""
ALGORITHMS = (
    "-v easy_bf",
    "-v easy_bf -p contiguous",
    "-v easy_bf -o desc_bounded_slowdown",
    "-v easy_bf_fast",
    "-v conservative_bf",
    "-v fcfs",
    "-v fcfs_fast",
    "-v filler",
    KILLER,
    "-v rejecter",
    "-v sequencer",
    "-v waiting_time_estimator",
)
#: The time that batsched adds to the walltime of each job (--rjms_delay), in seconds.
DELAY_S = 5


@pytest.fixture
def batsched() -> str:
    """The path of the program."""
    path = shutil.which("batsched")
    if path is None:
        pytest.skip("needs a batsched on the PATH: docs/how-to/coming-from-batsim.md describes how to build it")
    return path


@contextmanager
def listening(batsched: str, algorithm: str) -> Iterator[str]:
    """Run batsched; yield its endpoint."""
    endpoint = free_endpoint()
    words = [batsched, "-s", endpoint, "--verbosity", "silent", *algorithm.split()]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield endpoint
            assert process.wait(30) == 0
        finally:
            process.kill()


def write_workload(folder: Path, seed: int, jobs: int = 60, longer_s: float = 0.0) -> Path:
    """Write jobs in bursts, some of which reach their walltimes; `longer_s` is added to the walltimes."""
    rng = random.Random(seed)
    now, entries, profiles = 0.0, [], {}
    for number in range(jobs):
        now += rng.choice((0, 0, rng.randint(0, 400) / 8))
        length = rng.randint(1, 2400) / 8
        walltime = max(1.0, length * rng.choice((0.5, 1.25, 1.5, 4)))
        profiles[f"p{number}"] = {"type": "delay", "delay": min(length, walltime) if longer_s else length}
        size = min(MACHINES, 1 + round(rng.expovariate(0.4)))
        job = {"id": f"{number:03}", "subtime": now, "res": size, "profile": f"p{number}"}
        entries.append({**job, "walltime": walltime + longer_s})
    folder.mkdir(exist_ok=True)
    path = folder / "w.json"
    path.write_text(json.dumps({"nb_res": MACHINES, "jobs": entries, "profiles": profiles}))
    return path


def batsched_in_our_batsim(batsched: str, algorithm: str, workload: Path, folder: Path) -> Schedule:
    with listening(batsched, algorithm) as endpoint:
        return schedule_in_our_batsim(endpoint, workload, MACHINES, folder)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_algorithm_takes_the_same_decisions_in_our_batsim_and_on_our_cluster(
    algorithm: str, batsched: str, tmp_path: Path
) -> None:
    workload = write_workload(tmp_path, seed=1)

    in_batsim = batsched_in_our_batsim(batsched, algorithm, workload, tmp_path)
    command = f"batsim:{batsched} -s {{endpoint}} --verbosity silent {algorithm}".replace(KILLER, _quoted(KILLER))
    on_the_cluster = schedule_on_our_cluster(workload, MACHINES, tmp_path, command)

    assert_equal(on_the_cluster, in_batsim)


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "-v killer2"])
def test_an_algorithm_takes_the_same_decisions_in_the_real_batsim(
    algorithm: str, batsched: str, tmp_path: Path
) -> None:
    workload = write_workload(tmp_path, seed=2)
    command = [real_batsim(), "-q", "-p", str(silent_platform(tmp_path, MACHINES)), "-w", str(workload)]

    with listening(batsched, algorithm) as endpoint:
        subprocess.run([*command, "-s", endpoint, "-e", str(tmp_path / "real")], check=True, capture_output=True)

    assert_equal(
        batsched_in_our_batsim(batsched, algorithm, workload, tmp_path), read_schedule(tmp_path / "real_jobs.csv")
    )


@pytest.mark.parametrize(("algorithm", "policy"), [("easy_bf", "easy"), ("fcfs", "fcfs")])
@pytest.mark.parametrize("seed", range(3))
def test_our_policies_take_the_decisions_of_batsched(
    algorithm: str, policy: str, seed: int, batsched: str, tmp_path: Path
) -> None:
    workload = write_workload(tmp_path, seed)

    theirs = batsched_in_our_batsim(batsched, f"-v {algorithm}", workload, tmp_path)

    assert_equal(schedule_on_our_cluster(workload, MACHINES, tmp_path, f"policy:{policy}"), theirs)


@pytest.mark.parametrize("seed", range(3))
def test_conservative_takes_batscheds_decisions_if_walltimes_are_five_seconds_longer(
    seed: int, batsched: str, tmp_path: Path
) -> None:
    theirs = batsched_in_our_batsim(batsched, "-v conservative_bf", write_workload(tmp_path, seed), tmp_path)
    longer = write_workload(tmp_path / "longer", seed, longer_s=DELAY_S)

    ours = schedule_on_our_cluster(longer, MACHINES, tmp_path, "policy:conservative")

    assert_equal(
        {job: ("", start, machines) for job, (_, start, machines) in ours.items()},
        {job: ("", start, machines) for job, (_, start, machines) in theirs.items()},
    )


def _quoted(words: str) -> str:
    """Return arguments with the last one quoted."""
    *first, last = words.split()
    return f"{' '.join(first)} '{last}'"
