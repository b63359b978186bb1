"""Preemption, decision costs and several schedulers, with the real kube-scheduler."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import batkube
from batkube import InputError
from conftest import Simulate

LOW = [{"id": f"low{number}", "subtime": 0, "res": 1, "profile": "long", "cpu": "1"} for number in range(2)]
HIGH = {"id": "high", "subtime": 10, "res": 1, "profile": "short", "cpu": "1", "priority": 100}
PROFILES = {"long": {"type": "delay", "delay": 100}, "short": {"type": "delay", "delay": 20}}


def _jobs(run: batkube.Run) -> pd.DataFrame:
    return run.jobs.set_index("job_id")


def test_a_preempted_job_restarts_when_the_preemptor_has_ended(simulate: Simulate, kube_scheduler: str) -> None:
    run = simulate([*LOW, HIGH], PROFILES, platform="2x1", scheduler=kube_scheduler)
    jobs = _jobs(run)
    assert (jobs.loc["high", "starting_time"], jobs.loc["high", "finish_time"]) == (10, 30)
    lows = jobs.loc[["low0", "low1"]].sort_values("finish_time")
    assert list(lows["starting_time"]) == [0, 30]
    assert list(lows["finish_time"]) == [100, 130]
    journal = (run.path / "journal.jsonl").read_text()
    assert '"event":"nominate","job":"w0!high"' in journal
    assert "preempting to accommodate a higher priority pod" in journal


def test_a_victim_keeps_its_node_until_it_has_terminated(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    latencies = tmp_path / "latencies.yaml"
    latencies.write_text("termination: 5\n")
    run = simulate(
        [*LOW, HIGH],
        PROFILES,
        platform="2x1",
        scheduler=kube_scheduler,
        latencies=latencies,
        on_eviction="fail",
    )
    jobs = _jobs(run)
    assert jobs.loc["high", "starting_time"] == 15
    assert sorted(jobs["final_state"]) == ["COMPLETED_KILLED", *["COMPLETED_SUCCESSFULLY"] * 2]


def test_the_termination_of_a_victim_is_limited_by_its_grace_period(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    latencies = tmp_path / "latencies.yaml"
    latencies.write_text("termination: 60\n")
    run = simulate([*LOW, HIGH], PROFILES, platform="2x1", scheduler=kube_scheduler, latencies=latencies)
    assert _jobs(run).loc["high", "starting_time"] == 40


def test_a_modelled_decision_cost_is_virtual_time(simulate: Simulate, kube_scheduler: str) -> None:
    """One pod to bind on two nodes: 0.5 s, 2 × 0.1 s, and 0.05 s for the pending pod."""
    run = simulate([HIGH], PROFILES, platform="2x1", scheduler=kube_scheduler, decision_cost="model:500ms,100ms,50ms")
    assert _jobs(run).loc["high", "starting_time"] == pytest.approx(10.75, abs=1e-6)


def test_a_measured_decision_cost_is_virtual_time(simulate: Simulate, kube_scheduler: str) -> None:
    run = simulate([HIGH], PROFILES, platform="2x1", scheduler=kube_scheduler, decision_cost="measured")
    assert 0 < _jobs(run).loc["high", "starting_time"] - 10 < 5


def test_each_scheduler_binds_the_jobs_that_name_it(simulate: Simulate, kube_scheduler: str) -> None:
    jobs = [
        {"id": "a", "subtime": 0, "res": 1, "profile": "short", "cpu": "1"},
        {"id": "b", "subtime": 0, "res": 1, "profile": "short", "cpu": "1", "scheduler": "second"},
        {"id": "c", "subtime": 0, "res": 1, "profile": "short", "cpu": "1", "scheduler": "nobody"},
    ]
    run = simulate(jobs, PROFILES, platform="4x1", scheduler=[kube_scheduler, f"second={kube_scheduler}"])
    assert set(run.jobs["final_state"]) == {"COMPLETED_SUCCESSFULLY"}
    logs = [(run.path / "scheduler" / name).read_text() for name in ("log.txt", "second/log.txt")]
    bound = [
        sorted(pod for pod in "abc" if f'"Successfully bound pod to node" pod="default/w0-{pod}"' in log)
        for log in logs
    ]
    assert bound == [["a", "c"], ["b"]]
    assert [program["serves"] for program in run.manifest["programs"]] == [["default-scheduler"], ["second"]]


def test_unlogged_attempts_are_noted(simulate: Simulate, kube_scheduler: str) -> None:
    """At a lower log level, failed attempts are known from the API only."""
    jobs = [{"id": name, "subtime": 0, "res": 1, "profile": "short", "cpu": "1"} for name in "ab"]
    run = simulate(jobs, PROFILES, platform="1x1", scheduler=kube_scheduler, scheduler_args={"v": 0})
    (note,) = json.loads((run.path / "fidelity.json").read_text())
    assert (note["subject"], note["count"]) == ("attempts", 1)
    waited = run.pods[run.pods["scheduled"] > 0]
    assert list(waited["attempts"]) == [2]
    assert "Insufficient cpu" in waited["last_reason"].iloc[0]


@pytest.mark.parametrize("schedulers", [["x/a", "x/b"], ["policy:fcfs", "second=x/b"], ["x/a", "n=x/b", "n=x/c"]])
def test_several_schedulers_must_be_programs_with_different_names(simulate: Simulate, schedulers: list[str]) -> None:
    with pytest.raises(InputError, match="scheduler"):
        simulate([HIGH], PROFILES, scheduler=schedulers)


def test_a_job_of_several_pods_is_noted_as_placed_pod_by_pod(simulate: Simulate, kube_scheduler: str) -> None:
    wide = {"id": "wide", "subtime": 0, "res": 2, "profile": "short", "cpu": "1"}
    run = simulate([wide], PROFILES, platform="2x1", scheduler=kube_scheduler)
    (note,) = json.loads((run.path / "fidelity.json").read_text())
    assert (note["count"], note["example"]) == (1, "job w0!wide has 2 pods")
    assert "hold their nodes until the last one has a node" in note["message"]
