"""Generated workloads are exact without random values, and otherwise agree with their models."""

from __future__ import annotations

import itertools
import math
import statistics
from pathlib import Path

import pytest

import published
from batkube.kernel.distributions import parse_distribution
from batkube.kernel.errors import InputError
from batkube.kernel.instants import seconds
from batkube.workloads.model import Delay, Workload
from batkube.workloads.reader import read_workload
from batkube.workloads.synthetic.generators import JobShape, burst, lublin, poisson, spaced
from batkube.workloads.synthetic.lublin import ALL_JOBS

PUBLISHED = JobShape(parse_distribution(170), cpu=parse_distribution(1), walltime=parse_distribution(1000))


def test_a_burst_and_a_spaced_workload_are_the_published_ones(tmp_path: Path) -> None:
    for generated, path in (
        (burst(200, PUBLISHED), published.burst(tmp_path)),
        (spaced(200, seconds(10), PUBLISHED), published.spaced(tmp_path)),
    ):
        published_lublin = read_workload(path)
        assert sorted(
            (job.submit, job.size, job.walltime, job.requests, duration_of(job.profile)) for job in generated.jobs
        ) == sorted(
            (job.submit, job.size, job.walltime, job.requests, duration_of(job.profile))
            for job in published_lublin.jobs
        )


def duration_of(profile: object) -> int:
    assert isinstance(profile, Delay)
    return profile.duration


def test_jobs_of_equal_run_time_share_a_profile() -> None:
    generated = burst(50, JobShape(parse_distribution("choice:10,20")))

    assert len({id(job.profile) for job in generated.jobs}) == 2


def test_poisson_arrivals_have_the_requested_rate() -> None:
    generated = poisson(20_000, 0.5, PUBLISHED, seed=3)

    gaps = [(later.submit - job.submit) / 1e9 for job, later in itertools.pairwise(generated.jobs)]
    # An exponential distribution of mean 2 s: its deviation is 2 s too, and 1/e of the gaps are longer than 2 s.
    assert statistics.mean(gaps) == pytest.approx(2, abs=4 * 2 / math.sqrt(len(gaps)))
    assert statistics.pstdev(gaps) == pytest.approx(2, rel=0.05)
    assert sum(gap > 2 for gap in gaps) / len(gaps) == pytest.approx(1 / math.e, abs=0.02)


def test_random_values_are_clipped_to_valid_ones() -> None:
    extreme = JobShape(
        parse_distribution("normal:0,100"),
        size=parse_distribution("normal:0,5"),
        cpu=parse_distribution("normal:0,0.001"),
        memory_bytes=1 << 30,
        walltime=parse_distribution("normal:0,1"),
    )

    generated = burst(500, extreme)

    assert min(duration_of(job.profile) for job in generated.jobs) == 0
    assert min(job.size for job in generated.jobs) == 1
    assert min(job.walltime or 0 for job in generated.jobs) == 1_000_000
    assert min(dict(job.requests)["cpu"] for job in generated.jobs) == 1
    assert {dict(job.requests)["memory"] for job in generated.jobs} == {1 << 30}


def test_the_same_seed_gives_the_same_workload_and_another_seed_another_one() -> None:
    shape = JobShape(parse_distribution("exponential:60"))

    assert poisson(50, 1.0, shape, seed=5) == poisson(50, 1.0, shape, seed=5)
    assert poisson(50, 1.0, shape, seed=5) != poisson(50, 1.0, shape, seed=6)
    assert lublin(50, 64, seed=5) == lublin(50, 64, seed=5)
    assert lublin(50, 64, seed=5) != lublin(50, 64, seed=6)


def test_another_distribution_of_sizes_does_not_change_arrivals_and_run_times() -> None:
    plain = poisson(50, 1.0, JobShape(parse_distribution("exponential:60")))
    sized = poisson(50, 1.0, JobShape(parse_distribution("exponential:60"), size=parse_distribution("choice:1,2,4")))

    assert [(job.submit, job.profile) for job in plain.jobs] == [(job.submit, job.profile) for job in sized.jobs]
    assert {job.size for job in sized.jobs} == {1, 2, 4}


@pytest.mark.parametrize("count", [0, -3])
def test_generating_zero_jobs_is_rejected(count: int) -> None:
    for make in (
        lambda: burst(count, PUBLISHED),
        lambda: spaced(count, seconds(1), PUBLISHED),
        lambda: poisson(count, 1.0, PUBLISHED),
        lambda: lublin(count, 64),
    ):
        with pytest.raises(InputError, match="at least 1"):
            make()


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_an_arrival_rate_is_positive_and_finite(rate: float) -> None:
    with pytest.raises(InputError, match="arrival rate"):
        poisson(5, rate, PUBLISHED)


def test_times_beyond_the_longest_run_are_rejected() -> None:
    with pytest.raises(InputError, match="292 years"):
        burst(1, JobShape(parse_distribution(1e12)))
    with pytest.raises(InputError, match="292 years"):
        spaced(10**9, seconds(100), PUBLISHED)
    with pytest.raises(InputError, match="at least 2 processors"):
        lublin(5, 1)


def test_a_spacing_of_zero_is_a_burst() -> None:
    assert {job.submit for job in spaced(5, seconds(0), PUBLISHED).jobs} == {0}


