"""The execution of jobs and their pods after scheduling, as seen in the outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import batkube

if TYPE_CHECKING:
    import pandas as pd

    from conftest import Simulate

DELAY_10 = {"d10": {"type": "delay", "delay": 10}}


def a_job(name: str, subtime: float = 0, res: int = 1, profile: str = "d10", **more: object) -> dict[str, object]:
    return {"id": name, "subtime": subtime, "res": res, "profile": profile, **more}


def row(run: batkube.Run, name: str) -> pd.Series[float]:
    jobs = run.jobs
    return jobs[jobs["job_id"] == name].iloc[0]


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


def test_delays_add_up_and_an_image_is_pulled_once_per_node(simulate: Simulate, tmp_path: Path) -> None:
    latencies = tmp_path / "latencies.yaml"
    latencies.write_text("notice: 0.5\npull: 3\ncreate: 0.25\nstart: 0.25\nreport: 2\n")

    run = simulate([a_job("a"), a_job("b")], DELAY_10, platform="1x1", latencies=latencies)

    first, second = row(run, "a"), row(run, "b")
    assert (first["starting_time"], first["finish_time"]) == (4, 14)
    assert second["scheduled_time"] == 16, "the node is free when the end is reported"
    assert (second["starting_time"], second["finish_time"]) == (17, 27)


def test_a_pod_waits_for_a_running_pull_of_its_image(simulate: Simulate, tmp_path: Path) -> None:
    latencies = tmp_path / "latencies.yaml"
    latencies.write_text("pull: 30\n")
    profiles = {"d10": {"type": "delay", "delay": 10, "cpu": 1}}

    run = simulate([a_job("a"), a_job("b", subtime=12)], profiles, platform="1x2", latencies=latencies)

    assert (row(run, "a")["starting_time"], row(run, "b")["starting_time"]) == (30, 30)


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


def own_policy(folder: Path, body: str) -> str:
    """Write a policy whose `decide` is `body`, and return how the command line names it."""
    lines = ["from batkube.policies.interface import Evict, Policy, Reject, Start, WakeAt", "", "class Mine(Policy):"]
    lines += ["    def decide(self, view):", *(f"        {line}" for line in body.splitlines())]
    path = folder / "mine.py"
    path.write_text("\n".join(lines) + "\n")
    return f"policy:{path}:Mine"


def test_a_rejected_job_never_runs_and_has_its_own_state(simulate: Simulate, tmp_path: Path) -> None:
    scheduler = own_policy(tmp_path, "for job in view.queue:\n    yield Reject(job, 'not today, nor tomorrow')")

    run = simulate([a_job("a", res=2)], DELAY_10, scheduler=scheduler)

    job = row(run, "a")
    assert job["final_state"] == "REJECTED"
    assert job["success"] == 0
    assert set(run.pods["last_reason"]) == {"RejectedByScheduler: not today, nor tomorrow"}
    assert job[["starting_time", "finish_time"]].isna().all()


def test_a_policy_can_request_a_wake_up(simulate: Simulate, tmp_path: Path) -> None:
    body = """\
if view.now == 0:
    yield WakeAt(7_000_000_000)
elif view.head:
    yield Start(view.head, view.free.fit(view.head))"""

    run = simulate([a_job("a")], DELAY_10, scheduler=own_policy(tmp_path, body))

    assert row(run, "a")["starting_time"] == 7


def test_a_policy_that_overcommits_is_rejected_by_the_kubelet_and_reported(simulate: Simulate, tmp_path: Path) -> None:
    body = """\
