"""The real kube-scheduler 1.34.4 with its default configuration, on the virtual clock."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pandas as pd
import pytest

import batkube
import published
from conftest import Simulate

OUTPUTS = ("jobs.csv", "pods.csv", "journal.jsonl", "machine_states.csv")


def _scheduled(kube_scheduler: str, workload: Path, platform: str) -> batkube.Run:
    return batkube.run(workload=workload, platform=platform, scheduler=kube_scheduler, resources="requests")


def _journal(run: batkube.Run, event: str, pod: str = "") -> list[float]:
    """Return the virtual seconds of an event, for one pod if `pod` is given."""
    entries = map(json.loads, (run.path / "journal.jsonl").read_text().splitlines())
    return [entry["t"] / 1e9 for entry in entries if entry["event"] == event and pod in ("", entry.get("pod"))]


def _most_in_use(pods: pd.DataFrame, cpu_of: dict[str, float]) -> dict[str, float]:
    """Return the peak cpu usage of each node, counted from pods.csv alone."""
    most: dict[str, float] = {}
    for node, rows in pods.groupby("node"):
        cpu = rows["job_id"].astype(str).map(cpu_of)
        ends = list(zip(rows["finished"], -cpu, strict=True))
        changes = sorted([*ends, *zip(rows["started"], cpu, strict=True)])  # at one instant ends come first
        used = peak = 0.0
        for _, change in changes:
            used += change
            peak = max(peak, used)
        most[str(node)] = peak
    return most


@pytest.mark.headline
@pytest.mark.parametrize(
    ("workload", "makespan", "mean_wait"),
    [("burst", 2210.0, 979.2), ("spaced", 2280.0, 57.6)],
)
def test_the_2020_experiments_have_their_theoretical_values(
    tmp_path: Path, kube_scheduler: str, workload: str, makespan: float, mean_wait: float
) -> None:
    run = _scheduled(kube_scheduler, published.WORKLOADS[workload](tmp_path), published.SIXTEEN)
    assert run.schedule["makespan"] == makespan
    assert run.schedule["mean_waiting_time"] == pytest.approx(mean_wait, abs=0.05)
    used = _most_in_use(run.pods, dict.fromkeys(run.pods["job_id"].astype(str), 1.0))
    assert len(used) == 16
    assert set(used.values()) == {1.0}


def _random_order_wait(jobs: list[tuple[float, float, float]], cores: float, chance: random.Random) -> float:
    """Return the mean wait if all waiting jobs are retried in random order whenever a job ends."""
    waits: list[float] = []
    waiting: list[tuple[float, float, float]] = []
    running: list[tuple[float, float]] = []
    free = cores

    def start_what_fits(candidates: list[tuple[float, float, float]], now: float) -> None:
        nonlocal free
        for job in candidates:
            submit, length, cpu = job
            if cpu <= free + 1e-9:
                free -= cpu
                running.append((now + length, cpu))
                waits.append(now - submit)
                if job in waiting:
                    waiting.remove(job)
            elif job not in waiting:
                waiting.append(job)

    arrivals = sorted(jobs)
    while arrivals or running:
        now = min([end for end, _ in running] + [job[0] for job in arrivals[:1]])
        ended = [entry for entry in running if entry[0] == now]
        for entry in ended:
            running.remove(entry)
            free += entry[1]
        if ended:
            start_what_fits(chance.sample(waiting, len(waiting)), now)
        while arrivals and arrivals[0][0] == now:
            start_what_fits([arrivals.pop(0)], now)
    return sum(waits) / len(waits)


def test_the_mean_wait_of_kit_is_that_of_a_queue_retried_in_random_order(tmp_path: Path, kube_scheduler: str) -> None:
    """Pods that are retried at one instant have no defined order, so there is a range of possible values."""
    run = _scheduled(kube_scheduler, published.kit(tmp_path), published.SIX_CORES)
    assert run.schedule["makespan"] == 32554.0
    rows = published.table("kit.csv")
    cpu_of = {row["job"]: float(row["cpu"]) for row in rows}
    jobs = [(float(row["submit"]), float(row["run"]), cpu_of[row["job"]]) for row in rows]
    chance = random.Random(1)
    possible = [_random_order_wait(jobs, 6.0, chance) for _ in range(300)]
    assert min(possible) - 1 <= run.schedule["mean_waiting_time"] <= max(possible) + 1
    assert max(_most_in_use(run.pods, cpu_of).values()) <= 6.0 + 1e-9


def _mixed(simulate: Simulate, kube_scheduler: str, out: Path, seed: int) -> batkube.Run:
    """Run forty jobs of several sizes on eight equal nodes; some of them wait."""
    profiles = {str(length): {"type": "delay", "delay": length} for length in (7, 20, 33)}
    jobs = [
        {"id": str(number), "subtime": number % 5, "res": 1, "profile": str((7, 20, 33)[number % 3]), "cpu": "1"}
        for number in range(40)
    ]
    return simulate(jobs, profiles, platform="8x2", scheduler=kube_scheduler, seed=seed, out=out)


def test_runs_of_one_seed_are_identical_and_another_seed_chooses_other_nodes(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    first, again, other = (
        _mixed(simulate, kube_scheduler, tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    for name in OUTPUTS:
        assert (first.path / name).read_bytes() == (again.path / name).read_bytes(), name
    assert first.manifest["digest"] == again.manifest["digest"]
    assert first.manifest["digest"] != other.manifest["digest"]
    nodes = [list(run.pods.sort_values("pod")["node"]) for run in (first, other)]
    assert nodes[0] != nodes[1]


def _one_that_never_fits(simulate: Simulate, kube_scheduler: str, pop_early: bool) -> list[float]:
    """Return the attempts of a pod that needs a whole node, while a small pod ends every half second."""
    jobs: list[dict[str, object]] = [
        {"id": "hold", "subtime": 0, "res": 1, "profile": "long", "cpu": "1"},
        {"id": "big", "subtime": 0.1, "res": 1, "profile": "short", "cpu": "2"},
    ]
    jobs += [
        {"id": f"s{number}", "subtime": 0.3 + number / 2, "res": 1, "profile": "short", "cpu": "1"}
        for number in range(110)
    ]
    profiles = {"long": {"type": "delay", "delay": 60}, "short": {"type": "delay", "delay": 0.25}}
    gates = {"feature-gates": f"SchedulerPopFromBackoffQ={str(pop_early).lower()}"}
    run = simulate(jobs, profiles, platform="1x2", scheduler=kube_scheduler, scheduler_args=gates)
    return _journal(run, "attempt", "w0-big")


#: When kube-scheduler first flushes its queue, after 0.1 s for filling its caches; then once a second.
LOOKS = 0.1


def test_the_back_off_of_a_pod_doubles_up_to_ten_seconds(simulate: Simulate, kube_scheduler: str) -> None:
    """The queue is flushed once a second; a back-off that ends at that very instant is not complete yet."""
    theory = [0.1]
    for back_off in (1, 2, 4, 8, 10, 10, 10):
        over = theory[-1] + back_off
        theory.append(math.floor(over - LOOKS + 1e-9) + 1 + LOOKS)
    assert _one_that_never_fits(simulate, kube_scheduler, pop_early=False) == pytest.approx(theory, abs=1e-9)


def test_an_idle_scheduler_pops_pods_from_their_back_off(simulate: Simulate, kube_scheduler: str) -> None:
    """From 1.33 on (SchedulerPopFromBackoffQ), a pod in back-off is tried at once if the active queue is empty."""
    tries = _one_that_never_fits(simulate, kube_scheduler, pop_early=True)
    assert tries[1:4] == pytest.approx([0.55, 1.05, 1.55])


def test_an_unschedulable_pod_without_an_event_is_retried_after_five_minutes(
    simulate: Simulate, kube_scheduler: str
) -> None:
    """Every 30 s kube-scheduler moves pods that have waited more than 5 minutes; exactly 300 s are not enough."""
    jobs = [{"id": name, "subtime": 0, "res": 1, "profile": "long", "cpu": "1"} for name in ("first", "second")]
    run = simulate(jobs, {"long": {"type": "delay", "delay": 1000}}, platform="1x1", scheduler=kube_scheduler)
    waits = "w0-first" if not _journal(run, "attempt", "w0-second") else "w0-second"
    assert _journal(run, "attempt", waits) == pytest.approx([0, 300 + LOOKS, 630 + LOOKS, 960 + LOOKS], abs=1e-9)


def test_requests_are_limited_to_fifty_a_second_after_a_burst_of_a_hundred(
    simulate: Simulate, kube_scheduler: str
) -> None:
    jobs = [{"id": str(number), "subtime": 0, "res": 1, "profile": "long", "cpu": "1"} for number in range(150)]
    run = simulate(jobs, {"long": {"type": "delay", "delay": 100}}, platform="150x1", scheduler=kube_scheduler)
    theory = [max(0, number - 99) / 50 for number in range(150)]
    assert _journal(run, "bind") == pytest.approx(theory, abs=1e-9)


def test_the_numbers_of_attempts_are_those_of_the_log(simulate: Simulate, kube_scheduler: str, tmp_path: Path) -> None:
    run = _mixed(simulate, kube_scheduler, tmp_path / "out", 0)
    log = (run.path / "scheduler" / "log.txt").read_text()
    waited = run.pods[run.pods["attempts"] > 1]
    assert len(waited) > 0
    for pod in run.pods.itertuples():
        assert log.count(f'"Unable to schedule pod; no fit; waiting" pod="default/{pod.pod}"') == pod.attempts - 1
    assert all("Insufficient cpu" in reason for reason in waited["last_reason"])


def test_the_manifest_has_version_hash_and_usage_of_the_scheduler(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    manifest = _mixed(simulate, kube_scheduler, tmp_path / "out", 0).manifest
    (told,), (used,) = manifest["programs"], manifest["real"]["programs"]
    assert told["version"] == "v1.34.4"
    assert told["serves"] == ["default-scheduler"]
    assert len(told["sha256"]) == 64
    assert used["cpu_s"] > 0.01
    assert used["peak_memory_bytes"] > 20e6
