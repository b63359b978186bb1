"""Conversions change what they document, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Instant, seconds
from batkube.workloads.delay_profiles import DelayProfiles
from batkube.workloads.model import WHOLE_GANG, Composed, Delay, GangTerms, Job, ParallelHomogeneous, Profile, Workload
from batkube.workloads.run_times import run_time
from batkube.workloads.transformations import conversions, selection

MakeWorkload = Callable[..., Workload]
FLOPS = ParallelHomogeneous(name="flops", cpu_flops=1e9, com_bytes=0)


def with_profile(profile: Profile) -> Workload:
    job = Job(workload="w0", name="1", submit=Instant(0), size=1, profile=profile)
    return Workload(name="w0", source="test", jobs=[job])


def submits_s(workload: Workload) -> list[float]:
    return [job.submit / 1e9 for job in workload.jobs]


def test_shifting_moves_the_first_job_to_zero(delays_at: MakeWorkload) -> None:
    shifted = conversions.shift_to_zero(delays_at((5, 1, 1), (7.5, 1, 1), (100, 1, 1)))

    assert submits_s(shifted) == [0, 2.5, 95]


def test_a_window_includes_its_begin_but_not_its_end(delays_at: MakeWorkload) -> None:
    workload = delays_at((0, 1, 1), (10, 1, 1), (15, 1, 1), (20, 1, 1))

    inside = selection.window(workload, Instant(seconds(10)), Instant(seconds(20)))
    onwards = selection.window(workload, Instant(seconds(10)), None)

    assert (submits_s(inside), submits_s(onwards)) == ([10, 15], [10, 15, 20])


def test_an_empty_window_is_rejected_with_the_times_of_the_jobs(delays_at: MakeWorkload) -> None:
    with pytest.raises(InputError, match="no job is submitted in the time window") as error:
        selection.window(delays_at((5, 1, 1), (90, 1, 1)), Instant(seconds(10)), Instant(seconds(20)))

    assert error.value.remedy == "its 2 jobs are submitted from 5 s to 90 s"


def test_the_first_jobs_are_selected(delays_at: MakeWorkload) -> None:
    workload = delays_at((0, 1, 1), (1, 2, 1), (2, 3, 1))

    assert [job.name for job in selection.first_jobs(workload, 2).jobs] == ["0", "1"]
    assert selection.first_jobs(workload, 9).jobs == workload.jobs


def test_jobs_with_run_time_zero_can_be_dropped(delays_at: MakeWorkload) -> None:
    remaining = selection.drop_zero_run_times(delays_at((0, 0, 1), (1, 2, 1), (2, 0, 1)))

    assert [job.name for job in remaining.jobs] == ["1"]


def test_dropping_zero_run_times_is_rejected_if_no_job_remains(delays_at: MakeWorkload) -> None:
    with pytest.raises(InputError, match="no job has a run time above 0"):
        selection.drop_zero_run_times(delays_at((0, 0, 1)))


def test_trimming_shortens_profiles_and_keeps_their_names_and_sharing(delays_at: MakeWorkload) -> None:
    trimmed = conversions.trim_run_times(delays_at((0, 50, 1), (1, 5000, 1), (2, 5000, 1)), seconds(3600))

    short, long, other = (job.profile for job in trimmed.jobs)
    assert short == Delay(name="delay50", duration=seconds(50))
    assert long == Delay(name="delay5000", duration=seconds(3600))
    assert long is other
    assert trimmed.notes == ()


def test_jobs_that_cannot_be_trimmed_are_noted() -> None:
    long = Composed(name="c", parts=(Delay(name="d", duration=seconds(10)),), repeat=9)

    for profile, expected in ((FLOPS, 1), (long, 1)):
        notes = conversions.trim_run_times(with_profile(profile), seconds(60)).notes
        assert notes == ((conversions.NOT_TRIMMED, expected),)
    assert conversions.trim_run_times(with_profile(long), seconds(90)).notes == ()


def test_doubling_the_arrival_rate_halves_the_distances_and_keeps_run_times(delays_at: MakeWorkload) -> None:
    workload = delays_at((10, 7, 1), (20, 7, 1), (50, 7, 1))

    scaled = conversions.scale_arrival_rate(workload, Fraction(2))

    assert submits_s(scaled) == [10, 15, 30]
    assert [job.profile for job in scaled.jobs] == [job.profile for job in workload.jobs]


@pytest.mark.parametrize("factor", [Fraction(0), Fraction(-1)])
def test_a_rate_must_be_positive(delays_at: MakeWorkload, factor: Fraction) -> None:
    with pytest.raises(InputError, match="larger than 0"):
        conversions.scale_arrival_rate(delays_at((0, 1, 1)), factor)


def test_compressed_time_keeps_the_load(delays_at: MakeWorkload) -> None:
    workload = conversions.walltimes_from_run_times(delays_at((5, 120, 2), (65, 60, 1)), Fraction(2))

    compressed = conversions.compress_time(workload, Fraction(60))

    assert [job.submit for job in compressed.jobs] == [seconds(5), seconds(6)]
    assert [job.walltime for job in compressed.jobs] == [seconds(4), seconds(2)]
    assert [run_time(job.profile) for job in compressed.jobs] == [seconds(2), seconds(1)]


def test_a_rate_that_exceeds_the_longest_run_is_rejected(delays_at: MakeWorkload) -> None:
    with pytest.raises(InputError, match="292 years"):
        conversions.scale_arrival_rate(delays_at((0, 1, 1), (10, 1, 1)), Fraction(1, 10**12))


def test_processors_become_machines_rounded_up(delays_at: MakeWorkload) -> None:
    packed = conversions.pack_machines(delays_at((0, 1, 1), (0, 1, 4), (0, 1, 5), size_machines=9), 4)

    assert [job.size for job in packed.jobs] == [1, 1, 2]
    assert packed.size_machines == 3


def test_gang_terms_are_removed_with_a_note_if_the_size_changes() -> None:
    gang = GangTerms(min_member=3)
    jobs = [
        Job(workload="w0", name=name, submit=Instant(0), size=size, profile=FLOPS, gang=gang)
        for name, size in (("small", 4), ("large", 9))
    ]

    clipped = conversions.clip_sizes(Workload(name="w0", source="test", jobs=jobs), 4)

    assert [(job.size, job.gang) for job in clipped.jobs] == [(4, gang), (4, WHOLE_GANG)]
    assert (conversions.GANG_TERMS_LOST, 1) in clipped.notes


def test_normalised_cpu_is_a_share_of_the_largest_job(delays_at: MakeWorkload) -> None:
    workload = delays_at((0, 1, 1024), (0, 1, 32), (0, 1, 600), (0, 1, 1), requests=(("cpu", 7), ("memory", 5)))

    normalised = conversions.normalise_cpu(workload, 6000, 5900)

    # 6 · 32/1024 = 0.1875 rounds up to 188 millicores; 6 · 1/1024 is 5.86.
    assert [dict(job.requests)["cpu"] for job in normalised.jobs] == [5900, 188, 3516, 6]
    assert {dict(job.requests)["memory"] for job in normalised.jobs} == {5}
    assert {job.size for job in normalised.jobs} == {1}


def test_normalised_cpu_is_at_least_a_millicore(delays_at: MakeWorkload) -> None:
    normalised = conversions.normalise_cpu(delays_at((0, 1, 100_000), (0, 1, 1)), 6000)

    assert normalised.jobs[1].requests == (("cpu", 1),)


def test_walltimes_are_scaled_set_and_removed(delays_at: MakeWorkload) -> None:
    workload = delays_at((0, 10, 1), (0, 0, 1), walltime=seconds(100))

    scaled = conversions.scale_walltimes(workload, Fraction(3, 2))
    assert [job.walltime for job in scaled.jobs] == [seconds(150)] * 2

    from_run = conversions.walltimes_from_run_times(workload, Fraction(6, 5))
    assert [job.walltime for job in from_run.jobs] == [seconds(12), seconds(1)]

    assert [job.walltime for job in conversions.without_walltimes(workload).jobs] == [None, None]
    unlimited = conversions.without_walltimes(workload)
    assert conversions.scale_walltimes(unlimited, Fraction(2)) == unlimited


def test_a_job_whose_run_time_is_not_fixed_gets_no_walltime_from_it() -> None:
    assert conversions.walltimes_from_run_times(with_profile(FLOPS), Fraction(2)).notes == (
        (conversions.RUN_TIME_UNKNOWN, 1),
    )


def test_an_option_sets_the_scheduler_of_all_jobs(delays_at: MakeWorkload) -> None:
    changed = conversions.with_scheduler(delays_at((0, 1, 1), (1, 1, 1)), "default")

    assert {job.scheduler for job in changed.jobs} == {"default"}


def test_the_run_time_of_a_composed_profile_is_that_of_its_parts() -> None:
    ten = Delay(name="ten", duration=seconds(10))

    assert run_time(Composed(name="c", parts=(ten, ten), repeat=3)) == seconds(60)
    assert run_time(Composed(name="c", parts=(ten, FLOPS))) is None


times = st.integers(min_value=0, max_value=10**15)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    delays = DelayProfiles()
    rows = draw(st.lists(st.tuples(times, times, st.integers(1, 2000)), min_size=1, max_size=20))
    jobs = [
        Job(
            workload="w0", name=str(number), submit=Instant(submit), size=size, profile=delays.profile_for(seconds(run))
        )
        for number, (submit, run, size) in enumerate(sorted(rows))
        for run in [run // 10**9]
    ]
    return Workload(name="w0", source="test", jobs=jobs, size_machines=draw(st.none() | st.integers(1, 5000)))


@given(workloads())
def test_shifting_is_idempotent(workload: Workload) -> None:
    once = conversions.shift_to_zero(workload)

    assert conversions.shift_to_zero(once) == once


@given(workloads(), st.fractions(min_value=Fraction(1, 1000), max_value=1000))
def test_scaling_the_arrival_rate_keeps_the_order_of_submissions(workload: Workload, factor: Fraction) -> None:
    submits = [job.submit for job in conversions.scale_arrival_rate(workload, factor).jobs]

    assert submits == sorted(submits)
    assert submits[0] == workload.jobs[0].submit


@given(workloads(), st.integers(1, 64))
def test_packed_machines_have_room_for_all_processors_with_less_than_one_machine_unused(
    workload: Workload, cores: int
) -> None:
    packed = conversions.pack_machines(workload, cores)

    for before, after in zip(workload.jobs, packed.jobs, strict=True):
        assert before.size <= after.size * cores < before.size + cores


@given(workloads(), times)
def test_a_window_and_its_complement_contain_every_job(workload: Workload, at: int) -> None:
    begin, end = workload.jobs[0].submit, workload.jobs[-1].submit
    middle = Instant(min(max(at, begin + 1), end))
    if begin == end:
        return

    before = selection.window(workload, begin, middle)
    after = selection.window(workload, middle, None)

    assert [*before.jobs, *after.jobs] == list(workload.jobs)


@given(workloads(), st.integers(1, 64_000))
def test_normalised_cpu_grows_with_size_and_the_largest_job_gets_all(workload: Workload, largest_milli: int) -> None:
    normalised = conversions.normalise_cpu(workload, largest_milli)

    pairs = sorted(
        (before.size, dict(after.requests)["cpu"]) for before, after in zip(workload.jobs, normalised.jobs, strict=True)
    )
    cpus = [cpu for _, cpu in pairs]
    assert cpus == sorted(cpus)
    assert cpus[-1] == largest_milli
