"""Output folders: hand-written ones, and those of runs."""

from __future__ import annotations

import pytest
from tests.outputs.measures.occupancy.service_runs import served
from tests.run_folders import MakeRun, make_run, shared_machines

import batkube
from batkube.outputs.results import Results

__all__ = ["crowded", "make_run", "runs", "served", "shared_machines", "small"]


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
