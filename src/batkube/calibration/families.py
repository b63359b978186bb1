"""Families of distributions: maximum-likelihood fits, likelihoods and distribution functions.

The parameters are those of `kernel.distributions`, which draws from the fitted distributions. A recorded time of zero
is less than half a millisecond; families without zeros replace it by that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from batkube.calibration.recorded_runs import Floats
from batkube.kernel.distributions import Distribution

#: The number of quantiles of an empirical distribution: one every 5 %.
QUANTILE_COUNT = 21
_MIN_TIME_S = 0.0005
_SEARCH_STEPS = 60
_GOLDEN = (math.sqrt(5) - 1) / 2


class Family(NamedTuple):
    """One family of distributions."""

    name: str
    #: Return the distribution of maximum likelihood for a sample in ascending order.
    fit: Callable[[Floats], Distribution]
    #: Return the logarithm of the density at each value; None for families without a density.
    log_pdf: Callable[[Floats, tuple[float, ...]], Floats] | None
    #: Return the distribution function at each value.
    cdf: Callable[[Floats, tuple[float, ...]], Floats]
    mean: Callable[[tuple[float, ...]], float]


def _fit_constant(values: Floats) -> Distribution:
    return Distribution("constant", (float(values.mean()),))


def _fit_uniform(values: Floats) -> Distribution:
    return Distribution("uniform", (float(values[0]), float(values[-1])))


def _fit_exponential(values: Floats) -> Distribution:
    return Distribution("exponential", (max(float(values.mean()), _MIN_TIME_S),))


def _fit_normal(values: Floats) -> Distribution:
    return Distribution("normal", (float(values.mean()), float(values.std())))


def _fit_lognormal(values: Floats) -> Distribution:
    logs = np.log(np.maximum(values, _MIN_TIME_S))
    return Distribution("lognormal", (float(np.exp(logs.mean())), float(logs.std())))


def _fit_gamma(values: Floats) -> Distribution:
    positive = np.maximum(values, _MIN_TIME_S)
    mean = float(positive.mean())

    def likelihood(shape: float) -> float:
        return float(_gamma_log_pdf(positive, (shape, mean / shape)).sum())

    shape = _maximise(likelihood)
    return Distribution("gamma", (shape, mean / shape))


def _fit_weibull(values: Floats) -> Distribution:
    # Divide by the largest value, so that no power overflows.
    largest = max(float(values[-1]), _MIN_TIME_S)
    positive = np.maximum(values, _MIN_TIME_S) / largest

    def scale_of(shape: float) -> float:
        return float(np.mean(positive**shape) ** (1 / shape))

    def likelihood(shape: float) -> float:
        return float(_weibull_log_pdf(positive, (shape, scale_of(shape))).sum())

    shape = _maximise(likelihood)
    return Distribution("weibull", (shape, scale_of(shape) * largest))


def _fit_empirical(values: Floats) -> Distribution:
    """Return 21 quantiles, the outermost adjusted so that the outer twentieths have the means of the sample.

    The largest value is often an outlier. Linear interpolation up to it would give it too much weight.
    """
    quantiles = np.quantile(values, np.linspace(0, 1, QUANTILE_COUNT))
    tail = max(1, len(values) // (QUANTILE_COUNT - 1))
    lowest, highest = float(values[:tail].mean()), float(values[-tail:].mean())
    quantiles[0] = min(max(0.0, 2 * lowest - quantiles[1]), quantiles[1])
    quantiles[-1] = max(2 * highest - quantiles[-2], quantiles[-2])
    return Distribution("empirical", tuple(float(value) for value in np.round(quantiles, 4)))


def _maximise(likelihood: Callable[[float], float]) -> float:
    """Return the shape in [0.01, 10,000] of maximum likelihood, by golden-section search over its logarithm."""
    low, high = math.log(0.01), math.log(10_000)
    for _ in range(_SEARCH_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if likelihood(math.exp(left)) < likelihood(math.exp(right)):
            low = left
        else:
            high = right
    return math.exp((low + high) / 2)


def _normal_log_pdf(values: Floats, p: tuple[float, ...]) -> Floats:
    spread = max(p[1], 1e-12)
    return np.asarray(-(((values - p[0]) / spread) ** 2) / 2 - math.log(spread * math.sqrt(2 * math.pi)))


def _lognormal_log_pdf(values: Floats, p: tuple[float, ...]) -> Floats:
    logs = np.log(np.maximum(values, _MIN_TIME_S))
    return _normal_log_pdf(logs, (math.log(p[0]), p[1])) - logs


def _gamma_log_pdf(values: Floats, p: tuple[float, ...]) -> Floats:
    positive = np.maximum(values, _MIN_TIME_S)
    shape, scale = p
    return np.asarray((shape - 1) * np.log(positive) - positive / scale - math.lgamma(shape) - shape * math.log(scale))


def _weibull_log_pdf(values: Floats, p: tuple[float, ...]) -> Floats:
    scaled = np.maximum(values, 1e-12) / p[1]
    return np.asarray(math.log(p[0] / p[1]) + (p[0] - 1) * np.log(scaled) - scaled ** p[0])


def _uniform_log_pdf(values: Floats, p: tuple[float, ...]) -> Floats:
    return np.full(len(values), -math.log(max(p[1] - p[0], 1e-12)))


def _exponential_log_pdf(values: Floats, p: tuple[float, ...]) -> Floats:
    return np.asarray(-values / p[0] - math.log(p[0]))


def _normal_cdf(values: Floats, p: tuple[float, ...]) -> Floats:
    root = max(p[1], 1e-12) * math.sqrt(2)
    return np.array([(1 + math.erf((value - p[0]) / root)) / 2 for value in values])


def _lognormal_cdf(values: Floats, p: tuple[float, ...]) -> Floats:
    return _normal_cdf(np.log(np.maximum(values, 1e-12)), (math.log(p[0]), p[1]))


def _gamma_cdf(values: Floats, p: tuple[float, ...]) -> Floats:
    return np.array([_incomplete_gamma(p[0], max(0.0, value) / p[1]) for value in values])


def _incomplete_gamma(shape: float, x: float) -> float:
    """Return the regularised lower incomplete gamma function, by its power series.

    The series is short unless the result is practically 0 or 1.
    """
    if x <= 0:
        return 0.0
    if x > shape + 12 * math.sqrt(shape) + 40:
        return 1.0
    term = total = 1 / shape
    divisor = shape
    while term > total * 1e-12:
        divisor += 1
        term *= x / divisor
        total += term
    return min(1.0, total * math.exp(shape * math.log(x) - x - math.lgamma(shape)))


def _empirical_cdf(values: Floats, p: tuple[float, ...]) -> Floats:
    return np.asarray(np.interp(values, p, np.linspace(0, 1, len(p)), left=0.0, right=1.0))


def _empirical_mean(p: tuple[float, ...]) -> float:
    return float((np.array(p[:-1]) + np.array(p[1:])).mean() / 2)


#: All families, in the order of messages. `empirical` fits any sample and is the fallback.
FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("constant", _fit_constant, None, lambda v, p: np.where(v >= p[0], 1.0, 0.0), lambda p: p[0]),
        Family(
            "uniform",
            _fit_uniform,
            _uniform_log_pdf,
            lambda v, p: np.clip((v - p[0]) / max(p[1] - p[0], 1e-12), 0.0, 1.0),
            lambda p: (p[0] + p[1]) / 2,
        ),
        Family(
            "exponential", _fit_exponential, _exponential_log_pdf, lambda v, p: 1 - np.exp(-v / p[0]), lambda p: p[0]
        ),
        Family("normal", _fit_normal, _normal_log_pdf, _normal_cdf, lambda p: p[0]),
        Family(
            "lognormal", _fit_lognormal, _lognormal_log_pdf, _lognormal_cdf, lambda p: p[0] * math.exp(p[1] ** 2 / 2)
        ),
        Family(
            "weibull",
            _fit_weibull,
            _weibull_log_pdf,
            lambda v, p: 1 - np.exp(-((np.maximum(v, 0.0) / p[1]) ** p[0])),
            lambda p: p[1] * math.gamma(1 + 1 / p[0]),
        ),
        Family("gamma", _fit_gamma, _gamma_log_pdf, _gamma_cdf, lambda p: p[0] * p[1]),
        Family("empirical", _fit_empirical, None, _empirical_cdf, _empirical_mean),
    )
}
