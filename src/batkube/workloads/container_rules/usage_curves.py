"""Resource usage over time, interpolated linearly between points."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from batkube.kernel.instants import Duration


class UsageCurve(NamedTuple):
    """Amounts at non-decreasing ages. Two points of equal age are a step; the last amount stays."""

    points: tuple[tuple[Duration, int], ...]

    def value_at(self, age: Duration) -> int:
        """Return the amount at `age`."""
        before = [point for point in self.points if point[0] <= age]
        if not before:
            return self.points[0][1]
        if len(before) == len(self.points):
            return before[-1][1]
        (start, low), (end, high) = before[-1], self.points[len(before)]
        return low + (high - low) * (age - start) // (end - start)

    def with_step(self, age: Duration, amount: int) -> UsageCurve:
        """Return the curve that is the same up to `age`, and has `amount` from then on."""
        before = tuple(point for point in self.points if point[0] < age)
        return UsageCurve((*before, (age, self.value_at(age)), (age, amount)))

    def first_age_above(self, limit: int, since: Duration) -> Duration | None:
        """Return the first age, from `since` on, at which the amount exceeds `limit`; None if it never does."""
        if self.value_at(since) > limit:
            return since
        for (start, low), (end, high) in itertools.pairwise(self.points):
            if end > since and high > limit:
                # Rounded up to a nanosecond. `low` is within the limit: otherwise the segment before it had matched.
                return Duration(start - (low - limit) * (end - start) // (high - low))
        return None