@pytest.fixture(scope="module")
def published_lublin(shared_data: Path) -> Workload:
    return read_workload(shared_data / "swf" / "lublin_256.swf")


@pytest.fixture(scope="module")
def own_lublin() -> Workload:
    return lublin(10_000, 256, seed=1)


class TestLublin:
    """Comparison with a file of the authors' program for 256 processors, 10,000 jobs in both.

    Two samples differ. The tolerances are three standard errors of the difference of two such samples, each taken from
    the spread of 20 of our samples (seeds 1 to 20). Gaps and run times are compared by their logarithms, since a few
    huge values dominate their means: the mean gap is 771 s in the file and 930 ± 69 s in our samples.
    """

    def test_sizes_agree_with_the_authors_program(self, published_lublin: Workload, own_lublin: Workload) -> None:
        (their_sizes, our_sizes) = ([job.size for job in workload.jobs] for workload in (published_lublin, own_lublin))

        def share(sizes: list[int], condition: object) -> float:
            return sum(condition(size) for size in sizes) / len(sizes)  # type: ignore[operator]

        assert max(our_sizes) == max(their_sizes) == 256
        for condition in (
            lambda size: size == 1,
            lambda size: size & (size - 1) == 0,
            lambda size: size > 32,
            lambda size: size > 64,
        ):
            assert share(our_sizes, condition) == pytest.approx(share(their_sizes, condition), abs=0.016)
        means = [statistics.mean(map(math.log2, sizes)) for sizes in (our_sizes, their_sizes)]
        assert means[0] == pytest.approx(means[1], abs=0.088)

    def test_run_times_agree_with_the_authors_program(self, published_lublin: Workload, own_lublin: Workload) -> None:
        logs = [
            [math.log(max(1, duration_of(job.profile) / 1e9)) for job in workload.jobs]
            for workload in (own_lublin, published_lublin)
        ]

        assert statistics.mean(logs[0]) == pytest.approx(statistics.mean(logs[1]), abs=0.16)
        assert statistics.pstdev(logs[0]) == pytest.approx(statistics.pstdev(logs[1]), rel=0.018)
        assert max(logs[0]) < 12  # the model's limit

    def test_run_times_grow_with_size_as_in_the_authors_program(
        self, published_lublin: Workload, own_lublin: Workload
    ) -> None:
        def mean_log(workload: Workload, low: int, high: int) -> float:
            return statistics.mean(
                math.log(max(1, duration_of(job.profile) / 1e9)) for job in workload.jobs if low <= job.size <= high
            )

        for low, high, tolerance in ((1, 1, 0.21), (2, 15, 0.19), (32, 256, 0.31)):
            assert mean_log(own_lublin, low, high) == pytest.approx(
                mean_log(published_lublin, low, high), abs=tolerance
            )
        assert mean_log(own_lublin, 32, 256) > mean_log(own_lublin, 1, 1) + 1

    def test_gaps_agree_with_the_authors_program(self, published_lublin: Workload, own_lublin: Workload) -> None:
        logs = [
            [math.log(max(1, (later.submit - job.submit) / 1e9)) for job, later in itertools.pairwise(workload.jobs)]
            for workload in (own_lublin, published_lublin)
        ]

        assert statistics.mean(logs[0]) == pytest.approx(statistics.mean(logs[1]), abs=0.086)
        assert statistics.pstdev(logs[0]) == pytest.approx(statistics.pstdev(logs[1]), rel=0.043)

    def test_arrivals_have_the_daily_cycle_of_the_authors_program(
        self, published_lublin: Workload, own_lublin: Workload
    ) -> None:
        def by_hour(workload: Workload) -> list[int]:
            hours = [0] * 24
            for job in workload.jobs:
                hours[job.submit // (3600 * 10**9) % 24] += 1
            return hours

        assert statistics.correlation(by_hour(own_lublin), by_hour(published_lublin)) > 0.9

    def test_batch_and_interactive_jobs_are_mixed_by_arrival(self) -> None:
        generated = lublin(2000, 128, by_type=True)

        submits = [job.submit for job in generated.jobs]
        assert submits == sorted(submits)
        runs = {
            kind: statistics.median(duration_of(job.profile) for job in generated.jobs if job.user == kind)
            for kind in ("batch", "interactive")
        }
        assert runs["batch"] > runs["interactive"]

    @pytest.mark.parametrize("machines", [2, 3, 5, 100, 4096])
    def test_no_job_is_larger_than_the_machine(self, machines: int) -> None:
        sizes = [job.size for job in lublin(2000, machines).jobs]

        assert (min(sizes), max(sizes)) == (1, machines)

    def test_the_day_costs_one_point_per_bucket_on_average(self) -> None:
        # Therefore a gap of n points lasts n half hours on average, whatever the hour.
        arrivals = list(itertools.islice(ALL_JOBS.arrivals_s(_Always(math.log(1800.0))), 48))

        # One point per arrival: 48 arrivals take one day.
        assert arrivals[-1] == pytest.approx(24 * 3600, abs=2)
        assert arrivals == sorted(arrivals)


class _Always:
    """A stream of one value, in place of a random generator."""

    def __init__(self, value: float) -> None:
        self._value = value

    def gammavariate(self, alpha: float, beta: float) -> float:
        return self._value
