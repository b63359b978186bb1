"""A fit of each family recovers the parameters, and its distribution function is that of the draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.calibration.families import FAMILIES, QUANTILE_COUNT
from batkube.calibration.fitting import fit
from batkube.calibration.recorded_runs import Floats
from batkube.calibration.steps import StepSample
from batkube.kernel.distributions import parse_distribution
from batkube.kernel.streams import Streams

DISTRIBUTIONS = ["uniform:1,3", "exponential:2", "normal:5,0.5", "lognormal:0.5,0.6", "weibull:2,3", "gamma:4,0.25"]
SAMPLES = st.lists(st.floats(0, 100), min_size=40, max_size=80).map(lambda values: np.sort(np.array(values)))


def draws(text: str, count: int = 4000) -> Floats:
    rng = Streams(1).named(text)
    return np.sort(np.array([parse_distribution(text).draw(rng) for _ in range(count)]))


@pytest.mark.parametrize("text", DISTRIBUTIONS)
def test_a_fit_recovers_the_parameters_of_its_family(text: str) -> None:
    expected = parse_distribution(text)

    distribution = FAMILIES[expected.name].fit(draws(text))

    assert distribution.parameters == pytest.approx(expected.parameters, rel=0.06)


@pytest.mark.parametrize("text", [*DISTRIBUTIONS, "empirical:0,1,4,9", "gamma:0.4,2", "gamma:900,0.01"])
def test_the_distribution_function_is_that_of_the_draws(text: str) -> None:
    expected, values = parse_distribution(text), draws(text)
    family = FAMILIES[expected.name]

    shares = family.cdf(values, expected.parameters)

    assert (np.diff(shares) >= 0).all()
    assert np.abs(shares - np.arange(1, len(values) + 1) / len(values)).max() < 0.03
    assert family.mean(expected.parameters) == pytest.approx(values.mean(), rel=0.06)


@pytest.mark.parametrize("text", DISTRIBUTIONS)
def test_the_best_fit_of_a_large_sample_is_its_family_or_as_good(text: str) -> None:
    best_fit = fit(StepSample("x", draws(text), 0))

    assert best_fit.distribution.name == parse_distribution(text).name or best_fit.is_good
    assert best_fit.ks_distance < 0.03


def test_a_bimodal_sample_is_empirical() -> None:
    values = np.sort(np.concatenate([draws("normal:0.5,0.05", 700), draws("normal:3,0.1", 300)]))

    best_fit = fit(StepSample("notice", values, 0))

    assert best_fit.distribution.name == "empirical"
    assert len(best_fit.distribution.parameters) == QUANTILE_COUNT
    assert best_fit.mean == pytest.approx(values.mean(), rel=0.03)


def test_a_sample_that_hardly_varies_is_constant() -> None:
    best_fit = fit(StepSample("start", np.array([0.1, 0.1, 0.101, 0.1, 0.1, 0.1]), 0))

    assert best_fit.distribution.name == "constant"
    assert best_fit.mean == pytest.approx(0.1, abs=0.001)


def test_an_outlier_does_not_shift_the_mean() -> None:
    """Linear interpolation from the 95 % quantile to one time of 24 s would add half a second to the mean."""
    values = np.sort(np.append(draws("uniform:0.9,1", 1999), 24.0))

    best_fit = fit(StepSample("check", values, 0), "empirical")

    assert best_fit.mean == pytest.approx(values.mean(), rel=0.01)


@settings(max_examples=40)
@given(SAMPLES)
def test_quantiles_increase_and_are_within_the_sample(values: Floats) -> None:
    distribution = FAMILIES["empirical"].fit(values)

    assert list(distribution.parameters) == sorted(distribution.parameters)
    assert parse_distribution(distribution.describe()) == distribution
    low, high = float(values[0]), float(values[-1])
    assert distribution.parameters[1] >= low - 1e-3
    assert distribution.parameters[-2] <= high + 1e-3


@settings(max_examples=40)
@given(SAMPLES, st.sampled_from([name for name in FAMILIES if name != "constant"]))
def test_every_family_fits_every_sample_and_can_be_parsed(values: Floats, name: str) -> None:
    """Include samples of zeros only, or of one repeated value."""
    best_fit = fit(StepSample("x", values, 0), name)

    assert 0 <= best_fit.ks_distance <= 1
    assert parse_distribution(best_fit.distribution.describe()).name == name
