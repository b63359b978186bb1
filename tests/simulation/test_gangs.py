"""Jobs of several pods with kube-scheduler 1.34.4, which does not support gangs: several forms, and deadlocks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest

import batkube
from batkube.kernel.errors import RunFailed
from batkube.outputs.results import Results
from batkube.scenarios.keys import make_scenario
from batkube.simulation.run import execute
from conftest import Simulate

EIGHT_OF_TWO = "8x2,8Gi"
TEN_SECONDS = {"d": {"type": "delay", "delay": 10, "cpu": 1}}


def gang(name: str, size: int, at: float = 0, **more: object) -> Mapping[str, object]:
    return {"id": name, "subtime": at, "res": size, "profile": "d", **more}


def journal(run: Results, event: str) -> list[dict[str, object]]:
    entries = map(json.loads, (run.path / "journal.jsonl").read_text().splitlines())
    return [entry for entry in entries if entry["event"] == event]


def check_pods(pods: pd.DataFrame, cpus: int, cpu_per_pod: float = 1.0) -> None:
    """Check from pods.csv alone that no node was over-allocated, and that the pods of each gang end together."""
    for _, rows in pods.groupby("node"):
        ends = [(end, 0, -cpu_per_pod) for end in rows["finished"]]
        used = 0.0
        for _, _, change in sorted([*ends, *((begin, 1, cpu_per_pod) for begin in rows["scheduled"])]):
            used += change
            assert used <= cpus
    for _, rows in pods[pods["phase"] == "Succeeded"].groupby("job_id"):
        assert rows["finished"].nunique() == 1


FOUR_GANGS = [gang(f"g{number}", 10) for number in range(4)]


def deadlocked(simulate: Simulate, kube_scheduler: str, out: Path, **options: object) -> tuple[str, Results]:
    with pytest.raises(RunFailed) as failure:
        simulate(FOUR_GANGS, TEN_SECONDS, platform=EIGHT_OF_TWO, scheduler=kube_scheduler, out=out, **options)
    return str(failure.value), Results(out)


@pytest.mark.headline
def test_a_deadlock_of_gangs_ends_the_run_at_once_with_jobs_and_nodes(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    """All 40 pods arrive at once, so the order of the scheduler's heap decides which gangs get nodes."""
    message, run = deadlocked(simulate, kube_scheduler, tmp_path / "stuck")

    held = run.pods[run.pods["node"] != ""]
    assert len(held) == 16
    stuck = held["job_id"].nunique()
    assert 2 <= stuck <= 4
    assert message.startswith(f"deadlock since 0 s: {stuck} half-started jobs")
    for name, rows in held.groupby("job_id"):
        nodes = sorted(rows["node"].unique())
        assert f"w0!{name} has {len(rows)} of its 10 pods on {', '.join(nodes)}" in message
    assert run.manifest["end_s"] == 0
    assert run.schedule["nb_jobs_deadlocked"] == stuck
    [note] = [note for note in json.loads((run.path / "fidelity.json").read_text()) if note["subject"] == "deadlock"]
    assert (note["count"], note["example"]) == (stuck, message.partition("\n")[0])


def test_pods_of_a_deadlock_have_a_reason_in_pods_csv(simulate: Simulate, kube_scheduler: str, tmp_path: Path) -> None:
    _, run = deadlocked(simulate, kube_scheduler, tmp_path / "stuck")

    waiting = run.pods[run.pods["phase"] == "Running"]
    assert len(waiting) == 16
    assert waiting["last_reason"].str.fullmatch(r"waits for \d of the 10 pods of its job").all()
    assert len(run.pods) == 40


def test_under_on_deadlock_wait_a_run_continues(simulate: Simulate, kube_scheduler: str, tmp_path: Path) -> None:
    message, run = deadlocked(simulate, kube_scheduler, tmp_path / "stuck", on_deadlock="wait", patience="20m")

    assert "left 4 of 4 jobs without an outcome" in message
    assert run.manifest["end_s"] >= 1200
    assert run.schedule["nb_jobs_deadlocked"] == run.pods[run.pods["node"] != ""]["job_id"].nunique()


