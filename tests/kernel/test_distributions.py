"""Distributions: parsing of texts and mappings, and the values drawn."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.distributions import Distribution, parse_distribution


def draws(spec: str, count: int = 20_000) -> list[float]:
    rng = random.Random(7)
    distribution = parse_distribution(spec)
    return [distribution.draw(rng) for _ in range(count)]


@pytest.mark.parametrize("spec", [170, 170.0, "170", " constant:170 ", {"name": "constant", "value": 170}])
def test_a_number_is_a_constant(spec: object) -> None:
    distribution = parse_distribution(spec)  # type: ignore[arg-type]

    assert distribution == Distribution("constant", (170.0,))
    assert distribution.draw(random.Random(1)) == 170.0


@pytest.mark.parametrize(
    ("spec", "mean", "deviation"),
    [
        ("uniform:10,20", 15, 10 / math.sqrt(12)),
        ("exponential:60", 60, 60),
        ("normal:50,5", 50, 5),
        ("gamma:4,2.5", 10, 5),
        ("weibull:1,30", 30, 30),  # with shape 1 a Weibull is exponential
        ("choice:1,2,3,4", 2.5, math.sqrt(1.25)),
        ("empirical:0,1,3", 1.25, math.sqrt(7 / 3 - 1.25**2)),
        ("lognormal:100,0.5", 100 * math.exp(0.125), 100 * math.exp(0.125) * math.sqrt(math.exp(0.25) - 1)),
    ],
)
def test_draws_have_the_expected_mean_and_deviation(spec: str, mean: float, deviation: float) -> None:
    values = draws(spec)

    # 20,000 draws: the mean of the mean is off by less than four standard errors.
    assert abs(statistics.mean(values) - mean) < 4 * deviation / math.sqrt(len(values))
    assert statistics.pstdev(values) == pytest.approx(deviation, rel=0.05)


def test_the_first_parameter_of_a_lognormal_is_its_median() -> None:
    assert statistics.median(draws("lognormal:100,1.5")) == pytest.approx(100, rel=0.05)


def test_the_shape_of_a_weibull_comes_before_its_scale() -> None:
    # P(X > scale) is 1/e whatever the shape.
    values = draws("weibull:3,40")

    assert sum(value > 40 for value in values) / len(values) == pytest.approx(1 / math.e, abs=0.02)


def test_a_choice_draws_only_its_values_and_all_of_them() -> None:
    assert sorted(set(draws("choice:1,2,8"))) == [1.0, 2.0, 8.0]


def test_the_same_stream_gives_the_same_numbers() -> None:
    assert draws("lognormal:10,1", 50) == draws("lognormal:10,1", 50)


def test_a_mapping_names_parameters_or_lists_values() -> None:
    assert parse_distribution({"name": "uniform", "high": 20, "low": 10}) == parse_distribution("uniform:10,20")
    assert parse_distribution({"name": "choice", "values": [1, 2]}) == parse_distribution("choice:1,2")


def test_parsing_a_distribution_returns_it_unchanged() -> None:
    distribution = parse_distribution("gamma:2,3")

    assert parse_distribution(distribution) is distribution


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ("gauss:1,2", "'gauss' is not a distribution"),
        ("", "not a distribution"),
        ("uniform", "takes 2 parameters"),
        ("uniform:1", "takes 2 parameters"),
        ("uniform:3,1", "low is larger than high"),
        ("uniform:1,x", "'x' is not a finite number"),
        ("exponential:0", "larger than 0"),
        ("exponential:nan", "not a finite number"),
        ("constant:inf", "not a finite number"),
        ("normal:1,-1", "negative"),
        ("lognormal:0,1", "median must be larger than 0"),
        ("weibull:-1,1", "larger than 0"),
        ("choice:", "at least one value"),
        (True, "not a distribution"),
        (None, "not a distribution"),
        (math.nan, "not a finite number"),
        ({"low": 1}, "needs a name"),
        ({"name": "uniform", "low": 1}, "takes low, high"),
        ({"name": "uniform", "low": 1, "high": 2, "mean": 3}, "takes low, high"),
        ({"name": "choice", "values": "12"}, "list"),
        ({"name": "choice", "values": [1, True]}, "not a finite number"),
    ],
)
def test_an_invalid_distribution_is_rejected_with_a_reason(spec: object, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        parse_distribution(spec)  # type: ignore[arg-type]


positive = st.floats(min_value=1e-3, max_value=1e6)


@given(
    st.one_of(
        st.tuples(st.sampled_from(["weibull", "gamma", "lognormal"]), st.tuples(positive, positive)),
        st.tuples(st.sampled_from(["constant", "exponential"]), st.tuples(positive)),
        st.tuples(st.just("choice"), st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=9).map(tuple)),
    )
)
def test_a_description_round_trips(spec: tuple[str, tuple[float, ...]]) -> None:
    distribution = Distribution(*spec)

    assert parse_distribution(distribution.describe()) == distribution
