"""Output folders: hand-written ones, and those of runs."""

from __future__ import annotations

import pytest
from tests.outputs.measures.occupancy.service_runs import served
from tests.run_folders import MakeRun, make_run, shared_machines

import batkube
from batkube.outputs.results import Results

__all__ = ["crowded", "make_run", "run", "runs", "served", "shared_machines", "small"]

STATES_OF_JOBS = ("COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED", "COMPLETED_WALLTIME_REACHED", "COMPLETED_KILLED")


@pytest.fixture
def run(make_run: MakeRun) -> Results:
    """A run with twelve users, 24 machines, and jobs in every final state."""
    return make_run(
        [
            (
                str(job),
                0,
                100 * (job // 4),
                100 * (job // 4) + 90,
                f"{6 * (job % 4)}-{6 * (job % 4) + 5}",
                {"user": f"user-{job % 12}", "final_state": STATES_OF_JOBS[job % 4], "success": int(job % 4 == 0)},
            )
            for job in range(48)
        ],
        manifest={"scheduler": "policy:easy", "platform": {"machines": [{"name": f"node-{i}"} for i in range(24)]}},
    )


@pytest.fixture
def small(make_run: MakeRun) -> Results:
    return make_run(
        [
            ("1", 0, 0, 100, "0-3", {"user": "ada"}),
            ("2", 5, 100, 160, "0-1 3", {"user": "bob"} | {"final_state": "COMPLETED_KILLED", "success": 0}),
            ("3", 10, 100, 150, "2", {"user": "bob"}),
        ],
        manifest={"scheduler": "policy:easy", "platform": {"machines": [{"name": f"node-{i}"} for i in range(4)]}},
    )


@pytest.fixture
def crowded(make_run: MakeRun) -> Results:
    """1,000 machines and 6,000 jobs of 100 consecutive machines each."""
    return make_run(
        [
            (str(job), 0, 10 * (job // 10), 10 * (job // 10) + 9, f"{100 * (job % 10)}-{100 * (job % 10) + 99}")
            for job in range(6000)
        ]
    )


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Results]:
    """The same jobs under two policies."""
    folder = tmp_path_factory.mktemp("runs")
    workload = {"generate": "lublin", "jobs": 120, "machines": 16}
    for policy in ("fcfs", "easy"):
        batkube.run(
            workload=workload,
            platform="16x1",
            scheduler=f"policy:{policy}",
            seed=3,
            out=folder / policy,
            events=[{"at": 1000, "fail": "node-3", "for": "10h"}],
        )
    return [Results(folder / policy) for policy in ("fcfs", "easy")]
