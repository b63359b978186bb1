"""Select the distribution of a step.

1. A step whose times hardly vary is `constant`.
2. Otherwise the family with the lowest AIC (Akaike information criterion) is used if its fit is good:
   - its Kolmogorov–Smirnov distance to the sample is at most 0.05 or, for small samples, 1.22/√n (the 10 % level), and
   - its mean is within 2 % of the sample's, since mainly the mean determines when jobs end.
3. Otherwise the step is `empirical`: the quantiles of the sample.
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
#: A step is constant if its 5 % and 95 % quantiles differ by less than this.
_CONSTANT_SPREAD_S = 0.005
#: A step with fewer times than this is constant.
_MIN_SAMPLE_SIZE = 5


@dataclass(frozen=True)
class Fit:
    """The fitted distribution of one step, and its agreement with the sample."""

    sample: StepSample
    distribution: Distribution
    #: The largest distance between the two distribution functions.
    ks_distance: float
    #: The Akaike information criterion; None for families without a density.
    aic: float | None

    @property
    def mean(self) -> float:
        """The mean of the fitted distribution, in seconds."""
        return FAMILIES[self.distribution.name].mean(self.distribution.parameters)

    def cdf(self, values: Floats) -> Floats:
        """Return the fitted distribution function at each value."""
        return FAMILIES[self.distribution.name].cdf(values, self.distribution.parameters)

    @property
    def is_good(self) -> bool:
        """Whether the distance and the mean are within their limits."""
        max_distance = max(MAX_KS_DISTANCE, _KS_10_PERCENT / float(np.sqrt(len(self.sample))))
        sample_mean = float(self.sample.values.mean())
        return self.ks_distance <= max_distance and abs(self.mean - sample_mean) <= _MAX_MEAN_ERROR * sample_mean


def fit(sample: StepSample, family: str | None = None) -> Fit:
    """Return the best fit for a sample, or that of the given family."""
    if family is not None:
        return _fit_family(sample, family)
    low, high = np.quantile(sample.values, [0.05, 0.95])
    if len(sample) < _MIN_SAMPLE_SIZE or high - low < _CONSTANT_SPREAD_S:
        return _fit_family(sample, "constant")
    fits = [_fit_family(sample, name) for name, kind in FAMILIES.items() if kind.log_pdf is not None]
    best = min(fits, key=lambda candidate: np.inf if candidate.aic is None else candidate.aic)
    return best if best.is_good else _fit_family(sample, "empirical")


def _fit_family(sample: StepSample, name: str) -> Fit:
    family = FAMILIES[name]
    best = family.fit(sample.values)
    distribution = Distribution(name, tuple(float(f"{value:.6g}") for value in best.parameters))
    aic = None
    if family.log_pdf is not None:
        likelihood = float(family.log_pdf(sample.values, distribution.parameters).sum())
        aic = 2 * len(distribution.parameters) - 2 * likelihood
    fitted_shares = family.cdf(sample.values, distribution.parameters)
    return Fit(sample, distribution, _ks_distance(sample.values, fitted_shares), aic)


def _ks_distance(values: Floats, fitted_shares: Floats) -> float:
    """Return the Kolmogorov–Smirnov distance. Equal values are a single step of the empirical distribution function."""
    share_at = np.searchsorted(values, values, side="right") / len(values)
    share_below = np.searchsorted(values, values, side="left") / len(values)
    return float(np.maximum(np.abs(share_at - fitted_shares), np.abs(share_below - fitted_shares)).max())
