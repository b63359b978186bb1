"""Confidence intervals."""

from __future__ import annotations

import math
import statistics

import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

from batkube.kernel.streams import Streams
from batkube.outputs.measures.intervals import (
    difference_of,
    paired_difference_of,
    sample_of,
    share_of,
    student_quantile,
)

#: From printed tables (Fisher and Yates; 97.5 %, 95 % and 99.5 % quantiles), with the decimals given there.
TABLE = {
    1: (12.706, 6.314, 63.657),
    2: (4.303, 2.920, 9.925),
    3: (3.182, 2.353, 5.841),
    4: (2.776, 2.132, 4.604),
    5: (2.571, 2.015, 4.032),
    9: (2.262, 1.833, 3.250),
    10: (2.228, 1.812, 3.169),
    19: (2.093, 1.729, 2.861),
    29: (2.045, 1.699, 2.756),
    60: (2.000, 1.671, 2.660),
    120: (1.980, 1.658, 2.617),
    math.inf: (1.960, 1.645, 2.576),
}
#: Student's own data: hours of sleep gained with two drugs by ten patients each (Biometrika 6, 1908, p. 20).
FIRST_DRUG = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SECOND_DRUG = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]

samples = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12)


@pytest.mark.parametrize("freedom", TABLE)
def test_the_quantiles_are_those_of_printed_tables(freedom: float) -> None:
    quantiles = [student_quantile(freedom, probability) for probability in (0.975, 0.95, 0.995)]

    assert [round(value, 3) for value in quantiles] == list(TABLE[freedom])


def test_one_and_two_degrees_of_freedom_have_closed_forms() -> None:
    assert student_quantile(1) == pytest.approx(math.tan(math.pi * 0.475), rel=1e-13)
    alpha = 4 * 0.975 * 0.025
    assert student_quantile(2) == pytest.approx(2 * 0.475 * math.sqrt(2 / alpha), rel=1e-13)


@given(st.floats(0.5, 1e8), st.floats(1.001, 3))
def test_more_degrees_of_freedom_give_narrower_intervals(freedom: float, more: float) -> None:
    assert student_quantile(freedom) >= student_quantile(freedom * more) - 1e-9
    assert student_quantile(freedom) >= student_quantile(math.inf)


def test_quantiles_are_continuous_where_the_computation_changes() -> None:
    assert student_quantile(1e6) == pytest.approx(student_quantile(1e6 * (1 + 1e-9)), abs=2e-9)


def test_the_interval_depends_on_the_spread_and_not_on_the_mean() -> None:
    """A published figure has mean/√n instead of sd/√n."""
    near, far = sample_of([1, 2, 3, 4, 5]), sample_of([1001, 1002, 1003, 1004, 1005])

    assert near.half == pytest.approx(2.776445 * math.sqrt(2.5) / math.sqrt(5), rel=1e-6)
    assert far.half == pytest.approx(near.half)
    assert (far.low, far.mean, far.high) == pytest.approx((1003 - near.half, 1003, 1003 + near.half))


def test_95_percent_of_intervals_contain_the_mean_and_fewer_with_1_96() -> None:
    stream = Streams(1).named("coverage")
    several = [sample_of([stream.gauss(10, 3) for _ in range(5)]) for _ in range(4000)]

    coverage = sum(one.low <= 10 <= one.high for one in several) / len(several)
    with_1_96 = sum(abs(one.mean - 10) <= 1.96 * (one.sd or 0) / math.sqrt(5) for one in several) / len(several)

    assert coverage == pytest.approx(0.95, abs=0.01)
    assert with_1_96 < 0.9


def test_one_run_has_no_interval_and_equal_runs_have_an_empty_one() -> None:
    one, equal = sample_of([0.1]), sample_of([0.1, 0.1, 0.1])

    assert (one.has_interval, one.sd) == (False, None)
    assert (equal.has_interval, equal.mean, equal.sd, equal.half) == (True, 0.1, 0.0, 0.0)


