"""Several schedulers share a cluster: schedulers.csv counts their jobs and conflicts."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import batkube
from batkube.outputs.report.document import run_report

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
RANDOM = f"python:{EXAMPLES / 'programs' / 'random_scheduler.py'}"


def jobs_of_one_pod(folder: Path, count: int, gap_s: float) -> Path:
    jobs = [{"id": str(each), "subtime": each * gap_s, "res": 1, "profile": "work"} for each in range(count)]
    profiles = {"work": {"type": "delay", "delay": 20, "cpu": 1}}
    path = folder / "jobs.json"
    path.write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": profiles}))
    return path


def schedulers_of(run: batkube.Run) -> pd.DataFrame:
    return pd.read_csv(run.path / "schedulers.csv").set_index("scheduler")


def check(run: batkube.Run) -> pd.DataFrame:
    """Check schedulers.csv against pods.csv and jobs.csv, and return it."""
    table, pods = schedulers_of(run), run.pods
    rejected_pods = pods["last_reason"].fillna("").str.startswith("OutOf")
    assert table["pods_rejected"].sum() == rejected_pods.sum() == run.schedule["nb_pods_rejected"]
    assert table["bindings"].sum() == (pods["scheduled"].notna() | rejected_pods).sum()
    assert table["bindings_refused"].sum() == run.schedule["nb_bindings_refused"]
    return table


def test_jobs_are_shared_and_pods_of_two_schedulers_on_one_node_are_counted_as_rejected(tmp_path: Path) -> None:
    pytest.importorskip("kubernetes")
    workload = jobs_of_one_pod(tmp_path, 24, gap_s=3)
    runs = [
        batkube.run(
            workload=workload,
            platform="8x1",
            scheduler=[RANDOM, f"second={RANDOM}"],
            shares={"second": 0.5},
            out=tmp_path / name,
        )
        for name in ("one", "two")
    ]

    table = check(runs[0])
    first, second = RANDOM, f"second={RANDOM}"
    assert table.loc[first, "jobs"] + table.loc[second, "jobs"] == 24
    assert 6 <= table.loc[second, "jobs"] <= 18
    # Each scheduler sees only its own pods, so some collide: 24 pods of 20 s, one every 3 s, on 8 random nodes.
    assert table["pods_rejected"].sum() > 0
    assert table["jobs_success"].sum() == 24 - table["pods_rejected"].sum()
    assert "pods rejected by kubelets" in run_report(runs[0])
    assert runs[0].manifest["digest"] == runs[1].manifest["digest"]
    assert (runs[0].path / "schedulers.csv").read_bytes() == (runs[1].path / "schedulers.csv").read_bytes()


def test_the_slower_of_two_schedulers_with_the_same_pods_gets_conflicts(tmp_path: Path) -> None:
    pytest.importorskip("kubernetes")
    run = batkube.run(
        workload=jobs_of_one_pod(tmp_path, 6, gap_s=30),
        platform="8x1",
        scheduler=[f"twins={RANDOM}", f"twins={RANDOM}"],
        out=tmp_path / "out",
    )

    table = check(run)
    assert table["bindings"].sum() == 6
    assert table["bindings_refused"].sum() == 6
    assert set(run.jobs["final_state"]) == {"COMPLETED_SUCCESSFULLY"}


def test_the_conflicts_of_two_kube_schedulers_are_repeatable(kube_scheduler: str, tmp_path: Path) -> None:
    """Each places a burst on the free nodes, and both have the same free nodes in their caches."""
    workload = jobs_of_one_pod(tmp_path, 16, gap_s=0)
    runs = [
        batkube.run(
            workload=workload,
            platform="8x2,8Gi",
            scheduler=[kube_scheduler, f"second={kube_scheduler}"],
            shares="second=50%",
            out=tmp_path / name,
        )
        for name in ("one", "two")
    ]

    check(runs[0])
    assert runs[0].manifest["digest"] == runs[1].manifest["digest"]


def test_a_single_scheduler_has_no_schedulers_csv(tmp_path: Path) -> None:
    pytest.importorskip("kubernetes")
    run = batkube.run(workload=jobs_of_one_pod(tmp_path, 2, gap_s=0), platform="2x1", scheduler=RANDOM)

    assert not (run.path / "schedulers.csv").exists()
    assert "nb_pods_rejected" not in run.schedule


def test_the_example_shows_the_cost_of_a_second_scheduler(kube_scheduler: str, tmp_path: Path) -> None:
    file = EXAMPLES / "competition" / "competition.yaml"
    experiment = batkube.experiment(
        file, tmp_path / "out", only={"share": ["0", "0.5"], "room": ["little"], "seed": ["0"]}, jobs=1
    )

    rejected = experiment.results.set_index("share")["nb_pods_rejected"]
    assert rejected[0.0] == 0
    assert rejected[0.5] > 0
