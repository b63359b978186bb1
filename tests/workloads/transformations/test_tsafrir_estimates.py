"""Tsafrir's model of user estimates, compared with the numbers of the paper."""

from __future__ import annotations

import math
import random

import pytest

from batkube.workloads.transformations.tsafrir_estimates import (
    assigned_estimates,
    different_estimates,
    estimate_counts,
    head_percentages,
)

HOUR = 3600
DAY_AND_A_HALF = 36 * HOUR


@pytest.mark.parametrize(("jobs", "different"), [(20, 10), (200, 20), (1000, 35), (10_000, 90), (40_000, 215)])
def test_the_number_of_different_estimates_is_piecewise_linear(jobs: int, different: int) -> None:
    assert different_estimates(jobs) == different


def test_twenty_estimates_are_used_by_89_percent_of_the_jobs() -> None:
    percentages = head_percentages(20)

    assert math.fsum(percentages) == pytest.approx(89)
    # 14.0491·exp(−0.177531·2) + 0.462513 and 14.0491·exp(−0.177531·20) + 0.462513
    assert percentages[1] == pytest.approx(10.3126, abs=1e-3)
    assert percentages[19] == pytest.approx(0.8659, abs=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_few_round_estimates_cover_most_jobs_and_the_longest_is_the_most_popular(seed: int) -> None:
    counts = estimate_counts(10_000, DAY_AND_A_HALF, random.Random(seed))
    popular = sorted(counts, key=lambda time: -counts[time])

    assert sum(counts.values()) == 10_000
    assert len(counts) == 90
    assert sum(counts[time] for time in popular[:20]) == pytest.approx(8900, abs=20)
    assert popular[0] == DAY_AND_A_HALF
    assert counts[DAY_AND_A_HALF] == pytest.approx(100 * head_percentages(20)[0], abs=2)
    assert all(time % 300 == 0 for time in popular[:20])
    assert {900, HOUR, 4 * HOUR, 12 * HOUR, 18 * HOUR} <= set(popular[:20])
    assert all(0 < time <= DAY_AND_A_HALF for time in counts)


def test_half_of_the_tail_estimates_are_below_a_fifth_of_the_longest() -> None:
    counts = estimate_counts(10_000, DAY_AND_A_HALF, random.Random(1))
    tail = sorted(sorted(counts, key=lambda time: counts[time])[:70])
    a = 1 + 12.1039 * 90**-0.6026

    assert tail[34] / DAY_AND_A_HALF == pytest.approx((a - 1) * 0.5 / (a - 0.5), abs=0.02)


@pytest.mark.parametrize("seed", range(20))
def test_every_job_gets_an_estimate_of_the_model_above_its_run_time(seed: int) -> None:
    rng = random.Random(seed)
    run_times = [min(rng.lognormvariate(6, 2), DAY_AND_A_HALF - 1) for _ in range(500)]
    counts = estimate_counts(500, DAY_AND_A_HALF, rng)
    estimates, raised = assigned_estimates(run_times, counts, rng)

    assert all(estimate > run for estimate, run in zip(estimates, run_times, strict=True))
    assert raised == 0
    assert {time: estimates.count(time) for time in counts} == counts


def test_jobs_that_the_model_has_no_estimate_for_get_the_next_higher_value() -> None:
    estimates, raised = assigned_estimates([3000.0, 3000.0, 10.0], {3600: 1, 60: 2}, random.Random(0))

    assert sorted(estimates) == [60, 3600, 3600]
    assert estimates[2] == 60
    assert raised == 1
