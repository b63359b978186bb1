"""Decisions of policies in runs: rejections, wake-ups, evictions and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.execution.delay_jobs import DELAY_10, a_job, row

import batkube

if TYPE_CHECKING:
    from conftest import Simulate


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


def test_a_policy_places_jobs_on_the_machines_of_their_partitions(simulate: Simulate, tmp_path: Path) -> None:
    body = """\
for job in list(view.queue):
    placement = view.free.only({"debug": [2], "": [0, 1]}[job.partition]).fit(job)
    if placement is not None:
        yield Start(job, placement)"""
    jobs = [a_job("a", partition="debug"), a_job("b", res=2), a_job("c", partition="debug", queue="q")]

    run = simulate(jobs, DELAY_10, platform="3x1", scheduler=own_policy(tmp_path, body))

    machines = {name: row(run, name)["allocated_resources"] for name in "abc"}
    assert machines == {"a": "2", "b": "0-1", "c": "2"}
    assert [row(run, name)["starting_time"] for name in "abc"] == [0, 0, 10]


def test_a_policy_reads_the_run_times_of_jobs_that_ended_or_that_it_evicted(
    simulate: Simulate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = """\
seen = self.__dict__.setdefault("seen", [])
seen += [(job.name, job.queue, view.now // 10**9, view.run_time(job)) for job in view.ended]
for running in list(view.running):
    assert view.run_time(running.job) is None
    if running.job.name == "b" and view.now == 4 * 10**9:
        yield Evict(running.job)
if view.now == 0:
    yield WakeAt(4 * 10**9)
for job in list(view.queue):
    placement = view.free.fit(job)
    if placement is not None:
        yield Start(job, placement)
if not view.running and not view.queue:
    print("SEEN", seen)"""
    jobs = [a_job("a", queue="q"), a_job("b"), a_job("z", subtime=50)]

    simulate(jobs, DELAY_10, scheduler=own_policy(tmp_path, body))
    output = capsys.readouterr().out

    # b ran for 4 s before it was evicted, then for 10 s.
    assert "('a', 'q', 10, 10000000000)" in output
    assert "('b', '', 4, 4000000000)" in output
    assert "('b', '', 14, 10000000000)" in output
