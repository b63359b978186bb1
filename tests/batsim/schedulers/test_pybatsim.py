"""The schedulers of the unmodified pybatsim 3.2.1 from PyPI, with our Batsim and with our cluster.

pybatsim requires a pyzmq of 2022, which has no wheels for our versions of Python. So it is installed into an
environment of its own, with a current pyzmq (`docs/how-to/coming-from-batsim.md` has the commands).
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests import opt_in
from tests.batsim.platforms import silent_platform, wired_platform
from tests.batsim.recordings import read_table

import batkube
from batkube.batsim.protocol.zmq_sockets import free_endpoint
from batkube.batsim.simulator.hosts import MASTER_HOST
from batkube.batsim.simulator.run import SimulatorArguments, run_batsim
from batkube.batsim.state.options import Options
from batkube.schedulers.installed import cache_folder

VERSION = "3.2.1"
NEEDS = ("pyzmq", "docopt", "sortedcontainers", "procset")
MACHINES = 8
Rows = list[dict[str, str]]


@pytest.fixture(scope="session")
def pybatsim() -> Path:
    """The folder of an environment with pybatsim, in the user's cache."""
    folder = cache_folder() / f"pybatsim-{VERSION}"
    if not (folder / "bin" / "pybatsim").exists():
        if not opt_in.IS_ENABLED:
            pytest.skip(f"needs pybatsim {VERSION} in an environment of its own: make test-all, which makes one")
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "pip"), "install", "--quiet"]
        subprocess.run([*pip, *NEEDS], check=True)
        subprocess.run([*pip, "--no-deps", f"pybatsim=={VERSION}"], check=True)
    return folder


def command(pybatsim: Path, scheduler: str, endpoint: str, configuration: str = "{}") -> list[str]:
    """Return the command that starts one of pybatsim's schedulers."""
    (path,) = pybatsim.glob(f"lib/python*/site-packages/schedulers/{scheduler}.py")
    return [
        str(pybatsim / "bin" / "pybatsim"),
        str(path),
        "-s",
        endpoint,
        "-t",
        "60000",
        "-v",
        "warning",
        "-o",
        configuration,
    ]


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pybatsim writes files to the working directory."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """Thirty jobs with walltimes. The first is submitted at 1 s: pybatsim's newer schedulers cannot start jobs at 0."""
    rng = random.Random(3)
    entries = [
        {"id": f"{n:02}", "subtime": 1 + 3 * n, "res": rng.choice((1, 2, 3, 4, 8)), "walltime": rng.randint(20, 60)}
        for n in range(30)
    ]
    return _write(tmp_path / "jobs.json", [{**job, "profile": f"d{n % 5}"} for n, job in enumerate(entries)])


def _write(path: Path, jobs: Sequence[dict[str, Any]], **profiles: dict[str, Any]) -> Path:
    delays = {f"d{number}": {"type": "delay", "delay": 7 + 11 * number} for number in range(5)}
    path.write_text(json.dumps({"nb_res": MACHINES, "jobs": jobs, "profiles": {**delays, **profiles}}))
    return path


def _rows(path: Path) -> Rows:
    header, *rows = read_table(path)
    return [dict(zip(header, row, strict=True)) for row in rows]


def in_batsim(
    pybatsim: Path,
    scheduler: str,
    workload: Path,
    *,
    platform: Path | None = None,
    configuration: str = "{}",
    master: str = MASTER_HOST,
    storage: str = "",
    options: Options | None = None,
) -> Rows:
    """Run a scheduler with our Batsim; return the rows of the jobs."""
    xml, endpoint = platform or silent_platform(workload.parent, MACHINES), free_endpoint()
    log = workload.with_name("pybatsim.log")
    with (
        log.open("w") as file,
        subprocess.Popen(command(pybatsim, scheduler, endpoint, configuration), stdout=file, stderr=file) as process,
    ):
        try:
            arguments = SimulatorArguments(
                xml,
                [workload],
                endpoint=endpoint,
                prefix=str(workload.with_name("out")),
                master=master,
                roles={storage: "storage"} if storage else {},
                options=options or Options(),
                reply_timeout_ns=20 * 10**9,
            )
            run_batsim(arguments)
            assert process.wait(10) == 0, log.read_text()[-2000:]
        finally:
            process.kill()
    return _rows(workload.with_name("out_jobs.csv"))


def on_the_cluster(pybatsim: Path, scheduler: str, workload: Path, *, shares: bool = False) -> Rows:
    """Run a scheduler with our cluster; return the rows of the jobs."""
    name = "batsim:" + " ".join(command(pybatsim, scheduler, "{endpoint}"))
    out = workload.with_name("run")
    batkube.run(
        workload=workload,
        platform=f"{MACHINES}x1",
        scheduler=name,
        scheduler_args={"enable-compute-sharing": str(shares)},
        resources="requests" if shares else "machines",
        out=out,
    )
    return _rows(out / "jobs.csv")


