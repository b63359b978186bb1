"""The Lublin–Feitelson model of the workload of a parallel machine.

U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid jobs",
Journal of Parallel and Distributed Computing 63(11), 2003, with the constants of the authors' program (m_lublin99).

* Size: a job is serial with some probability; else the logarithm (base 2) of its size is drawn from two uniform
  distributions that meet at `medium`, and is rounded to a whole number for a share of the jobs (powers of two).
* Run time: the exponential of a draw from one of two gamma distributions; the larger the job, the more likely the
  second (longer) one.
* Arrivals: gaps are the exponential of a gamma draw too, but a gap is measured in *points*, and an hour of the day
  costs more points the busier it is. So the day has a cycle: dense arrivals at rush hours, few at night.

All jobs are rigid. The model has neither walltimes nor users.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

#: Half-hour buckets of a day, and the bucket in which the gamma of the daily cycle begins.
_BUCKETS = 48
_BUCKET_S = 24 * 3600 / _BUCKETS
_CYCLE_STARTS = 11
#: Draws beyond these logarithms of seconds are repeated: 1.9 days for a run time, 5.1 days for a gap.
_MAX_RUN_LOG = 12.0
_MAX_GAP_LOG = 13.0
_SIMPSON_STEPS = 32
#: How far below the logarithm of the machine size the two uniform distributions of sizes meet.
_MEDIUM_BELOW_HIGH = 2.5


class GammaDistribution(NamedTuple):
    """A gamma distribution of mean shape × scale."""

    shape: float
    scale: float

    def draw(self, rng: random.Random, maximum: float) -> float:
        """Return a draw of at most `maximum`."""
        while True:
            value = rng.gammavariate(self.shape, self.scale)
            if value <= maximum:
                return value

    def density(self, x: float) -> float:
        """Return the density at `x`."""
        log = (self.shape - 1) * math.log(x / self.scale) - x / self.scale - math.lgamma(self.shape)
        return math.exp(log) / self.scale


@dataclass(frozen=True, slots=True)
class SizeModel:
    """How the number of processors is drawn; `low`, `medium` and `high` are logarithms to base 2."""

    serial: float
    power_of_two: float
    low: float
    medium: float
    high: float
    below_medium: float

    def draw(self, rng: random.Random) -> int:
        """Return the size of one job."""
        kind = rng.random()
        if kind <= self.serial:
            return 1
        if rng.random() <= self.below_medium:
            log = rng.uniform(self.low, self.medium)
        else:
            log = rng.uniform(self.medium, self.high)
        if kind <= self.serial + self.power_of_two:
            log = math.floor(log + 0.5)
        return max(1, min(math.floor(2**log + 0.5), math.floor(2**self.high + 0.5)))


@dataclass(frozen=True, slots=True)
class LublinModel:
    """All parameters of one stream of jobs."""

    sizes: SizeModel
    short: GammaDistribution
    long: GammaDistribution
    #: P(short) = short_slope × size + short_at_zero, clipped to 0…1.
    short_slope: float
    short_at_zero: float
    #: Logarithm of the gap between arrivals, in points.
    inter_arrival: GammaDistribution
    #: How arrivals spread over the buckets of a day.
    daily_cycle: GammaDistribution

    def for_machine(self, machines: int) -> LublinModel:
        """Return the model for a machine of `machines` processors, by the authors' rule for the meeting point."""
        high = math.log2(machines)
        medium = max(high - _MEDIUM_BELOW_HIGH, min(self.sizes.low, high))
        return replace(self, sizes=replace(self.sizes, low=min(self.sizes.low, high), medium=medium, high=high))

    def run_time_s(self, rng: random.Random, size: int) -> int:
        """Return the run time in whole seconds of a job of `size` processors."""
        probability = min(1.0, max(0.0, self.short_slope * size + self.short_at_zero))
        gamma = self.short if rng.random() <= probability else self.long
        return int(math.exp(gamma.draw(rng, _MAX_RUN_LOG)))

    def arrivals_s(self, rng: random.Random) -> Iterator[int]:
        """Yield arrival times in whole seconds, without end; second 0 is midnight."""
        costs = _bucket_costs(self.daily_cycle)
        bucket, points = 0, 0.0
        while True:
            points += math.exp(self.inter_arrival.draw(rng, _MAX_GAP_LOG)) / _BUCKET_S
            while points > costs[bucket % _BUCKETS]:
                points -= costs[bucket % _BUCKETS]
                bucket += 1
            yield int((bucket + points / costs[bucket % _BUCKETS]) * _BUCKET_S)


def _bucket_costs(day: GammaDistribution) -> list[float]:
    """Return the points that each half hour costs, 1 on average: its share of a day's arrivals.

    The gamma distribution covers a day that begins in bucket 11; it is rotated back, as in the authors' program.
    """
    weights = [0.0] * _BUCKETS
    for number in range(_CYCLE_STARTS, _BUCKETS + _CYCLE_STARTS):
        weights[(number - 1) % _BUCKETS] = _probability(day, number - 0.5, number + 0.5)
    mean = math.fsum(weights) / _BUCKETS
    return [weight / mean for weight in weights]


def _probability(gamma: GammaDistribution, low: float, high: float) -> float:
    """Integrate the density from `low` to `high` with Simpson's rule."""
    step = (high - low) / _SIMPSON_STEPS
    inner = ((4 if index % 2 else 2) * gamma.density(low + index * step) for index in range(1, _SIMPSON_STEPS))
    return step / 3 * (gamma.density(low) + gamma.density(high) + math.fsum(inner))


#: For all jobs together. The shape of gaps is that of rush hours times the ratio of all hours to rush hours.
ALL_JOBS = LublinModel(
    SizeModel(serial=0.244, power_of_two=0.576, low=0.8, medium=4.5, high=7.0, below_medium=0.86),
    short=GammaDistribution(4.2, 0.94),
    long=GammaDistribution(312.0, 0.03),
    short_slope=-0.0054,
    short_at_zero=0.78,
    inter_arrival=GammaDistribution(10.2303 * 1.0225, 0.4871),
    daily_cycle=GammaDistribution(8.1737, 3.9631),
)
BATCH_JOBS = LublinModel(
    SizeModel(serial=0.2927, power_of_two=0.6686, low=1.2, medium=5.0, high=7.0, below_medium=0.875),
    short=GammaDistribution(6.57, 0.823),
    long=GammaDistribution(639.1, 0.0156),
    short_slope=-0.003,
    short_at_zero=0.6986,
    inter_arrival=GammaDistribution(6.0415 * 1.0519, 0.8531),
    daily_cycle=GammaDistribution(6.1271, 5.2740),
)
INTERACTIVE_JOBS = LublinModel(
    SizeModel(serial=0.1541, power_of_two=0.625, low=1.0, medium=3.0, high=5.5, below_medium=0.705),
    short=GammaDistribution(3.8351, 0.6605),
    long=GammaDistribution(7.073, 0.6856),
    short_slope=-0.0118,
    short_at_zero=0.9156,
    inter_arrival=GammaDistribution(6.5510 * 0.9797, 0.6621),
    daily_cycle=GammaDistribution(8.9186, 3.6680),
)
