"""Each family finds its own parameters again, and its distribution function is that of its draws."""

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

KNOWN = ["uniform:1,3", "exponential:2", "normal:5,0.5", "lognormal:0.5,0.6", "weibull:2,3", "gamma:4,0.25"]
SAMPLES = st.lists(st.floats(0, 100), min_size=40, max_size=80).map(lambda values: np.sort(np.array(values)))


def draws(text: str, count: int = 4000) -> Floats:
    rng = Streams(1).named(text)
    return np.sort(np.array([parse_distribution(text).draw(rng) for _ in range(count)]))


@pytest.mark.parametrize("text", KNOWN)
def test_a_family_finds_its_own_parameters_again(text: str) -> None:
    known = parse_distribution(text)

    found = FAMILIES[known.name].fit(draws(text))

    assert found.parameters == pytest.approx(known.parameters, rel=0.06)


@pytest.mark.parametrize("text", [*KNOWN, "empirical:0,1,4,9", "gamma:0.4,2", "gamma:900,0.01"])
def test_the_distribution_function_is_that_of_the_draws(text: str) -> None:
    known, values = parse_distribution(text), draws(text)
    family = FAMILIES[known.name]

    below = family.cdf(values, known.parameters)

    assert (np.diff(below) >= 0).all()
    assert np.abs(below - np.arange(1, len(values) + 1) / len(values)).max() < 0.03
    assert family.mean(known.parameters) == pytest.approx(values.mean(), rel=0.06)


@pytest.mark.parametrize("text", KNOWN)
def test_the_right_family_is_chosen_from_enough_times(text: str) -> None:
    chosen = fit(StepSample("x", draws(text), 0))

    assert chosen.distribution.name == parse_distribution(text).name or chosen.is_good
    assert chosen.ks_distance < 0.03


def test_two_humps_are_no_named_family_and_become_empirical() -> None:
    humps = np.sort(np.concatenate([draws("normal:0.5,0.05", 700), draws("normal:3,0.1", 300)]))

    chosen = fit(StepSample("notice", humps, 0))

    assert chosen.distribution.name == "empirical"
    assert len(chosen.distribution.parameters) == QUANTILE_COUNT
    assert chosen.mean == pytest.approx(humps.mean(), rel=0.03)


def test_times_that_hardly_vary_are_a_constant() -> None:
    chosen = fit(StepSample("start", np.array([0.1, 0.1, 0.101, 0.1, 0.1, 0.1]), 0))

    assert chosen.distribution.name == "constant"
    assert chosen.mean == pytest.approx(0.1, abs=0.001)


def test_one_far_value_does_not_draw_the_mean_with_it() -> None:
    """A straight line from the 95 % quantile to one time of 24 s would add half a second to every pod."""
    values = np.sort(np.append(draws("uniform:0.9,1", 1999), 24.0))

    chosen = fit(StepSample("check", values, 0), "empirical")

    assert chosen.mean == pytest.approx(values.mean(), rel=0.01)


@settings(max_examples=40)
@given(SAMPLES)
def test_quantiles_never_fall_and_draws_stay_near_the_sample(values: Floats) -> None:
    found = FAMILIES["empirical"].fit(values)

    assert list(found.parameters) == sorted(found.parameters)
    assert parse_distribution(found.describe()) == found
    low, high = float(values[0]), float(values[-1])
    assert found.parameters[1] >= low - 1e-3
    assert found.parameters[-2] <= high + 1e-3


@settings(max_examples=40)
@given(SAMPLES, st.sampled_from([name for name in FAMILIES if name != "constant"]))
def test_any_sample_can_be_fitted_with_any_family_and_read_back(values: Floats, name: str) -> None:
    """Also one of zeros only, or of one value many times."""
    chosen = fit(StepSample("x", values, 0), name)

    assert 0 <= chosen.ks_distance <= 1
    assert parse_distribution(chosen.distribution.describe()).name == name