self.first = getattr(self, "first", None) or view.free.fit(view.head)
for job in view.queue:
    yield Start(job, self.first)"""
    jobs = [a_job("a"), a_job("b", subtime=1)]

    run = simulate(jobs, DELAY_10, scheduler=own_policy(tmp_path, body))

    assert row(run, "a")["final_state"] == "COMPLETED_SUCCESSFULLY"
    assert row(run, "b")["final_state"] == "COMPLETED_FAILED"
    assert dict(zip(run.pods["pod"], run.pods["last_reason"], strict=True)) == {
        "w0-a": "",
        "w0-b": "OutOfbatkube.io/machine",
    }
    [note] = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert (note["severity"], note["count"]) == ("violation", 1)
    assert list(run.machine_states["nb_computing"]) == [1, 0]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("yield Start(view.head, 1 / 0)", r"mine\.py:5 \(yield Start\(view\.head, 1 / 0\)\): ZeroDivisionError"),
        ("yield Start(view.head, view.free.fit(None))", r"mine\.py:5 .*AttributeError"),
        (
            "job = view.head\nplace = view.free.fit(job)\nyield Start(job, place)\nyield Start(job, place)",
            "not waiting",
        ),
        ("yield Evict(view.head)", "not running"),
        ("yield Start(view.head, None)", "without a placement"),
        ("yield view.head", "yielded a Job, which is not a Start"),
        ("return [Start(view.head, None)]", "decide returned a list; it must `yield Start"),
        ("import sys\nsys.exit(3)\nyield", r"mine\.py:6 .*SystemExit: 3"),
        ("return [view.missing]", r"mine\.py:5 .*AttributeError"),
        ("yield Start(view.head, (0,))", "not a placement"),
        ("yield WakeAt(view.now + 5e9)", "whole number of nanoseconds"),
        (
            "from batkube.policies.machine_room import MachinePlacement\n"
            "yield Start(view.head, MachinePlacement(1 << 9))",
            "exist",
        ),
        ("yield WakeAt(view.now)", "whole number of nanoseconds after the present"),
        ("yield from ()", r"left 2 of 2 jobs without an outcome: w0!a, w0!b"),
    ],
)
def test_a_policy_that_misbehaves_ends_the_run_with_its_place_and_keeps_the_outputs(
    simulate: Simulate, tmp_path: Path, body: str, message: str
) -> None:
    with pytest.raises(batkube.RunFailed, match=message):
        simulate([a_job("a"), a_job("b")], DELAY_10, scheduler=own_policy(tmp_path, body))

    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["result"] == "failed"
    assert (tmp_path / "out" / "jobs.csv").is_file()


def test_a_policy_that_fails_to_start_is_named(simulate: Simulate, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from batkube.policies import Policy\nclass Mine(Policy):\n"
        "    def begin(self, machines, rng):\n        raise KeyError('gpu')\n"
        "    def decide(self, view):\n        yield from ()\n"
    )

    with pytest.raises(batkube.RunFailed, match=r"mine\.py:4 .*KeyError"):
        simulate([a_job("a")], DELAY_10, scheduler=f"policy:{path}:Mine")


def test_a_policy_that_polls_is_called_once_per_instant_and_the_run_ends_with_the_last_job(
    simulate: Simulate, tmp_path: Path
) -> None:
    body = """\
self.asked = [*getattr(self, "asked", []), view.now // 10**9]
assert len(set(self.asked)) == len(self.asked), self.asked
for job in view.queue:
    placement = view.free.fit(job)
    if placement:
        yield Start(job, placement)
yield WakeAt(view.now + 5 * 10**9)"""

    run = simulate(
        [a_job("a"), a_job("b"), a_job("c", subtime=5)], DELAY_10, scheduler=own_policy(tmp_path, body), platform="1x1"
    )

    assert run.schedule["makespan"] == 30


def test_a_policy_that_polls_forever_without_starting_anything_is_stopped(
    simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batkube.policies.runtime.policy_scheduler._IDLE_WAKES_MAX", 50)

    with pytest.raises(batkube.RunFailed, match="50 times in a row"):
        simulate([a_job("a")], DELAY_10, scheduler=own_policy(tmp_path, "yield WakeAt(view.now + 1)"))


def test_a_policy_sees_evicted_jobs_as_ended_and_is_called_again(simulate: Simulate, tmp_path: Path) -> None:
    body = """\
self.seen = [*getattr(self, "seen", []), *[job.name for job in view.ended]]
if view.now == 4 * 10**9 and not self.seen:
    yield Evict(view.running[0].job)
elif view.head:
    placement = view.free.fit(view.head)
    if placement:
        yield Start(view.head, placement)"""
    jobs = [a_job("a"), a_job("b", subtime=4)]

    run = simulate(jobs, DELAY_10, platform="1x1", scheduler=own_policy(tmp_path, body), on_eviction="fail")

    assert row(run, "a")["final_state"] == "COMPLETED_KILLED"
    assert row(run, "b")["starting_time"] == 4


def test_a_job_can_be_rejected_long_after_another(simulate: Simulate, tmp_path: Path) -> None:
    body = "for job in view.queue:\n    yield Reject(job, 'no')"
    run = simulate([a_job("a"), a_job("b", subtime=5)], DELAY_10, scheduler=own_policy(tmp_path, body))

    assert set(run.jobs["final_state"]) == {"REJECTED"}


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


def test_evicting_a_job_whose_end_is_not_reported_yet_frees_its_node_at_once_and_keeps_its_success(
    simulate: Simulate, tmp_path: Path
) -> None:
    latencies = tmp_path / "latencies.yaml"
    latencies.write_text("report: 30\n")
    jobs = [a_job("low"), a_job("high", subtime=15, priority=9)]

    run = simulate(jobs, DELAY_10, platform="1x1", scheduler="policy:priority", latencies=latencies)

    low, high = row(run, "low"), row(run, "high")
    assert (low["final_state"], low["finish_time"], low["evictions"]) == ("COMPLETED_SUCCESSFULLY", 10, 0)
    assert (high["final_state"], high["starting_time"]) == ("COMPLETED_SUCCESSFULLY", 15)


def test_a_drawn_latency_that_is_too_long_ends_the_run_with_its_name(simulate: Simulate, tmp_path: Path) -> None:
    latencies = tmp_path / "latencies.yaml"
    latencies.write_text("pull: choice:1e300\n")

    with pytest.raises(batkube.RunFailed, match=r"latency 'pull' was drawn as 1e\+300 s"):
        simulate([a_job("a")], DELAY_10, latencies=latencies)
