"""Which distribution a step gets.

1. A step whose times hardly vary is a `constant`.
2. Of the families with a density, the one of least AIC (Akaike's criterion: parameters against likelihood) is taken if
   it is good: the largest distance between its distribution function and the sample's (Kolmogorov–Smirnov) is at most
   0.05, or for small samples 1.22/√n, the distance that chance exceeds one time in ten; and its mean is within 2 % of
   the sample's, for it is mostly the mean that decides when jobs end.
3. Otherwise it is `empirical`: the sample's own quantiles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batkube.calibration.families import FAMILIES
from batkube.calibration.recorded_runs import Floats
from batkube.calibration.steps import StepSample
from batkube.kernel.distributions import Distribution

MAX_KS_DISTANCE = 0.05
_KS_10_PERCENT = 1.22
_MAX_MEAN_ERROR = 0.02
#: Times that differ by less than this are the same time; half of the recordings' resolution would be too strict.
_CONSTANT_SPREAD_S = 0.005
#: Fewer times than this show no shape.
_MIN_SAMPLE_SIZE = 5


@dataclass(frozen=True)
class Fit:
    """The distribution of one step, and how well it agrees with what was recorded."""

    sample: StepSample
    distribution: Distribution
    #: The largest distance between the two distribution functions.
    ks_distance: float
    #: Akaike's criterion; None for constants and empirical distributions, which have no likelihood.
    aic: float | None

    @property
    def mean(self) -> float:
        """The mean of what will be drawn, in seconds."""
        return FAMILIES[self.distribution.name].mean(self.distribution.parameters)

    def cdf(self, values: Floats) -> Floats:
        """Return the share of draws that are at most each value."""
        return FAMILIES[self.distribution.name].cdf(values, self.distribution.parameters)

    @property
    def is_good(self) -> bool:
        """Whether it may stand for the sample."""
        tolerated = max(MAX_KS_DISTANCE, _KS_10_PERCENT / float(np.sqrt(len(self.sample))))
        recorded = float(self.sample.values.mean())
        return self.ks_distance <= tolerated and abs(self.mean - recorded) <= _MAX_MEAN_ERROR * recorded


def fit(sample: StepSample, family: str | None = None) -> Fit:
    """Return the best distribution for `sample`, of the given family if one is named."""
    if family is not None:
        return _fit_family(sample, family)
    low, high = np.quantile(sample.values, [0.05, 0.95])
    if len(sample) < _MIN_SAMPLE_SIZE or high - low < _CONSTANT_SPREAD_S:
        return _fit_family(sample, "constant")
    fits = [_fit_family(sample, name) for name, kind in FAMILIES.items() if kind.log_pdf is not None]
    best = min(fits, key=lambda one: np.inf if one.aic is None else one.aic)
    return best if best.is_good else _fit_family(sample, "empirical")


def _fit_family(sample: StepSample, name: str) -> Fit:
    family = FAMILIES[name]
    best = family.fit(sample.values)
    distribution = Distribution(name, tuple(float(f"{value:.6g}") for value in best.parameters))
    aic = None
    if family.log_pdf is not None:
        likelihood = float(family.log_pdf(sample.values, distribution.parameters).sum())
        aic = 2 * len(distribution.parameters) - 2 * likelihood
    below = family.cdf(sample.values, distribution.parameters)
    return Fit(sample, distribution, _ks_distance(sample.values, below), aic)


def _ks_distance(values: Floats, below: Floats) -> float:
    """Return the Kolmogorov–Smirnov distance; equal values are one step of the sample's distribution function."""
    upto = np.searchsorted(values, values, side="right") / len(values)
    before = np.searchsorted(values, values, side="left") / len(values)
    return float(np.maximum(np.abs(upto - below), np.abs(before - below)).max())
