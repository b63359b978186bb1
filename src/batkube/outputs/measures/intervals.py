"""95 % confidence intervals: how precisely a few runs determine a mean.

There are intervals for means (Student), differences (Student for pairs, or Welch) and shares (Wilson).

From n independent runs with mean m and standard deviation s (the sample's: divided by n − 1), the mean lies within
m ± t · s/√n, where t is the 97.5 % quantile of Student's distribution with n − 1 degrees of freedom. Three mistakes are
easily made, and each gives error bars with another meaning:

* m/√n instead of s/√n, as in a published figure of the 2020 study: the bars then grow with the mean and do not show
  the spread of the runs;
* 1.96 instead of t, which is right for many runs only: five runs need 2.78, two need 12.71;
* counting a run twice: byte-identical repetitions are one observation, which has to be known when n is computed.

One run has no interval: the spread is unknown, not zero.
Sources: Student, Biometrika 6 (1908) 1-25; B. L. Welch, Biometrika 34 (1947) 28-35, with Satterthwaite's degrees of
freedom; E. B. Wilson, Journal of the American Statistical Association 22 (1927) 209-212; the incomplete beta function
by its continued fraction, NIST Digital Library of Mathematical Functions 8.17.22.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

#: Confidence level of all intervals. Changing it changes every figure and report.
CONFIDENCE = 0.95

_TINY = 1e-300
_PRECISION = 1e-16
_MAX_TERMS = 100_000
_NORMAL_FROM = 1e6


@dataclass(frozen=True, slots=True)
class Sample:
    """Statistics of independent observations of one number."""

    n: int
    mean: float
    #: The sample's standard deviation; None for a single observation.
    sd: float | None
    #: The 95 % interval of the mean; the mean itself twice if it is unknown.
    low: float
    high: float
    #: False for a single observation: its interval is unknown, not empty.
    has_interval: bool

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two means, second minus first, with its 95 % interval."""

    value: float
    half: float
    #: Student's, or Welch and Satterthwaite's degrees of freedom; infinite when neither sample varies.
    degrees_of_freedom: float
    #: Number of pairs, 0 if the samples are not paired; and in how many of them the second is lower, and higher.
    pairs: int = 0
    lower: int = 0
    higher: int = 0

    @property
    def sample(self) -> Sample:
        """The difference as a mean with its interval."""
        low, high = self.value - self.half, self.value + self.half
        return Sample(self.pairs, self.value, self.half, low, high, has_interval=True)

    @property
    def is_clear(self) -> bool:
        """True if the interval excludes zero: chance alone rarely causes such a difference."""
        return self.is_clear_among(1)

    @property
    def sign_p(self) -> float:
        """Two-sided p-value of the exact sign test: the probability that pairs agree so well by chance.

        The test assumes nothing about the distribution of the differences, and one huge difference cannot hide nine
        others in a wide interval. Pairs without a difference do not count; 1 for samples that are not paired.
        """
        unlike = self.lower + self.higher
        extreme = sum(math.comb(unlike, count) for count in range(min(self.lower, self.higher) + 1))
        return min(1.0, 2 * extreme / (1 << unlike))

    @property
    def passes_sign_test(self) -> bool:
        """True if so many pairs agree that chance alone is an unlikely cause."""
        return self.sign_p < 1 - CONFIDENCE

    @property
    def is_unclear(self) -> bool:
        """True if neither the interval nor the sign test shows a difference.

        This is the only rule for "no clear difference": a mark that says so never contradicts another one.
        """
        return not (self.is_clear or self.passes_sign_test)

    @property
    def is_contrary(self) -> bool:
        """True if most pairs differ in the opposite direction of the mean, which a few large differences dominate."""
        return self.passes_sign_test and self.value * (self.higher - self.lower) < 0

    def is_clear_among(self, comparisons: int) -> bool:
        """True if the interval excludes zero after a Bonferroni correction for this many comparisons.

        The confidence of each interval is raised to 1 − 0.05 / `comparisons`: among many comparisons, chance alone
        makes some look clear that are tested one by one.
        """
        probability = 1 - (1 - CONFIDENCE) / (2 * comparisons)
        widening = (
            1.0
            if comparisons == 1
            else student_quantile(self.degrees_of_freedom, probability) / student_quantile(self.degrees_of_freedom)
        )
        return abs(self.value) > self.half * widening


