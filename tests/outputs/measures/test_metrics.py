"""Metrics of runs."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING

import pytest

import batkube
from batkube.outputs.measures.metrics import users_table
from batkube.outputs.results import Results

if TYPE_CHECKING:
    from tests.run_folders import MakeRun, SharedMachines


def test_metrics_of_two_jobs_are_those_computed_by_hand(make_run: MakeRun) -> None:
    # Two machines; job a: waits 0, runs 10 s; job b: waits 8 s, runs 2 s on both machines.
    metrics = make_run([("a", 0, 0, 10, "0"), ("b", 2, 10, 12, "0-1")]).metrics

    assert metrics.makespan_s == 12
    assert metrics.wait_s_mean == 4
    assert metrics.wait_s_median == 4
    assert metrics.wait_s_p90 == pytest.approx(7.2)
    assert metrics.wait_s_max == 8
    assert metrics.turnaround_s_mean == 10
    assert metrics.slowdown_mean == (1 + 5) / 2
    assert metrics.slowdown_max == 5
    assert metrics.bounded_slowdown_mean == 1  # 10/10 and 10/max(2, 10)
    assert metrics.utilisation == pytest.approx((10 + 2 * 2) / (2 * 12))
    assert metrics.throughput_per_h == pytest.approx(2 / 12 * 3600)
    assert metrics.states == {"COMPLETED_SUCCESSFULLY": 2}


def test_a_short_jobs_slowdown_is_bounded_at_ten_seconds(make_run: MakeRun) -> None:
    metrics = make_run([("a", 0, 99, 100, "0")]).metrics

    assert metrics.slowdown_mean == 100
    assert metrics.bounded_slowdown_mean == 10


def test_a_job_of_zero_length_has_only_a_bounded_slowdown(make_run: MakeRun) -> None:
    metrics = make_run([("a", 0, 20, 20, "0"), ("b", 0, 0, 5, "0")]).metrics

    assert metrics.slowdown_mean == 1
    assert metrics.bounded_slowdown_mean == 1.5


def test_unfinished_jobs_are_counted_by_state_but_not_in_means(make_run: MakeRun) -> None:
    rejected = {"final_state": "REJECTED", "success": 0}

    metrics = make_run([("a", 0, 5, 10, "0"), ("b", 0, None, None, "", rejected)]).metrics

    assert (metrics.jobs, metrics.finished) == (2, 1)
    assert metrics.states == {"COMPLETED_SUCCESSFULLY": 1, "REJECTED": 1}
    assert metrics.wait_s_mean == 5


def test_a_run_without_finished_jobs_has_no_mean_values(make_run: MakeRun) -> None:
    metrics = make_run([("a", 0, None, None, "", {"final_state": "REJECTED"})]).metrics

    assert metrics.makespan_s is None
    assert metrics.wait_s_mean is None
    assert metrics.utilisation is None
    assert metrics.throughput_per_h is None


def test_utilisation_is_of_cpu_when_jobs_share_machines(make_run: MakeRun, shared_machines: SharedMachines) -> None:
    # A 4-cpu machine: 1 cpu for 10 s and 2 pods of 1.5 cpu for 5 s.
    metrics = make_run(
        [
            ("a", 0, 0, 10, "0", {"cpu": 1.0}),
            ("b", 0, 0, 5, "0", {"cpu": 1.5, "requested_number_of_resources": 2}),
        ],
        manifest=shared_machines(4000),
    ).metrics

    assert metrics.utilisation == pytest.approx((1 * 10 + 3 * 5) / (4 * 10))


def test_a_run_counts_from_its_first_submission(make_run: MakeRun) -> None:
    """The trace's times were not shifted, and nothing could run in the year before it."""
    year = 365 * 86400
    metrics = make_run([("a", year, year, year + 10, "0"), ("b", year, year + 10, year + 20, "0-1")]).metrics

    assert metrics.utilisation == pytest.approx(30 / 40)
    assert metrics.throughput_per_h == pytest.approx(2 / 20 * 3600)
    assert (metrics.measured_from_s, metrics.measured_until_s) == (year, year + 20)


def test_throughput_counts_jobs_that_end_in_the_window(make_run: MakeRun) -> None:
    """The number of submitted jobs does not depend on the scheduler."""
    late = [(str(n), 10 * n, 100 + 10 * n, 110 + 10 * n, "0") for n in range(10)]
    soon = [(str(n), 10 * n, 10 * n, 10 * n + 5, "0") for n in range(10)]

    slow, fast = (
        Results(make_run(jobs, name=name).path, cool_down="0").metrics
        for name, jobs in {"slow": late, "fast": soon}.items()
    )

    assert slow.measured == fast.measured == 10
    assert slow.throughput_per_h == 0
    assert fast.throughput_per_h == pytest.approx(9 / 90 * 3600)


def test_the_utilisation_of_a_late_trace_is_that_of_its_span(shared_data: Path, tmp_path: Path) -> None:
    """SDSC-SP2 from line 4,500 on, with the original times: its first job is submitted on day 52."""
    lines = (shared_data / "swf" / "SDSC-SP2-1998-first5000lines.swf").read_text(encoding="utf-8").splitlines()
    tail = [*(line for line in lines if line.startswith(";")), *lines[4500:]]
    (tmp_path / "tail.swf").write_text("\n".join(tail) + "\n")

    run = batkube.run(workload=tmp_path / "tail.swf", platform="128x1", out=tmp_path / "out")

    jobs = run.jobs
    work = ((jobs["finish_time"] - jobs["starting_time"]) * jobs["requested_number_of_resources"]).sum()
    first, last = jobs["submission_time"].min(), jobs["finish_time"].max()
    assert run.metrics.utilisation == pytest.approx(work / (128 * (last - first)), rel=1e-6)
    assert run.metrics.utilisation > 2 * work / (128 * last), "counting from 0 would give less than half"


