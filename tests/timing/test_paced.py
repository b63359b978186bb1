"""The rules of the 2020 prototype: when a cycle ends, and how far time jumps then."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.instants import Duration, Instant, seconds
from batkube.timing.paced import MILLISECOND, PUBLISHED, Pace, Pacing, round_up_to_millisecond

LENGTHS = st.integers(min_value=1, max_value=10**13).map(Duration)
PACINGS = st.builds(
    Pacing,
    timeout=LENGTHS,
    min_delay=LENGTHS,
    base_step=LENGTHS,
    max_step=LENGTHS,
    multiplier=st.floats(min_value=1, max_value=10),
    fast_forward=st.booleans(),
)


def _pace(pacing: Pacing = PUBLISHED, *, decided: bool = True) -> Pace:
    pace = Pace(pacing)
    if decided:
        pace.record_decision()
    return pace


def _steps(pace: Pace, count: int) -> list[float]:
    """Return the lengths of the next jumps, in seconds, while jobs are pending and no decision is made."""
    now, steps = Instant(0), []
    for _ in range(count):
        call = pace.jump_limit(now, jobs_wait=True)
        assert call is not None
        steps.append((call - now) / 1e9)
        pace.record_start(call)
        now = call
    return steps


def test_the_defaults_are_the_published_ones() -> None:
    assert (
        Pacing(
            timeout=seconds("0.02"),
            min_delay=seconds(0),
            base_step=seconds("0.1"),
            max_step=seconds(20),
            multiplier=2.0,
            crash_timeout=seconds(5),
            fast_forward=True,
            admission=False,
            replay=False,
        )
        == PUBLISHED
    )


def test_a_cycle_ends_with_the_first_decision() -> None:
    assert _pace().is_over(Duration(0), decided=True)


def test_a_cycle_without_a_decision_lasts_longer_than_the_timeout() -> None:
    assert not _pace().is_over(PUBLISHED.timeout, decided=False)
    assert _pace().is_over(Duration(PUBLISHED.timeout + 1), decided=False)


@given(PACINGS, LENGTHS, st.booleans())
def test_every_cycle_lasts_at_least_the_minimum_delay_and_ends_after_both_times(
    pacing: Pacing, elapsed: Duration, decided: bool
) -> None:
    over = Pace(pacing).is_over(elapsed, decided)
    if elapsed < pacing.min_delay:
        assert not over
    if elapsed > max(pacing.min_delay, pacing.timeout):
        assert over


def test_until_the_first_decision_steps_are_a_fifth_of_the_base() -> None:
    assert _steps(_pace(decided=False), 3) == [0.02] * 3


def test_steps_double_up_to_the_largest() -> None:
    assert _steps(_pace(), 9) == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20, 20]


def test_a_decision_resets_the_step() -> None:
    pace = _pace()
    _steps(pace, 5)
    pace.record_decision()
    assert _steps(pace, 2) == [0.2, 0.4]


def test_the_largest_step_bounds_the_first_one_too() -> None:
    assert _steps(_pace(replace(PUBLISHED, max_step=seconds("0.01"))), 2) == [0.01, 0.01]


def test_time_jumps_without_limit_only_while_no_job_is_pending_and_if_allowed() -> None:
    assert _pace().jump_limit(Instant(0), jobs_wait=False) is None
    assert _pace().jump_limit(Instant(0), jobs_wait=True) is not None
    assert _pace(replace(PUBLISHED, fast_forward=False)).jump_limit(Instant(0), jobs_wait=False) is not None
    assert _pace(decided=False).jump_limit(Instant(0), jobs_wait=False) is not None


def test_an_earlier_requested_cycle_comes_first() -> None:
    pace = _pace()
    early = pace.jump_limit(Instant(0), jobs_wait=True)
    assert early == seconds("0.2")

    # An event came first; the new step would lead beyond the requested cycle.
    assert pace.jump_limit(Instant(seconds("0.1")), jobs_wait=True) == early
    pace.record_start(early)
    assert pace.jump_limit(early, jobs_wait=False) is None


@given(PACINGS, st.lists(st.tuples(LENGTHS, st.booleans(), st.booleans()), max_size=30))
def test_time_never_jumps_back_nor_further_than_the_largest_step_while_jobs_are_pending(
    pacing: Pacing, cycles: list[tuple[Duration, bool, bool]]
) -> None:
    pace, now = Pace(pacing), Instant(0)
    for elapsed, decided, jobs_wait in cycles:
        if decided:
            pace.record_decision()
        left = Instant(now + elapsed)
        call = pace.jump_limit(left, jobs_wait)
        if call is None:
            assert not jobs_wait
            call = left
        assert call - left <= max(pacing.max_step, pacing.base_step // 5)
        now = max(left, call)
        pace.record_start(now)


@given(st.integers(min_value=0, max_value=2**62))
def test_times_are_rounded_up_to_milliseconds(ns: int) -> None:
    whole = round_up_to_millisecond(ns)
    assert whole % MILLISECOND == 0
    assert 0 <= whole - ns < MILLISECOND
