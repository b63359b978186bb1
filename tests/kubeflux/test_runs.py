"""KubeFlux in whole runs beside another scheduler: the published fault (`none`), and the modes without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import batkube
from batkube.kernel.errors import RunFailed

PODS = Path(__file__).resolve().parents[2] / "examples" / "kubeflux" / "pods.yaml"
OTHERS = "others=policy-program --policy=first-fit"


def run_with_audit(sync: str, out: Path) -> tuple[dict[str, tuple[str, str, float]], list[tuple[str, str, float]]]:
    """Run the four pods; return phase, node and start of each, and kind, pod and time of each difference."""
    run = batkube.run(
        workload=PODS,
        platform="2x2,8Gi",
        scheduler=["kubeflux", OTHERS],
        scheduler_args={"sync": sync, "audit": "{folder}/audit.jsonl"},
        out=out,
    )
    pods = {row.job_id: (row.phase, row.node, round(row.started, 3)) for row in run.pods.itertuples() if row.job_id}
    lines = [json.loads(line) for line in (out / "scheduler" / "audit.jsonl").read_text().splitlines()]
    return pods, [(line["kind"], line["pod"], line["at"] / 1e9) for line in lines if line["is"] == "new"]


def test_without_sync_the_cache_has_phantoms_and_blind_spots(tmp_path: Path) -> None:
    pods, differences = run_with_audit("none", tmp_path / "out")

    # In its cache b's node is free, and the kubelet rejects c. Later both nodes are full in it until the bookings end.
    assert pods["c"][:2] == ("Failed", "node-1")
    assert pods["d"] == ("Succeeded", "node-0", 3620.001)
    assert differences == [
        ("blind spot", "default/w0-b", 10.002),
        ("phantom", "default/w0-a", 60.002),
        ("phantom", "default/w0-c", 100.002),
    ]


def test_sync_of_own_pods_avoids_phantoms_only(tmp_path: Path) -> None:
    pods, differences = run_with_audit("own", tmp_path / "out")

    assert {phase for phase, _, _ in pods.values()} == {"Succeeded"}
    assert differences == [("blind spot", "default/w0-b", 10.002)]


@pytest.mark.parametrize("sync", ["rebuild", "deltas"])
def test_full_sync_has_no_differences(sync: str, tmp_path: Path) -> None:
    pods, differences = run_with_audit(sync, tmp_path / "out")

    assert pods == {
        "a": ("Succeeded", "node-0", 0.001),
        "b": ("Succeeded", "node-1", 10.001),
        "c": ("Succeeded", "node-0", 100.001),
        "d": ("Succeeded", "node-0", 800.001),
    }
    assert differences == []


def test_sync_of_own_pods_keeps_them_in_the_cache_until_they_end(tmp_path: Path) -> None:
    long = {"type": "delay", "delay": 9000}
    jobs = [{"id": name, "subtime": 0, "res": 1, "profile": "long", "cpu": 2} for name in "ab"]
    late = {"id": "c", "subtime": 5000, "res": 1, "profile": "long", "cpu": 2}
    workload, out = tmp_path / "jobs.json", tmp_path / "out"
    workload.write_text(json.dumps({"nb_res": 2, "jobs": [*jobs, late], "profiles": {"long": long}}), encoding="utf-8")

    run = batkube.run(
        workload=workload,
        platform="2x2,8Gi",
        scheduler="kubeflux",
        scheduler_args={"sync": "own"},
        audit="10m",
        out=out,
    )

    # With the published fault, c would be bound after an hour, when the bookings of a and b end, and be rejected.
    starts = dict(zip(run.jobs["job_id"].astype(str), run.jobs["starting_time"].round(), strict=True))
    assert starts == {"a": 0, "b": 0, "c": 9000}
    assert len((out / "audit.jsonl").read_text().splitlines()) == 1


def run_with_failed_node(tmp_path: Path, match_policy: str) -> batkube.Run:
    """Run three jobs on two nodes. The second fails for good, and KubeFlux is not notified."""
    jobs = [{"id": name, "subtime": 0, "res": 1, "profile": "p", "cpu": 2} for name in "abc"]
    profiles = {"p": {"type": "delay", "delay": 300}}
    workload, events = tmp_path / "jobs.json", tmp_path / "events.yaml"
    workload.write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": profiles}), encoding="utf-8")
    events.write_text("- {at: 100, fail: node-1}\n", encoding="utf-8")
    return batkube.run(
        workload=workload,
        platform="2x2,8Gi",
        scheduler="kubeflux",
        scheduler_args={"sync": "own", "match-policy": match_policy},
        events=events,
        on_failure="resubmit",
        out=tmp_path / "out",
    )


def test_a_job_bound_to_a_failed_node_is_resubmitted_after_its_toleration(tmp_path: Path) -> None:
    run = run_with_failed_node(tmp_path, "lonode")

    # The second node is lost from 100 s on. While b uses the first one, c is bound to the second repeatedly.
    ends = dict(zip(run.jobs["job_id"].astype(str), run.jobs["finish_time"].round(3), strict=True))
    assert ends == {"a": 300.001, "b": 600.002, "c": 1000.003}
    journal = [json.loads(line) for line in (tmp_path / "out" / "journal.jsonl").read_text().splitlines()]
    bindings = [line["t"] / 1e9 for line in journal if line["event"] == "bind" and line["job"] == "w0!c"]
    assert bindings == [100.001, 400.002, 700.003]


def test_jobs_that_are_always_bound_to_a_failed_node_end_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"was bound 100 times in a row to nodes that had failed"):
        run_with_failed_node(tmp_path, "hinode")