def test_warm_up_and_cool_down_exclude_jobs_and_machine_time(make_run: MakeRun) -> None:
    run = make_run([(str(number), number * 10, number * 10 + number, number * 10 + 15, "0") for number in range(10)])

    metrics = Results(run.path, warm_up="20s", cool_down="2jobs").metrics

    assert (metrics.jobs, metrics.finished, metrics.measured) == (10, 10, 6)
    assert metrics.wait_s_mean == pytest.approx((2 + 3 + 4 + 5 + 6 + 7) / 6)
    assert (metrics.measured_from_s, metrics.measured_until_s) == (20, 70)
    # Busy except from 65, when job 5 ends, to 66, when job 6 starts.
    assert metrics.utilisation == pytest.approx(49 / 50)
    assert metrics.makespan_s == 105


def test_an_over_allocated_machine_counts_once_as_busy(make_run: MakeRun) -> None:
    metrics = make_run([("a", 0, 0, 10, "0"), ("b", 0, 5, 12, "0"), ("c", 0, 6, 8, "0-1")]).metrics

    assert metrics.utilisation == pytest.approx((12 + 2) / (2 * 12))


def test_utilisation_is_unknown_if_the_machines_of_a_job_are(make_run: MakeRun) -> None:
    assert make_run([("a", 0, 0, 10, "0"), ("b", 0, 5, 12, "")]).metrics.utilisation is None


def test_fairness_is_jains_index_over_the_users_mean_bounded_slowdown(make_run: MakeRun) -> None:
    # ada: bounded slowdowns 1 and 3, mean 2; bob: 4. Jain: (2 + 4)² / (2 · (4 + 16)) = 0.9.
    results = make_run(
        [
            ("1", 0, 0, 10, "0", {"user": "ada"}),
            ("2", 0, 20, 30, "0", {"user": "ada"}),
            ("3", 0, 30, 40, "0", {"user": "bob"}),
        ]
    )

    assert results.metrics.fairness == pytest.approx(0.9)
    table = users_table(results.jobs)
    assert table.index.tolist() == ["ada", "bob"]
    assert table["jobs"].tolist() == [2, 1]
    assert table["wait_s_mean"].tolist() == [10, 30]
    assert table["bounded_slowdown_mean"].tolist() == [2, 4]


def test_a_single_user_has_no_fairness(make_run: MakeRun) -> None:
    assert make_run([("1", 0, 0, 10, "0")]).metrics.fairness is None


@pytest.mark.parametrize(
    ("folder", "pattern", "makespan", "makespan_sd", "wait", "wait_sd"),
    [
        ("emulated", "200_delay170_?_jobs.csv", 2467.18, 28.27, 1076.73, 10.58),
        ("emulated", "spaced_200_delay170_?_jobs.csv", 2468.28, 5.14, 145.99, 1.67),
        ("simulated", "200_delay170_simu_*_jobs.csv", 2214.82, 0.508, 970.09, 12.62),
        ("simulated", "spaced_200_delay170_simu_*_jobs.csv", 2256.89, 16.87, 48.14, 9.44),
        ("simulated", "KIT_10h_80_simu_*_jobs.csv", 32554.71, 1.295, 2020.11, 950.5),
    ],
)
def test_the_published_means_are_reproduced(
    shared_data: Path, folder: str, pattern: str, makespan: float, makespan_sd: float, wait: float, wait_sd: float
) -> None:
    """Table 4.1 of the 2020 study, recomputed from its published jobs.csv files."""
    files = sorted((shared_data / "batkube" / folder).glob(pattern))

    runs = [Results(file).metrics for file in files]

    makespans, waits = [run.makespan_s for run in runs], [run.wait_s_mean for run in runs]
    assert (mean(makespans), stdev(makespans)) == pytest.approx((makespan, makespan_sd), abs=0.006)
    assert (mean(waits), stdev(waits)) == pytest.approx((wait, wait_sd), abs=0.06)


def test_the_schedule_csv_of_batsim_is_reproduced(shared_data: Path) -> None:
    results = Results(shared_data / "medium_late" / "easy")

    schedule, metrics = results.schedule, results.metrics

    assert metrics.makespan_s == schedule["makespan"]
    assert metrics.wait_s_mean == pytest.approx(schedule["mean_waiting_time"], abs=1e-6)
    assert metrics.wait_s_max == schedule["max_waiting_time"]
    assert metrics.turnaround_s_mean == pytest.approx(schedule["mean_turnaround_time"], abs=1e-6)
    assert metrics.slowdown_mean == pytest.approx(schedule["mean_slowdown"], abs=1e-6)
    assert metrics.slowdown_max == pytest.approx(schedule["max_slowdown"], abs=1e-6)
    assert metrics.utilisation == pytest.approx(schedule["time_computing"] / (32 * schedule["makespan"]), abs=1e-6)
