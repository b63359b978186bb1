"""Several schedulers that share a cluster: who gets which jobs, and what they do to one another."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import batkube
from batkube.kernel.errors import InputError
from batkube.kernel.streams import Streams
from batkube.outputs.report.document import run_report
from batkube.programs.selection.scheduler_shares import SchedulerShares
from batkube.scenarios.keys import make_scenario

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
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
    """See from pods.csv and jobs.csv that what is told of the schedulers is so, and return it."""
    table, pods = schedulers_of(run), run.pods
    away = pods["last_reason"].fillna("").str.startswith("OutOf")
    assert table["pods_rejected"].sum() == away.sum() == run.schedule["nb_pods_rejected"]
    assert table["bindings"].sum() == (pods["scheduled"].notna() | away).sum()
    assert table["bindings_refused"].sum() == run.schedule["nb_bindings_refused"]
    return table


def test_jobs_are_shared_out_and_pods_that_two_schedulers_put_on_one_node_are_counted(tmp_path: Path) -> None:
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
    # Each knows of its own pods alone, so they do meet: 24 pods of 20 s, one every 3 s, drawn for 8 nodes.
    assert table["pods_rejected"].sum() > 0
    assert table["jobs_success"].sum() == 24 - table["pods_rejected"].sum()
    assert "pods rejected by kubelets" in run_report(runs[0])
    assert runs[0].manifest["digest"] == runs[1].manifest["digest"]
    assert (runs[0].path / "schedulers.csv").read_bytes() == (runs[1].path / "schedulers.csv").read_bytes()


def test_of_two_that_serve_the_same_pods_the_slower_is_refused(tmp_path: Path) -> None:
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


def test_two_kube_schedulers_collide_and_the_same_way_each_time(kube_scheduler: str, tmp_path: Path) -> None:
    """Each puts a burst on the nodes that are free, and both know the same ones to be."""
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


def test_a_scheduler_alone_has_no_such_file(tmp_path: Path) -> None:
    pytest.importorskip("kubernetes")
    run = batkube.run(workload=jobs_of_one_pod(tmp_path, 2, gap_s=0), platform="2x1", scheduler=RANDOM)

    assert not (run.path / "schedulers.csv").exists()
    assert "nb_pods_rejected" not in run.schedule


@given(st.lists(st.floats(0, 1), min_size=1, max_size=4), st.integers(0, 1000))
def test_each_gets_its_share(weights: list[float], seed: int) -> None:
    whole = max(1.0, sum(weights))
    shares = {f"s{number}": weight / whole for number, weight in enumerate(weights)}
    lots = SchedulerShares(shares, Streams(seed).named("shares"))

    draws = [lots.draw() for _ in range(2000)]

    for name, share in shares.items():
        # Five standard deviations of a share of 2,000 draws, at its widest.
        assert abs(draws.count(name) / 2000 - share) < 5 * (0.25 / 2000) ** 0.5


@pytest.mark.parametrize(
    ("shares", "problem"),
    [
        ({"third": 0.5}, "there is no further scheduler 'third'"),
        ("second", "'' is not a share"),
        ("second=half", "'half' is not a share"),
        ({"second": "120%"}, "'120%' is not a share"),
        ({"second": -1}, "-1 is not a share"),
        ({"second": 0.7, "other": 0.7}, "come to 1.4"),
        (3, "3 is not a mapping of names to shares"),
    ],
)
def test_wrong_shares_are_refused(shares: object, problem: str) -> None:
    schedulers = ["kube-scheduler", "second=kube-scheduler", "other=kube-scheduler"]
    with pytest.raises(InputError) as refusal:
        make_scenario({"workload": "w.json", "platform": "1x1", "scheduler": schedulers, "shares": shares}, "s.yaml")

    assert refusal.value.problem == problem


def test_the_example_tells_what_a_second_scheduler_costs(kube_scheduler: str, tmp_path: Path) -> None:
    file = EXAMPLES / "competition" / "competition.yaml"
    found = batkube.experiment(
        file, tmp_path / "out", only={"share": ["0", "0.5"], "room": ["little"], "seed": ["0"]}, jobs=1
    )

    rejected = found.results.set_index("share")["nb_pods_rejected"]
    assert rejected[0.0] == 0
    assert rejected[0.5] > 0
