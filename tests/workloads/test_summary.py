"""Summaries of workloads, computed by hand and with awk."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.instants import Instant, seconds
from batkube.workloads.model import Job, ParallelHomogeneous, Workload
from batkube.workloads.reader import read_workload
from batkube.workloads.summary import SPREAD_COLUMNS, Spread, spread_rows, summarise, summary_rows

MakeWorkload = Callable[..., Workload]


def test_the_numbers_of_a_small_workload(delays_at: MakeWorkload) -> None:
    workload = delays_at((0, 10, 1), (10, 30, 2), (40, 0, 3), size_machines=4, walltime=seconds(20), user="ann")

    summary = summarise(workload)

    assert (summary.jobs, summary.profiles, summary.users, summary.span) == (3, 3, 1, seconds(40))
    assert (summary.size.least, summary.size.mean, summary.size.median, summary.size.most) == (1, 2, 2, 3)
    assert summary.run_time is not None
    assert summary.run_time.mean == pytest.approx(40e9 / 3)
    assert summary.gaps is not None
    assert (summary.gaps.least, summary.gaps.most) == (seconds(10), seconds(30))
    # 1 × 10 + 2 × 30 machine-seconds; on 4 machines during 40 seconds.
    assert (summary.work_ns, summary.work_core_ns) == (seconds(70), None)
    assert summary.offered_load == pytest.approx(70 / 160)
    # Walltime over run time: 2 and 2/3; the job with run time 0 has none.
    assert summary.overestimation is not None
    assert summary.overestimation.mean == pytest.approx((2 + 2 / 3) / 2)
    assert (summary.walltimes, summary.overruns) == (3, 1)


def test_unknown_statistics_are_none(delays_at: MakeWorkload) -> None:
    summary = summarise(delays_at((5, 10, 1)))

    assert (summary.offered_load, summary.gaps, summary.overestimation) == (None, None, None)
    assert dict(summary_rows(summary))["offered load"] == "not known"


@pytest.mark.parametrize(("walltime_s", "killed"), [(29, 1), (30, 1), (31, 0)])
def test_a_job_that_needs_its_whole_walltime_counts_as_killed(
    delays_at: MakeWorkload, walltime_s: int, killed: int
) -> None:
    summary = summarise(delays_at((0, 30, 1), walltime=seconds(walltime_s)))

    assert summary.overruns == killed
    assert dict(summary_rows(summary)).get("at or over walltime") == (
        "1 jobs, which will be killed" if killed else None
    )


def test_the_offered_load_of_pods_that_share_machines_is_unknown(delays_at: MakeWorkload) -> None:
    workload = delays_at((0, 10, 1), (10, 30, 2), size_machines=1, requests=(("cpu", 500),))

    assert summarise(workload).offered_load is None


def test_the_work_of_pods_is_in_core_seconds_if_all_request_cpu(delays_at: MakeWorkload) -> None:
    sharing = summarise(delays_at((0, 10, 1), (10, 30, 2), requests=(("cpu", 2500),)))
    without = summarise(delays_at((0, 10, 1), (10, 30, 2), requests=(("memory", 1 << 20),)))

    # 2.5 cores × (1 × 10 s + 2 × 30 s).
    assert dict(summary_rows(sharing))["work"] == "175 core-seconds"
    assert dict(summary_rows(without))["work"] == "70 pod-seconds"


def test_run_times_that_depend_on_the_machines_are_counted_separately() -> None:
    profile = ParallelHomogeneous(name="flops", cpu_flops=1e9, com_bytes=0)
    job = Job(workload="w0", name="1", submit=Instant(0), size=1, profile=profile)

    summary = summarise(Workload(name="w0", source="test", jobs=[job]))

    assert (summary.run_time, summary.run_times_unknown) == (None, 1)
    assert "depends on the machines" in dict(summary_rows(summary))["run time not fixed"]
    assert dict(summary_rows(summary))["work"] == "not known"


def test_unknown_work_of_some_jobs_is_stated(delays_at: MakeWorkload) -> None:
    profile = ParallelHomogeneous(name="flops", cpu_flops=1e9, com_bytes=0)
    workload = delays_at((0, 10, 2), size_machines=4)
    job = Job(workload="w0", name="other", submit=Instant(seconds(5)), size=1, profile=profile)

    summary = summarise(dataclasses.replace(workload, jobs=[*workload.jobs, job]))

    assert dict(summary_rows(summary))["work"] == "20 machine-seconds of 1 jobs; that of the others is not known"
    assert summary.offered_load is None


def test_requests_are_shown_per_resource(delays_at: MakeWorkload) -> None:
    requests = (("cpu", 1500), ("memory", 4 << 30), ("nvidia.com/gpu", 2))

    summary = summarise(delays_at((0, 1, 1), (0, 1, 1), requests=requests))

    rows = {row[0]: dict(zip(SPREAD_COLUMNS, row[1:], strict=True)) for row in spread_rows(summary)}
    assert rows["cpu per pod (cores)"]["mean"] == "1.5"
    assert rows["memory per pod"]["max"] == "4 GiB"
    assert rows["nvidia.com/gpu per pod"]["min"] == "2"
    assert dict(summary_rows(summary))["requesting memory"] == "2 jobs"


def test_the_numbers_of_a_real_trace(shared_data: Path) -> None:
    summary = summarise(read_workload(shared_data / "swf" / "KTH-SP2-1996-2.swf"))

    # Counted with awk over fields 2, 4, 5, 9 and 12.
    assert (summary.jobs, summary.users, summary.size_machines, summary.overruns) == (28489, 214, 100, 513)
    assert summary.work_ns == seconds(2_024_618_666)
    assert summary.offered_load == pytest.approx(2_024_618_666 / (100 * 29_363_618))


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=50))
def test_a_spread_is_ordered_and_its_deviation_within_its_range(values: list[int]) -> None:
    spread = Spread.of(values)

    assert spread is not None
    assert spread.least <= spread.median <= spread.most
    assert spread.least <= spread.mean * (1 + 1e-12)
    assert spread.mean <= spread.most * (1 + 1e-12)
    assert spread.deviation <= (spread.most - spread.least) * (1 + 1e-12)