def test_a_gang_that_waits_for_a_running_one_is_not_a_deadlock(simulate: Simulate, kube_scheduler: str) -> None:
    run = simulate(
        [gang("first", 12), gang("second", 10, 1)], TEN_SECONDS, platform=EIGHT_OF_TWO, scheduler=kube_scheduler
    )

    jobs = run.jobs.set_index("job_id")
    assert jobs.loc["second", "starting_time"] == pytest.approx(10, abs=1.5)
    assert jobs.loc["second", "member_wait"] == pytest.approx(jobs.loc["second", "starting_time"] - 1)
    assert jobs.loc["first", "member_wait"] == 0
    [wait] = journal(run, "wait")
    assert (wait["job"], wait["since"]) == ("w0!second", 10**9)
    assert run.schedule["nb_jobs_deadlocked"] == 0
    check_pods(run.pods, cpus=2)


def test_a_gang_of_higher_priority_breaks_a_deadlock_by_preemption(simulate: Simulate, kube_scheduler: str) -> None:
    # The first two hold two nodes each of four, and need three: only preemption gets the third what it needs. Whether
    # they block each other again afterwards depends on chance.
    jobs = [gang("a", 3), gang("b", 3), gang("high", 4, 5, priority=9)]

    run = simulate(jobs, TEN_SECONDS, platform="4x1,8Gi", scheduler=kube_scheduler, until="16s")

    high = run.jobs.set_index("job_id").loc["high"]
    assert high["final_state"] == "COMPLETED_SUCCESSFULLY"
    assert high["starting_time"] < 10
    assert {entry["job"] for entry in journal(run, "evict")} == {"w0!a", "w0!b"}
    check_pods(run.pods, cpus=1)


def test_indexed_jobs_run_as_jobs_of_many_pods(simulate: Simulate, kube_scheduler: str) -> None:
    profiles = {**TEN_SECONDS, "fail": {"type": "delay", "delay": 4, "cpu": 1, "ret": 3}}
    jobs = [
        gang("six", 6, user="ann", queue="long", walltime=100),
        gang("two", 2, 1, priority=5),
        {"id": "failing", "subtime": 1, "res": 3, "profile": "fail"},
        gang("short", 1, 2, walltime=5),
        gang("late", 12, 3),
    ]

    run = simulate(
        jobs,
        profiles,
        platform=EIGHT_OF_TWO,
        scheduler=kube_scheduler,
        submit_as="indexed-job",
    )

    rows = run.jobs.set_index("job_id")
    assert rows["final_state"].to_dict() == {
        "six": "COMPLETED_SUCCESSFULLY",
        "two": "COMPLETED_SUCCESSFULLY",
        "late": "COMPLETED_SUCCESSFULLY",
        "failing": "COMPLETED_FAILED",
        "short": "COMPLETED_WALLTIME_REACHED",
    }
    assert rows["execution_time"].to_dict() == {"six": 10, "two": 10, "late": 10, "failing": 4, "short": 5}
    assert set(rows["submitted_as"]) == {"indexed-job"}
    assert run.pods.groupby("job_id").size().to_dict() == {"six": 6, "two": 2, "late": 12, "failing": 3, "short": 1}
    assert set(run.pods["owner"]) == {f"Job/w0-{name}" for name in rows.index}
    check_pods(run.pods, cpus=2)


def test_an_evicted_indexed_job_restarts_with_new_pods(simulate: Simulate, kube_scheduler: str) -> None:
    jobs = [gang("low", 4), gang("high", 1, 4, priority=9)]

    run = simulate(jobs, TEN_SECONDS, platform="4x1,8Gi", scheduler=kube_scheduler, submit_as="indexed-job")

    low = run.jobs.set_index("job_id").loc["low"]
    assert (low["final_state"], low["evictions"], low["attempts"]) == ("COMPLETED_SUCCESSFULLY", 1, 2)
    assert low["work_lost"] == pytest.approx(16, abs=0.1)
    assert low["starting_time"] > 14
    assert run.pods.groupby("job_id").size().to_dict() == {"low": 8, "high": 1}
    assert journal(run, "resubmit")
    check_pods(run.pods, cpus=1)


