"""Run times and outcomes of jobs and their pods, as seen in the outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.execution.delay_jobs import DELAY_10, a_job, row

if TYPE_CHECKING:
    from conftest import Simulate


def test_a_job_waits_for_its_machine_and_runs_for_its_duration(simulate: Simulate) -> None:
    run = simulate([a_job("a"), a_job("b", subtime=3)], DELAY_10, platform="1x1")

    second = row(run, "b")

    assert (second["starting_time"], second["finish_time"]) == (10, 20)
    assert (second["waiting_time"], second["execution_time"], second["turnaround_time"]) == (7, 10, 17)
    assert second["final_state"] == "COMPLETED_SUCCESSFULLY"


@pytest.mark.parametrize(
    ("walltime", "state", "execution_s"),
    [
        (11, "COMPLETED_SUCCESSFULLY", 10),
        (10, "COMPLETED_WALLTIME_REACHED", 10),
        (4, "COMPLETED_WALLTIME_REACHED", 4),
        (-1, "COMPLETED_SUCCESSFULLY", 10),
    ],
)
def test_a_job_succeeds_only_strictly_before_its_walltime_as_in_batsim(
    simulate: Simulate, walltime: int, state: str, execution_s: float
) -> None:
    job = row(simulate([a_job("a", walltime=walltime)], DELAY_10), "a")

    assert (job["final_state"], job["execution_time"]) == (state, execution_s)
    assert job["success"] == (state == "COMPLETED_SUCCESSFULLY")


def test_a_profile_with_an_exit_code_fails_when_it_ends(simulate: Simulate) -> None:
    job = row(simulate([a_job("a", profile="bad")], {"bad": {"type": "delay", "delay": 10, "ret": 3}}), "a")

    assert (job["final_state"], job["finish_time"], job["success"]) == ("COMPLETED_FAILED", 10, 0)


def test_composed_profiles_run_their_parts_in_sequence(simulate: Simulate) -> None:
    profiles = {**DELAY_10, "twice": {"type": "composed", "repeat": 2, "seq": ["d10", "d10"]}}

    assert row(simulate([a_job("a", profile="twice")], profiles), "a")["execution_time"] == 40


def test_computation_takes_flops_over_speed_and_the_slowest_machine_decides(simulate: Simulate, tmp_path: Path) -> None:
    platform = tmp_path / "two.xml"
    platform.write_text(
        '<platform version="4.1"><zone id="z" routing="Full"><host id="master_host" speed="1f"/>'
        '<host id="h1" speed="100Mf"/><host id="h2" speed="50Mf"/></zone></platform>'
    )
    profiles = {
        "same": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
        "total": {"type": "parallel_homogeneous_total", "cpu": 1e9, "com": 0},
        "each": {"type": "parallel", "cpu": [2e9, 5e8], "com": [0, 0, 0, 0]},
    }

    run = simulate([a_job(name, res=2, profile=name) for name in profiles], profiles, platform=str(platform))

    assert {name: row(run, name)["execution_time"] for name in profiles} == {"same": 20, "total": 10, "each": 20}


def test_a_gang_takes_as_many_machines_as_its_size_and_ends_as_one(simulate: Simulate) -> None:
    run = simulate([a_job("a", res=3)], DELAY_10)

    assert row(run, "a")["allocated_resources"] == "0-2"
    assert list(run.pods["pod"]) == ["w0-a-0", "w0-a-1", "w0-a-2"]
    assert set(run.pods["finished"]) == {10}
    assert list(run.machine_states["nb_computing"]) == [3, 0]


def test_a_gang_begins_when_its_last_pod_runs(simulate: Simulate, tmp_path: Path) -> None:
    latencies = tmp_path / "latencies.yaml"
    latencies.write_text("start: uniform:1,5\n")

    run = simulate([a_job("a", res=4)], DELAY_10, latencies=latencies, seed=3)

    job = row(run, "a")
    assert run.pods["started"].nunique() == 4
    assert run.pods["started"].between(1, 5).all()
    assert job["starting_time"] == run.pods["started"].max()
    assert job["execution_time"] == 10


@pytest.mark.parametrize(
    ("on_eviction", "state", "finish"),
    [("resubmit", "COMPLETED_SUCCESSFULLY", 24), ("fail", "COMPLETED_KILLED", 4)],
)
def test_a_preempted_job_restarts_or_fails(simulate: Simulate, on_eviction: str, state: str, finish: float) -> None:
    jobs = [a_job("low"), a_job("high", subtime=4, priority=7)]

    run = simulate(jobs, DELAY_10, platform="1x1", scheduler="policy:priority", on_eviction=on_eviction)

    assert row(run, "high")["starting_time"] == 4
    low = row(run, "low")
    assert (low["final_state"], low["finish_time"]) == (state, finish)
    assert low["evictions"] == 1
    assert list(run.pods[run.pods["last_reason"] == "Preempted"]["pod"]) == ["w0-low"]


def test_a_sequence_ends_with_its_first_failing_part(simulate: Simulate) -> None:
    profiles = {
        **DELAY_10,
        "bad": {"type": "delay", "delay": 5, "ret": 1},
        "both": {"type": "composed", "repeat": 2, "seq": ["d10", "bad", "d10"]},
    }

    job = row(simulate([a_job("a", profile="both")], profiles), "a")

    assert (job["final_state"], job["execution_time"]) == ("COMPLETED_FAILED", 15)


def test_a_machine_without_pod_slots_is_not_used(simulate: Simulate, tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {capacity: {cpu: '1', pods: '0'}}}\n---\n"
        "{apiVersion: v1, kind: Node, metadata: {name: b}, status: {capacity: {cpu: '1', pods: '5'}}}\n"
    )

    run = simulate([a_job("a"), a_job("b")], DELAY_10, platform=str(nodes), resources="machines")

    assert set(run.jobs["allocated_resources"]) == {"1"}
    assert set(run.jobs["final_state"]) == {"COMPLETED_SUCCESSFULLY"}


def test_thousands_of_ids_that_are_not_kubernetes_names_stay_distinct(simulate: Simulate) -> None:
    jobs = [a_job(f"作业{number}", profile="d0") for number in range(8000)]

    run = simulate(jobs, {"d0": {"type": "delay", "delay": 0}}, platform="1x1")

    assert run.pods["pod"].nunique() == 8000


def test_packing_jobs_without_requests_is_noted(simulate: Simulate, tmp_path: Path) -> None:
    simulate([a_job("a"), a_job("b")], DELAY_10, resources="requests")

    [note] = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert (note["message"], note["count"]) == ("jobs request no cpu, so any number of them can share a node", 2)


def test_the_journal_has_the_events_of_a_job_in_order(simulate: Simulate, tmp_path: Path) -> None:
    simulate([a_job("a", subtime=2)], DELAY_10)

    lines = [json.loads(line) for line in (tmp_path / "out" / "journal.jsonl").read_text().splitlines()]

    assert [(line["t"] // 10**9, line["event"]) for line in lines] == [
        (2, "submit"),
        (2, "bind"),
        (2, "start"),
        (12, "finish"),
    ]


def test_evicting_a_job_before_its_end_is_reported_frees_its_node_and_keeps_its_success(
    simulate: Simulate, tmp_path: Path
) -> None:
    latencies = tmp_path / "latencies.yaml"
    latencies.write_text("report: 30\n")
    jobs = [a_job("low"), a_job("high", subtime=15, priority=9)]

    run = simulate(jobs, DELAY_10, platform="1x1", scheduler="policy:priority", latencies=latencies)

    low, high = row(run, "low"), row(run, "high")
    assert (low["final_state"], low["finish_time"], low["evictions"]) == ("COMPLETED_SUCCESSFULLY", 10, 0)
    assert (high["final_state"], high["starting_time"]) == ("COMPLETED_SUCCESSFULLY", 15)
