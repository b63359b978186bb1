"""The request limit of the client that submits the jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from tests.execution.latencies.latency_files import PROFILES, at, jobs, latencies

from batkube.execution.latencies.request_limit import RequestLimit
from batkube.kernel.instants import as_float_s, seconds
from batkube.workloads.model import Delay, Job

if TYPE_CHECKING:
    from conftest import Simulate


def test_a_limited_client_submits_a_burst_and_then_at_its_rate(simulate: Simulate, tmp_path: Path) -> None:
    file = latencies(tmp_path, "client: {qps: 5, burst: 10}")

    run = simulate(jobs(200), PROFILES, platform="200x1", latencies=file)

    submitted = sorted(run.jobs["submission_time"])
    assert submitted[:10] == [0] * 10
    assert submitted[10:13] == [0.2, 0.4, 0.6]
    assert submitted[-1] == 38, "as the published driver needed"
    assert (run.jobs["waiting_time"] == 0).all()


def test_a_limit_above_the_rate_of_jobs_has_no_effect(simulate: Simulate, tmp_path: Path) -> None:
    file = latencies(tmp_path, "client: {qps: 5, burst: 1}")

    run = simulate(jobs(20, every=1), PROFILES, platform="20x1", latencies=file)

    assert sorted(run.jobs["submission_time"]) == list(range(1, 21))


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=60).map(sorted), st.integers(1, 8), st.sampled_from([0.5, 2, 5])
)
def test_no_window_holds_more_jobs_than_the_clients_limit(due: list[int], burst: int, qps: float) -> None:
    """As in golang.org/x/time/rate: at most burst + qps * length in any window; no job is early; the order is kept."""
    profile = Delay(name="d", duration=seconds(1))
    jobs = [Job(workload="w", name=str(n), submit=at(t), size=1, profile=profile) for n, t in enumerate(due)]

    submitted = [as_float_s(job.submit) for job in RequestLimit(qps, burst).throttle(jobs)]

    assert submitted == sorted(submitted)
    assert all(real >= wanted for real, wanted in zip(submitted, due, strict=True))
    for first, begin in enumerate(submitted):
        for last in range(first, len(submitted)):
            assert last - first + 1 <= burst + qps * (submitted[last] - begin) + 1e-6