def assert_valid(rows: Rows, *, shared: bool = False) -> None:
    """Assert that each job has its run time, and that no machine had two jobs at once unless machines are shared."""
    assert len(rows) == 30
    for row in rows:
        length = 7 + 11 * (int(row["job_id"]) % 5)
        assert float(row["execution_time"]) == min(length, float(row["requested_time"]))
        assert row["final_state"].startswith("COMPLETED_")
        assert len(_machines(row)) == int(row["requested_number_of_resources"])
    for one in rows:
        for other in rows:
            is_beside = float(one["starting_time"]) <= float(other["starting_time"]) < float(one["finish_time"])
            if not shared and one is not other and is_beside:
                assert not _machines(one) & _machines(other)


def _machines(row: dict[str, str]) -> set[int]:
    bounds = [part.split("-") for part in row["allocated_resources"].split()]
    return {number for part in bounds for number in range(int(part[0]), int(part[-1]) + 1)}


def _schedule(rows: Rows) -> list[tuple[str, ...]]:
    columns = ("job_id", "starting_time", "finish_time", "final_state", "allocated_resources")
    return sorted(tuple(row[name] for name in columns) for row in rows)


@pytest.mark.parametrize("scheduler", ["schedFcfs", "schedFiller", "easyBackfill", "schedEasySjfBackfill"])
def test_pybatsims_schedulers_take_the_same_decisions_in_batsim_and_on_the_cluster(
    scheduler: str, pybatsim: Path, jobs: Path
) -> None:
    ours = in_batsim(pybatsim, scheduler, jobs)

    assert_valid(ours)
    assert _schedule(ours) == _schedule(on_the_cluster(pybatsim, scheduler, jobs))


@pytest.mark.parametrize("scheduler", ["fillerSched", "fillerSchedWithEvents"])
def test_the_decision_time_of_schedulers_delays_jobs(scheduler: str, pybatsim: Path, jobs: Path) -> None:
    """These schedulers iterate over a set in the order of addresses, so their decisions differ between runs."""
    for rows in (in_batsim(pybatsim, scheduler, jobs), on_the_cluster(pybatsim, scheduler, jobs)):
        assert_valid(rows)
        # A decision takes 5 ms; some follow each submission or end.
        assert {round(1000 * float(row["starting_time"])) % 5 for row in rows} == {0}
        assert all(float(row["waiting_time"]) > 0 for row in rows)


def test_a_scheduler_may_share_machines_if_enabled(pybatsim: Path, jobs: Path) -> None:
    shared = Options(allows_compute_sharing=True)

    in_ours = in_batsim(pybatsim, "randomSched", jobs, options=shared)
    on_ours = on_the_cluster(pybatsim, "randomSched", jobs, shares=True)

    for rows in (in_ours, on_ours):
        assert_valid(rows, shared=True)
        assert all(float(row["waiting_time"]) == 0 for row in rows)


def test_jobs_exchange_messages_with_schedsendrecv(pybatsim: Path, tmp_path: Path) -> None:
    """A job requests to be accepted, and is; without the last two jobs, Batsim would remove its profiles."""
    profiles: dict[str, dict[str, Any]] = {
        "talk": {"type": "composed", "repeat": 1, "seq": ["ask", "hear"]},
        "ask": {"type": "send", "msg": {"type": "accept"}},
        "hear": {"type": "recv", "regex": "accepted", "success": "d0", "failure": "d1", "timeout": "d1"},
    }
    entries = [("talk", 1), ("d0", 50), ("d1", 50)]
    listed = [{"id": str(n), "subtime": at, "res": 1, "profile": name} for n, (name, at) in enumerate(entries)]

    rows = in_batsim(pybatsim, "schedSendRecv", _write(tmp_path / "talk.json", listed, **profiles))

    # The job polls for the answer, so it takes up to a second longer.
    assert [float(row["execution_time"]) for row in rows] == [pytest.approx(7, abs=1), 7, 18]
    assert {row["final_state"] for row in rows} == {"COMPLETED_SUCCESSFULLY"}


def test_bebida_stages_data_on_a_storage_with_jobs_and_profiles_that_it_registers(
    pybatsim: Path, tmp_path: Path
) -> None:
    total = {"type": "parallel_homogeneous_total", "cpu": 4e9, "com": 0, "io_reads": 1e8, "io_writes": 1e7}
    listed = [{"id": str(n), "subtime": 1 + 5 * n, "res": 8, "walltime": 1000, "profile": "t"} for n in range(6)]

    rows = in_batsim(
        pybatsim,
        "schedBebida",
        _write(tmp_path / "staging.json", listed, t=total),
        platform=wired_platform(tmp_path, 10),
        configuration='{"variant": "pfs"}',
        master="host9",
        storage="host8",
        options=Options(
            has_dynamic_jobs=True, acknowledges_dynamic_jobs=True, forwards_profiles=True, keeps_profiles=True
        ),
    )

    assert [row["final_state"] for row in rows] == ["COMPLETED_SUCCESSFULLY"] * 6
    # 4 Gflop on eight hosts take 0.5 s; 100 MB over the storage's link of 125 MB/s take 0.8 s, plus latencies.
    assert [float(row["execution_time"]) for row in rows] == [pytest.approx(0.8, rel=0.01)] * 6
