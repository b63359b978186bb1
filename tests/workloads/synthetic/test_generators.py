"""Generated workloads: exact where nothing is drawn, and like their models where something is."""

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
    for made, path in (
        (burst(200, PUBLISHED), published.burst(tmp_path)),
        (spaced(200, seconds(10), PUBLISHED), published.spaced(tmp_path)),
    ):
        theirs = read_workload(path)
        assert sorted(
            (job.submit, job.size, job.walltime, job.requests, duration_of(job.profile)) for job in made.jobs
        ) == sorted((job.submit, job.size, job.walltime, job.requests, duration_of(job.profile)) for job in theirs.jobs)


def duration_of(profile: object) -> int:
    assert isinstance(profile, Delay)
    return profile.duration


def test_jobs_of_equal_run_time_share_a_profile() -> None:
    made = burst(50, JobShape(parse_distribution("choice:10,20")))

    assert len({id(job.profile) for job in made.jobs}) == 2


def test_poisson_arrivals_have_the_rate_asked_for() -> None:
    made = poisson(20_000, 0.5, PUBLISHED, seed=3)

    gaps = [(later.submit - job.submit) / 1e9 for job, later in itertools.pairwise(made.jobs)]
    # An exponential distribution of mean 2 s: its deviation is 2 s too, and 1/e of the gaps are longer than 2 s.
    assert statistics.mean(gaps) == pytest.approx(2, abs=4 * 2 / math.sqrt(len(gaps)))
    assert statistics.pstdev(gaps) == pytest.approx(2, rel=0.05)
    assert sum(gap > 2 for gap in gaps) / len(gaps) == pytest.approx(1 / math.e, abs=0.02)


def test_what_is_drawn_stays_within_what_can_be() -> None:
    wild = JobShape(
        parse_distribution("normal:0,100"),
        size=parse_distribution("normal:0,5"),
        cpu=parse_distribution("normal:0,0.001"),
        memory_bytes=1 << 30,
        walltime=parse_distribution("normal:0,1"),
    )

    made = burst(500, wild)

    assert min(duration_of(job.profile) for job in made.jobs) == 0
    assert min(job.size for job in made.jobs) == 1
    assert min(job.walltime or 0 for job in made.jobs) == 1_000_000
    assert min(dict(job.requests)["cpu"] for job in made.jobs) == 1
    assert {dict(job.requests)["memory"] for job in made.jobs} == {1 << 30}


def test_the_same_seed_gives_the_same_workload_and_another_another() -> None:
    shape = JobShape(parse_distribution("exponential:60"))

    assert poisson(50, 1.0, shape, seed=5) == poisson(50, 1.0, shape, seed=5)
    assert poisson(50, 1.0, shape, seed=5) != poisson(50, 1.0, shape, seed=6)
    assert lublin(50, 64, seed=5) == lublin(50, 64, seed=5)
    assert lublin(50, 64, seed=5) != lublin(50, 64, seed=6)


def test_another_distribution_of_sizes_leaves_arrivals_and_run_times_alone() -> None:
    plain = poisson(50, 1.0, JobShape(parse_distribution("exponential:60")))
    sized = poisson(50, 1.0, JobShape(parse_distribution("exponential:60"), size=parse_distribution("choice:1,2,4")))

    assert [(job.submit, job.profile) for job in plain.jobs] == [(job.submit, job.profile) for job in sized.jobs]
    assert {job.size for job in sized.jobs} == {1, 2, 4}


@pytest.mark.parametrize("count", [0, -3])
def test_no_jobs_cannot_be_generated(count: int) -> None:
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


def test_times_beyond_a_run_are_refused() -> None:
    with pytest.raises(InputError, match="292 years"):
        burst(1, JobShape(parse_distribution(1e12)))
    with pytest.raises(InputError, match="292 years"):
        spaced(10**9, seconds(100), PUBLISHED)
    with pytest.raises(InputError, match="at least 2 processors"):
        lublin(5, 1)


def test_a_spacing_of_zero_is_a_burst() -> None:
    assert {job.submit for job in spaced(5, seconds(0), PUBLISHED).jobs} == {0}


@pytest.fixture(scope="module")
def theirs(shared_data: Path) -> Workload:
    return read_workload(shared_data / "swf" / "lublin_256.swf")