def test_an_evicted_indexed_job_fails_under_on_eviction_fail(simulate: Simulate, kube_scheduler: str) -> None:
    jobs = [gang("low", 4), gang("high", 1, 4, priority=9)]

    run = simulate(
        jobs,
        TEN_SECONDS,
        platform="4x1,8Gi",
        scheduler=kube_scheduler,
        submit_as="indexed-job",
        on_eviction="fail",
    )

    assert run.jobs.set_index("job_id")["final_state"].to_dict() == {
        "low": "COMPLETED_KILLED",
        "high": "COMPLETED_SUCCESSFULLY",
    }


@pytest.mark.parametrize("down_s", [200, 1000])
def test_an_indexed_job_restarts_after_a_node_failure(simulate: Simulate, kube_scheduler: str, down_s: int) -> None:
    # After 200 s the node is back and reports that its pod has failed; otherwise the pod is evicted after about 340 s.
    run = simulate(
        [gang("a", 3)],
        {"d": {"type": "delay", "delay": 20, "cpu": 1}},
        platform="4x1,8Gi",
        scheduler=kube_scheduler,
        submit_as="indexed-job",
        events=[{"at": 5, "fail": ["node-0", "node-1"], "for": down_s}],
    )

    [row] = run.jobs.to_dict("records")
    assert (row["final_state"], row["attempts"], row["evictions"]) == ("COMPLETED_SUCCESSFULLY", 2, 0)
    assert row["starting_time"] > min(down_s, 340)
    assert run.pods.groupby("phase").size().to_dict() == {"Failed": 3, "Succeeded": 3}
    check_pods(run.pods, cpus=1)


def test_an_evicted_gang_keeps_its_pod_group_and_is_resubmitted(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    # kube-scheduler ignores PodGroups, so any definition of them works.
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "podgroups.scheduling.x-k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved"},
        },
        "spec": {
            "group": "scheduling.x-k8s.io",
            "scope": "Namespaced",
            "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"},
            "versions": [version],
        },
    }
    (tmp_path / "crd.yaml").write_text(json.dumps(definition))
    jobs = {"nb_res": 4, "jobs": [gang("low", 4), gang("high", 1, 4, priority=9)], "profiles": TEN_SECONDS}
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    values = {
        "workload": [str(tmp_path / "jobs.json"), str(tmp_path / "crd.yaml")],
        "platform": "4x1,8Gi",
        "scheduler": kube_scheduler,
        "submit-as": "pod-group",
        "patience": "1m",
    }

    record = execute(make_scenario(values, "test"), tmp_path / "out")

    run = Results(tmp_path / "out")
    low = run.jobs.set_index("job_id").loc["low"]
    assert (low["final_state"], low["evictions"], low["attempts"]) == ("COMPLETED_SUCCESSFULLY", 1, 2)
    assert [entry["job"] for entry in journal(run, "resubmit")] == ["w0!low"]
    assert record.simulation.world.store.all("podgroups.scheduling.x-k8s.io") == {}
    check_pods(run.pods, cpus=1)


def test_two_runs_of_indexed_jobs_are_identical(simulate: Simulate, kube_scheduler: str, tmp_path: Path) -> None:
    runs: Sequence[batkube.Run] = [
        simulate(
            [gang("a", 6), gang("b", 8, 1), gang("c", 4, 2)],
            TEN_SECONDS,
            platform="5x2,8Gi",
            scheduler=kube_scheduler,
            submit_as="indexed-job",
            out=tmp_path / name,
        )
        for name in ("one", "two")
    ]

    assert runs[0].manifest["digest"] == runs[1].manifest["digest"]