def sample_of(values: Sequence[float]) -> Sample:
    """Return the statistics of the observations, of which there must be at least one, all finite."""
    if not values or not all(map(math.isfinite, values)):
        raise ValueError("a sample needs at least one number, and all must be finite")
    # `statistics` computes with fractions: the mean of equal observations is exactly their value, and the spread 0.
    n, mean = len(values), statistics.mean(map(float, values))
    if n == 1:
        return Sample(1, mean, None, mean, mean, has_interval=False)
    sd = statistics.stdev(map(float, values))
    half = student_quantile(n - 1) * sd / math.sqrt(n)
    return Sample(n, mean, sd, mean - half, mean + half, has_interval=True)


def share_of(successes: int, n: int) -> Sample:
    """Return the share of successes in n attempts, with Wilson's interval of the probability of success.

    Shares need another interval than means: 15 successes of 15 have no spread, but are compatible with a probability
    of 80 %. Wilson's interval stays within 0 and 1, and is not symmetric.
    """
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"{successes} of {n} is not a share")
    share, z = successes / n, student_quantile(math.inf)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    sd = math.sqrt(share * (1 - share) * n / (n - 1)) if n > 1 else None
    # If all or none succeed, the interval reaches 1 or 0 but for rounding.
    low, high = (0.0 if successes == 0 else centre - half), (1.0 if successes == n else centre + half)
    return Sample(n, share, sd, low, high, has_interval=True)


def difference_of(first: Sample, second: Sample) -> Difference | None:
    """Return the difference of the means, second minus first, without assuming equal variances (Welch).

    None if either is a single observation, whose spread is unknown.
    """
    if first.sd is None or second.sd is None:
        return None
    value = second.mean - first.mean
    parts = [(one.sd or 0.0) ** 2 / one.n for one in (first, second)]
    total = math.fsum(parts)
    if total == 0.0:
        return Difference(value, 0.0, math.inf)
    # Shares of the total, so that the squares neither underflow nor overflow.
    freedom = 1 / math.fsum((part / total) ** 2 / (one.n - 1) for part, one in zip(parts, (first, second), strict=True))
    return Difference(value, student_quantile(freedom) * math.sqrt(total), freedom)


def paired_difference_of(first: Sequence[float], second: Sequence[float]) -> Difference | None:
    """Return the mean difference, second minus first, of pairs that share their random conditions.

    What both of a pair have in common, such as a hard workload, cancels out (Student's interval of the differences).
    None for fewer than two pairs, whose spread is unknown.
    """
    values = [later - earlier for earlier, later in zip(first, second, strict=True)]
    if len(values) < 2:
        return None
    pairs = sample_of(values)
    lower, higher = sum(value < 0 for value in values), sum(value > 0 for value in values)
    return Difference(pairs.mean, pairs.half, pairs.n - 1, pairs.n, lower, higher)


@lru_cache(maxsize=1024)
def student_quantile(freedom: float, probability: float = (1 + CONFIDENCE) / 2) -> float:
    """Return the quantile of Student's distribution for a `probability` between 0.5 and 1.

    Found by bisection: the distribution function is monotone and accurate, and speed does not matter here.
    """
    if not freedom > 0 or not 0.5 <= probability < 1:
        raise ValueError(f"no quantile of Student's distribution: freedom {freedom}, probability {probability}")
    if freedom > _NORMAL_FROM:
        # So close to the normal distribution that one term of the expansion is enough (Abramowitz, Stegun 26.7.5),
        # and more accurate than differences of large logarithms.
        normal = statistics.NormalDist().inv_cdf(probability)
        return normal + (normal**3 + normal) / (4 * freedom)
    tail = 2 * (1 - probability)
    low, high = 0.0, 1.0
    while _two_sided_tail(high, freedom) > tail:
        low, high = high, high * 2
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if _two_sided_tail(middle, freedom) > tail else (low, middle)
    return high


def _two_sided_tail(t: float, freedom: float) -> float:
    """Return the probability of being farther than t from 0, on either side."""
    return _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        # The fraction converges quickly on the other side only.
        return 1 - _incomplete_beta(1 - x, b, a)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b))
    return front * _beta_fraction(x, a, b) / a


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta function, evaluated forwards (Lentz's method)."""
    numerator, denominator = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = denominator
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            denominator = 1 / _away_from_zero(1 + term * denominator)
            numerator = _away_from_zero(1 + term / numerator)
            value *= numerator * denominator
        if abs(numerator * denominator - 1) < _PRECISION:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