@pytest.fixture(scope="module")
def ours() -> Workload:
    return lublin(10_000, 256, seed=1)


class TestLublin:
    """Against a file that the authors' program made for 256 processors, 10,000 jobs like ours.

    Two samples differ. The tolerances are three standard errors of the difference of two such samples, each taken from
    the spread of 20 of ours (seeds 1 to 20). Gaps and run times are compared by their logarithms, since their means are
    ruled by a few huge values: the mean gap is 771 s in the file and 930 ± 69 s in ours.
    """

    def test_sizes_agree(self, theirs: Workload, ours: Workload) -> None:
        (their_sizes, our_sizes) = ([job.size for job in workload.jobs] for workload in (theirs, ours))

        def share(sizes: list[int], wanted: object) -> float:
            return sum(wanted(size) for size in sizes) / len(sizes)  # type: ignore[operator]

        assert max(our_sizes) == max(their_sizes) == 256
        for wanted in (
            lambda size: size == 1,
            lambda size: size & (size - 1) == 0,
            lambda size: size > 32,
            lambda size: size > 64,
        ):
            assert share(our_sizes, wanted) == pytest.approx(share(their_sizes, wanted), abs=0.016)
        means = [statistics.mean(map(math.log2, sizes)) for sizes in (our_sizes, their_sizes)]
        assert means[0] == pytest.approx(means[1], abs=0.088)

    def test_run_times_agree(self, theirs: Workload, ours: Workload) -> None:
        logs = [
            [math.log(max(1, duration_of(job.profile) / 1e9)) for job in workload.jobs] for workload in (ours, theirs)
        ]

        assert statistics.mean(logs[0]) == pytest.approx(statistics.mean(logs[1]), abs=0.16)
        assert statistics.pstdev(logs[0]) == pytest.approx(statistics.pstdev(logs[1]), rel=0.018)
        assert max(logs[0]) < 12  # the model's limit

    def test_larger_jobs_run_longer_alike(self, theirs: Workload, ours: Workload) -> None:
        def mean_log(workload: Workload, low: int, high: int) -> float:
            return statistics.mean(
                math.log(max(1, duration_of(job.profile) / 1e9)) for job in workload.jobs if low <= job.size <= high
            )

        for low, high, tolerance in ((1, 1, 0.21), (2, 15, 0.19), (32, 256, 0.31)):
            assert mean_log(ours, low, high) == pytest.approx(mean_log(theirs, low, high), abs=tolerance)
        assert mean_log(ours, 32, 256) > mean_log(ours, 1, 1) + 1

    def test_gaps_between_arrivals_agree(self, theirs: Workload, ours: Workload) -> None:
        logs = [
            [math.log(max(1, (later.submit - job.submit) / 1e9)) for job, later in itertools.pairwise(workload.jobs)]
            for workload in (ours, theirs)
        ]

        assert statistics.mean(logs[0]) == pytest.approx(statistics.mean(logs[1]), abs=0.086)
        assert statistics.pstdev(logs[0]) == pytest.approx(statistics.pstdev(logs[1]), rel=0.043)

    def test_the_day_has_the_same_cycle(self, theirs: Workload, ours: Workload) -> None:
        def by_hour(workload: Workload) -> list[int]:
            hours = [0] * 24
            for job in workload.jobs:
                hours[job.submit // (3600 * 10**9) % 24] += 1
            return hours

        assert statistics.correlation(by_hour(ours), by_hour(theirs)) > 0.9

    def test_batch_and_interactive_jobs_are_mixed_by_arrival(self) -> None:
        made = lublin(2000, 128, by_type=True)

        submits = [job.submit for job in made.jobs]
        assert submits == sorted(submits)
        runs = {
            kind: statistics.median(duration_of(job.profile) for job in made.jobs if job.user == kind)
            for kind in ("batch", "interactive")
        }
        assert runs["batch"] > runs["interactive"]

    @pytest.mark.parametrize("machines", [2, 3, 5, 100, 4096])
    def test_no_job_is_larger_than_the_machine(self, machines: int) -> None:
        sizes = [job.size for job in lublin(2000, machines).jobs]

        assert (min(sizes), max(sizes)) == (1, machines)

    def test_the_day_costs_one_point_per_bucket_on_average(self) -> None:
        # So that a gap of n points lasts n half hours on average, whatever the hour.
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