@given(samples, st.floats(-1e3, 1e3), st.floats(0.01, 100))
def test_the_interval_is_shifted_and_scaled_with_the_values(values: list[float], shift: float, factor: float) -> None:
    before, after = sample_of(values), sample_of([value * factor + shift for value in values])

    size = max(abs(value) for value in values) * factor + abs(shift) + 1
    assert after.mean == pytest.approx(before.mean * factor + shift, abs=size * 1e-9)
    assert after.half == pytest.approx(before.half * factor, abs=size * 1e-6)


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.inf]])
def test_a_sample_needs_finite_values(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        sample_of(values)


def test_the_difference_of_students_sleep_data_is_that_of_r() -> None:
    """R's t.test(extra ~ group, data = sleep): df 17.776, interval -3.3654832 to 0.2054832 (first minus second)."""
    difference = difference_of(sample_of(FIRST_DRUG), sample_of(SECOND_DRUG))

    assert difference is not None
    assert difference.value == pytest.approx(1.58)
    assert difference.degrees_of_freedom == pytest.approx(17.776, abs=5e-4)
    assert (difference.value - difference.half, difference.value + difference.half) == pytest.approx(
        (-0.2054832, 3.3654832), abs=5e-8
    )
    assert not difference.is_clear


def test_the_paired_difference_of_students_sleep_data_is_that_of_r() -> None:
    """R's t.test(…, paired = TRUE): df 9, interval -2.4598858 to -0.7001142 (first minus second)."""
    difference = paired_difference_of(FIRST_DRUG, SECOND_DRUG)

    assert difference is not None
    assert (difference.pairs, difference.degrees_of_freedom) == (10, 9)
    assert (difference.value - difference.half, difference.value + difference.half) == pytest.approx(
        (0.7001142, 2.4598858), abs=5e-8
    )
    assert difference.is_clear


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=2, max_size=30))
def test_paired_differences_are_scipys(pairs: list[tuple[float, float]]) -> None:
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    assume(statistics.stdev(b - a for a, b in pairs) > 1e-3)
    interval = scipy.stats.ttest_rel(second, first).confidence_interval(0.95)

    difference = paired_difference_of(first, second)

    assert difference is not None
    assert (difference.value - difference.half, difference.value + difference.half) == pytest.approx(
        (interval.low, interval.high), rel=1e-6, abs=1e-6
    )


def test_fewer_than_two_pairs_have_no_difference() -> None:
    assert paired_difference_of([1.0], [2.0]) is None
    assert paired_difference_of([], []) is None


@given(samples, samples)
def test_a_difference_is_antisymmetric(first: list[float], second: list[float]) -> None:
    forward, backward = (
        difference_of(sample_of(first), sample_of(second)),
        difference_of(sample_of(second), sample_of(first)),
    )

    assert forward is not None
    assert backward is not None
    assert forward.value == -backward.value
    assert forward.half == pytest.approx(backward.half, rel=1e-9)
    assert forward.is_clear == backward.is_clear
    least = min(len(first), len(second)) - 1
    assert (
        forward.degrees_of_freedom == math.inf
        or least - 1e-9 <= forward.degrees_of_freedom <= len(first) + len(second) - 2 + 1e-6
    )


def test_the_difference_of_constant_samples_is_clear_or_zero() -> None:
    constant, other = sample_of([5.0, 5.0]), sample_of([6.0, 6.0])

    same, different = difference_of(constant, constant), difference_of(constant, other)
    assert same is not None
    assert different is not None
    assert (same.is_clear, different.is_clear) == (False, True)
    assert difference_of(constant, sample_of([6.0])) is None


def test_shares_have_wilsons_interval() -> None:
    """Values of the formula by hand for 0, 8 and 10 of 10 (E. B. Wilson 1927)."""
    assert [round(value, 4) for value in (share_of(8, 10).low, share_of(8, 10).high)] == [0.4902, 0.9433]
    assert (share_of(0, 10).low, round(share_of(0, 10).high, 4)) == (0.0, 0.2775)
    assert (round(share_of(10, 10).low, 4), share_of(10, 10).high) == (0.7225, 1.0)


@given(st.integers(1, 500), st.data())
def test_the_interval_of_a_share_contains_it_and_is_within_0_and_1(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))

    share, opposite = share_of(successes, n), share_of(n - successes, n)

    assert 0 <= share.low <= share.mean <= share.high <= 1
    assert share.low < share.high
    assert share.low == pytest.approx(1 - opposite.high)
