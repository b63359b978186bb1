"""Planners: how much of a quantity is free, at every time, now and in the future.

A planner knows the *spans* that were planned on it: so many units from a start (included) to an end (excluded). Times
are whole numbers, from zero to `PLAN_END`. What is free changes at starts and ends only, so a planner keeps these
*points* in order with what is free from each on, and a question about a window looks at the points in it. With one
span or none, as nearly all vertices of a large graph have, there are no lists of points at all.

Fluxion: resource/planner; a request can only ever fit first at a point, or at the time it is asked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import NamedTuple

#: The end of all plans, as in Fluxion: the greatest 64-bit number.
PLAN_END = 2**63 - 1


class PlannedSpan(NamedTuple):
    """So many units, from `start` until just before `end`."""

    start: int
    end: int
    units: int


class Planner:
    """What is free of one quantity, over time."""

    __slots__ = ("_free", "_number", "_times", "_uses", "spans", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        #: The spans, by the number that `add` gave them.
        self.spans: dict[int, PlannedSpan] = {}
        self._number = 0
        #: The points, what is free from each on, and how many spans start or end there. None before a second span.
        self._times: list[int] | None = None
        self._free: list[int] = []
        self._uses: list[int] = []

    def free_at(self, time: int) -> int:
        """Return what is free at a time."""
        return self.free_during(time, 1)

    def free_during(self, start: int, duration: int) -> int:
        """Return what is free all through a window."""
        end = start + duration
        if self._times is None:
            units = sum(span.units for span in self.spans.values() if span.start < end and start < span.end)
            return self.total - units
        first = bisect_right(self._times, start) - 1
        last = bisect_left(self._times, end, first + 1)
        return min(self._free[first:last])

    def fits(self, start: int, duration: int, units: int) -> bool:
        """Tell whether so many units are free all through a window that the plan covers."""
        return start + duration <= PLAN_END and self.free_during(start, duration) >= units

    def first_fit(self, not_before: int, duration: int, units: int) -> int | None:
        """Return the first point, not before a time, from which on a request fits; None if there is none."""
        return next(self.fitting_points(not_before, duration, units), None)

    def next_fit(self, after: int, duration: int, units: int) -> int | None:
        """Return the first such point after another one."""
        return self.first_fit(after + 1, duration, units)

    def fitting_points(self, not_before: int, duration: int, units: int) -> Iterator[int]:
        """Yield the points from which on a request fits, in order. The planner must not change meanwhile."""
        if units > self.total:
            return
        for time in self.points():
            if time + duration > PLAN_END:
                return
            if time >= not_before and self.free_during(time, duration) >= units:
                yield time

    def points(self) -> list[int]:
        """Return the times at which something starts or ends, and zero."""
        if self._times is not None:
            return list(self._times)
        return sorted({0}.union(*((span.start, span.end) for span in self.spans.values())))

    def add(self, start: int, duration: int, units: int) -> int | None:
        """Plan a span and return its number; None if there is not so much free."""
        if start < 0 or duration < 1 or units < 0 or not self.fits(start, duration, units):
            return None
        if self.spans and self._times is None:
            self._build_points()
        self._number += 1
        span = self.spans[self._number] = PlannedSpan(start, start + duration, units)
        if self._times is not None:
            self._add_to_points(span)
        return self._number

    def remove(self, number: int) -> None:
        """Forget a span."""
        span = self.spans.pop(number)
        if not self.spans:
            self._times = None
        elif self._times is not None:
            self._adjust_free(span, span.units)
            self._release_point(span.start)
            self._release_point(span.end)

    def reduce(self, number: int, units: int) -> bool:
        """Take units from a span; one of which nothing remains is removed, which is told."""
        span = self.spans[number]
        if units > span.units:
            raise ValueError(f"a span of {span.units} units cannot lose {units}")
        if units == span.units:
            self.remove(number)
            return True
        self.spans[number] = span._replace(units=span.units - units)
        self._adjust_free(span, units)
        return False

    def resize(self, total: int) -> None:
        """Change how much there is in all. Where more is planned than that, nothing is free: never less than nothing.

        So does Fluxion (planner::update_total); what is given back later is free again, whoever had it.
        """
        if self.spans and self._times is None:
            self._build_points()
        self._free = [max(free + total - self.total, 0) for free in self._free]
        self.total = total

    def clear(self) -> None:
        """Forget all spans."""
        self.spans.clear()
        self._times = None

    def _build_points(self) -> None:
        """Make the points of the spans there are."""
        self._times, self._free, self._uses = [0], [self.total], [1]
        for span in self.spans.values():
            self._add_to_points(span)

    def _add_to_points(self, span: PlannedSpan) -> None:
        self._ensure_point(span.start)
        self._ensure_point(span.end)
        self._adjust_free(span, -span.units)

    def _ensure_point(self, time: int) -> None:
        """Make sure that there is a point at a time, with one more use."""
        assert self._times is not None
        index = bisect_left(self._times, time)
        if index == len(self._times) or self._times[index] != time:
            self._times.insert(index, time)
            self._free.insert(index, self._free[index - 1])
            self._uses.insert(index, 0)
        self._uses[index] += 1

    def _adjust_free(self, span: PlannedSpan, units: int) -> None:
        """Free so many units more as long as a span lasts."""
        if self._times is None:
            return
        first = bisect_left(self._times, span.start)
        last = bisect_left(self._times, span.end, first)
        self._free[first:last] = [free + units for free in self._free[first:last]]

    def _release_point(self, time: int) -> None:
        """Take a use from a point; without any it is none."""
        assert self._times is not None
        index = bisect_left(self._times, time)
        self._uses[index] -= 1
        if not self._uses[index]:
            del self._times[index], self._free[index], self._uses[index]


class MultiPlanner:
    """Planners of several types together: a span takes some of each."""

    __slots__ = ("_number", "planners", "spans")

    def __init__(self, totals: Mapping[str, int]) -> None:
        #: In the order that matters: fits are sought along the first one's points.
        self.planners = {type: Planner(total) for type, total in totals.items()}
        #: For each span the number it has in each planner; a type that lost all of its units is left out.
        self.spans: dict[int, dict[str, int]] = {}
        self._number = 0

    def fits(self, start: int, duration: int, units: Mapping[str, int]) -> bool:
        """Tell whether so many units of each type are free all through a window."""
        return all(planner.fits(start, duration, units.get(type, 0)) for type, planner in self.planners.items())

    def fitting_points(self, not_before: int, duration: int, units: Mapping[str, int]) -> Iterator[int]:
        """Yield the points of the first planner from which on a request fits, in order."""
        leading, *others = self.planners.items()
        for time in leading[1].fitting_points(not_before, duration, units.get(leading[0], 0)):
            if all(planner.fits(time, duration, units.get(type, 0)) for type, planner in others):
                yield time

    def add(self, start: int, duration: int, units: Mapping[str, int]) -> int | None:
        """Plan a span of some units of each type and return its number; None if they are not all free."""
        numbers: dict[str, int] = {}
        for type, planner in self.planners.items():
            number = planner.add(start, duration, units.get(type, 0))
            if number is None:
                for other, taken in numbers.items():
                    self.planners[other].remove(taken)
                return None
            numbers[type] = number
        self._number += 1
        self.spans[self._number] = numbers
        return self._number

    def remove(self, number: int) -> None:
        """Forget a span."""
        for type, taken in self.spans.pop(number).items():
            self.planners[type].remove(taken)

    def reduce(self, number: int, units: Mapping[str, int]) -> bool:
        """Take units of some types from a span; one of which nothing remains is removed, which is told.

        A type of which the span had nothing in the first place counts as lost (Fluxion: planner_multi_reduce_span).
        """
        numbers = self.spans[number]
        for type in list(numbers):
            if self.planners[type].reduce(numbers[type], units.get(type, 0)):
                del numbers[type]
        if not numbers:
            del self.spans[number]
        return not numbers

    def planned(self, number: int, type: str) -> int:
        """Return how many units of a type a span has."""
        taken = self.spans[number].get(type)
        return 0 if taken is None else self.planners[type].spans[taken].units

    def resize(self, totals: Mapping[str, int]) -> None:
        """Change which types there are and how much of each; spans keep what they have of those that remain."""
        planners = {type: self.planners.get(type) or Planner(total) for type, total in totals.items()}
        for type, total in totals.items():
            planners[type].resize(total)
        gone = [type for type in self.planners if type not in planners]
        for numbers in self.spans.values():
            for type in gone:
                numbers.pop(type, None)
        self.planners = planners

    def clear(self) -> None:
        """Forget all spans."""
        self.spans.clear()
        for planner in self.planners.values():
            planner.clear()
