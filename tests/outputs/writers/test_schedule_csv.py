"""schedule.csv agrees with the other files of the run."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from batkube.kernel.errors import RunFailed
from batkube.outputs.results import Results

if TYPE_CHECKING:
    from conftest import Simulate

LATENCIES = "notice: 0.5\npull: lognormal:1,0.5\nstart: uniform:0,1\nreport: exponential:3\n"
PROFILES = {f"p{number}": {"type": "delay", "delay": 7 * number + 0.25} for number in range(5)}


def jobs_of(seed: int, *, requests: bool) -> list[dict[str, object]]:
    random_numbers = random.Random(seed)
    jobs: list[dict[str, object]] = []
    for number in range(40):
        job: dict[str, object] = {
            "id": str(number),
            "subtime": random_numbers.randrange(100),
            "res": random_numbers.randint(1, 4),
        }
        job["profile"] = f"p{random_numbers.randrange(5)}"
        if requests:
            job["cpu"] = f"{random_numbers.randint(1, 1500)}m"
        jobs.append(job)
    return jobs


def machine_seconds(run: Results, column: str) -> float:
    states = run.machine_states
    return float((np.diff(states["time"]) * states[column].to_numpy()[:-1]).sum())


@pytest.mark.parametrize("requests", [False, True], ids=["machines", "requests"])
@pytest.mark.parametrize("seed", range(3))
def test_utilisation_and_times_equal_those_of_other_files(
    simulate: Simulate, tmp_path: Path, seed: int, requests: bool
) -> None:
    (tmp_path / "latencies.yaml").write_text(LATENCIES)
    jobs = jobs_of(seed, requests=requests)

    run = simulate(jobs, PROFILES, platform="4x2", scheduler="policy:first-fit", latencies=tmp_path / "latencies.yaml")

    assert run.manifest["resources"] == ("requests" if requests else "machines")
    assert run.schedule["mean_utilisation"] == pytest.approx(run.metrics.utilisation, abs=1e-6)
    computing, idle = machine_seconds(run, "nb_computing"), machine_seconds(run, "nb_idle")
    # The first change is at the first job's start; all machines are idle before.
    idle += 4 * run.machine_states["time"][0]
    assert run.schedule["time_computing"] == pytest.approx(computing, abs=1e-3)
    assert run.schedule["time_idle"] == pytest.approx(idle, abs=1e-3)


@pytest.mark.parametrize("requests", [False, True], ids=["machines", "requests"])
def test_metrics_computed_from_jobs_csv_are_equal(simulate: Simulate, requests: bool) -> None:
    jobs = [
        {**job, "user": f"u{number % 3}", **({"memory": "1Gi", "gpu": number % 2} if requests else {})}
        for number, job in enumerate(jobs_of(5, requests=requests))
    ]

    run = simulate(jobs, PROFILES, platform="4x2,8Gi,2", scheduler="policy:first-fit", warm_up="10%")

    columns = {name: value for name, value in run.metrics.columns.items() if value is not None}
    assert {name: run.schedule[name] for name in columns} == pytest.approx(columns, abs=1e-6)
    shares = {name for name in columns if name.startswith("utilisation_")}
    assert shares == ({"utilisation_cpu", "utilisation_memory", "utilisation_nvidia.com/gpu"} if requests else set())
    if requests:
        assert run.schedule["utilisation_cpu"] == run.schedule["mean_utilisation"]


def test_machines_of_late_reports_are_busy_after_the_makespan(simulate: Simulate, tmp_path: Path) -> None:
    (tmp_path / "latencies.yaml").write_text("report: 5\n")
    jobs = [{"id": "1", "subtime": 0, "res": 3, "profile": "d"}]

    run = simulate(jobs, {"d": {"type": "delay", "delay": 10}}, latencies=tmp_path / "latencies.yaml")

    assert run.schedule["makespan"] == 10
    assert (run.schedule["time_computing"], run.schedule["time_idle"]) == (45, 15)


def test_a_late_rejection_adds_no_idle_time(simulate: Simulate, tmp_path: Path) -> None:
    policy = (
        "from batkube.policies.interface import Policy, Reject, Start\n"
        "class P(Policy):\n    def decide(self, view):\n"
        "        for job in view.queue:\n"
        "            yield Start(job, view.free.fit(job)) if job.name == '1' else Reject(job, 'no')\n"
    )
    (tmp_path / "p.py").write_text(policy)
    jobs = [{"id": "1", "subtime": 0, "res": 4, "profile": "d"}, {"id": "2", "subtime": 90, "res": 1, "profile": "d"}]

    run = simulate(jobs, {"d": {"type": "delay", "delay": 10}}, scheduler=f"policy:{tmp_path / 'p.py'}:P")

    assert (run.schedule["time_computing"], run.schedule["time_idle"]) == (40, 0)


def test_a_failed_run_counts_jobs_without_an_outcome(simulate: Simulate, tmp_path: Path) -> None:
    policy = (
        "from batkube.policies.interface import Policy, Start\n"
        "class P(Policy):\n    def decide(self, view):\n"
        "        for job in view.queue:\n"
        "            if job.name == '1':\n                yield Start(job, view.free.fit(job))\n"
    )
    (tmp_path / "p.py").write_text(policy)
    jobs = [{"id": str(number), "subtime": 0, "res": 1, "profile": "d"} for number in range(4)]

    with pytest.raises(RunFailed):
        simulate(jobs, {"d": {"type": "delay", "delay": 10}}, scheduler=f"policy:{tmp_path / 'p.py'}:P")

    run = Results(tmp_path / "out")
    assert (run.schedule["nb_jobs"], run.schedule["nb_jobs_finished"], len(run.jobs)) == (4, 1, 1)
    assert run.schedule["success_rate"] == 0.25


def test_a_window_without_jobs_has_no_mean_values_and_a_note(simulate: Simulate) -> None:
    jobs = [{"id": str(number), "subtime": number, "res": 1, "profile": "d"} for number in range(4)]

    run = simulate(jobs, {"d": {"type": "delay", "delay": 10}}, warm_up="4jobs")

    assert run.schedule["nb_jobs_measured"] == 0
    assert run.schedule["mean_waiting_time"] is None
    assert [note["subject"] for note in run.notes] == ["window"]
    assert run.window_remark


def test_jobs_of_zero_length_have_no_slowdown(simulate: Simulate) -> None:
    jobs = [{"id": str(number), "subtime": 0, "res": 1, "profile": "d"} for number in range(4)]

    run = simulate(jobs, {"d": {"type": "delay", "delay": 0}})

    assert run.schedule["mean_waiting_time"] == 0
    for name in ("mean_slowdown", "max_slowdown", "mean_utilisation"):
        assert run.schedule[name] is None
