"""Planners: the free units of a resource at every time, now and in the future.

A planner holds *spans*: a number of units from a start (inclusive) to an end (exclusive). Times are
integers from zero to `PLAN_END`. The free units change at starts and ends of spans only. A planner
keeps these *points* sorted, with the free units from each point on, so that a query looks at the
points of its window only. Planners with at most one span, which are nearly all of a large graph,
have no lists of points.

A request can fit for the first time only at a point, or at the time of the request. Imitates
flux-sched resource/planner.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import NamedTuple

#: The end of all plans, as in Fluxion: the maximum of int64.
PLAN_END = 2**63 - 1


class PlannedSpan(NamedTuple):
    """A number of units from `start` until just before `end`."""

    start: int
    end: int
    units: int


class Planner:
    """The free units of one resource over time."""

    __slots__ = ("_free", "_number", "_times", "_uses", "spans", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        #: The spans by the number that `add` returned.
        self.spans: dict[int, PlannedSpan] = {}
        self._number = 0
        #: The points, the free units from each on, and how many spans start or end there. None until
        #: there is a second span.
        self._times: list[int] | None = None
        self._free: list[int] = []
        self._uses: list[int] = []

    def free_at(self, time: int) -> int:
        """Return the units that are free at a time."""
        return self.free_during(time, 1)

    def free_during(self, start: int, duration: int) -> int:
        """Return the units that are free throughout a window."""
        end = start + duration
        if self._times is None:
            units = sum(span.units for span in self.spans.values() if span.start < end and start < span.end)
            return self.total - units
        first = bisect_right(self._times, start) - 1
        last = bisect_left(self._times, end, first + 1)
        return min(self._free[first:last])

    def fits(self, start: int, duration: int, units: int) -> bool:
        """Return whether units are free throughout a window that ends before the plan does."""
        return start + duration <= PLAN_END and self.free_during(start, duration) >= units

    def fitting_points(self, not_before: int, duration: int, units: int) -> Iterator[int]:
        """Yield the points at which a request can start, in order. The planner must not change meanwhile."""
        if units > self.total:
            return
        for time in self.points():
            if time + duration > PLAN_END:
                return
            if time >= not_before and self.free_during(time, duration) >= units:
                yield time

    def points(self) -> list[int]:
        """Return zero and the times at which a span starts or ends."""
        if self._times is not None:
            return list(self._times)
        return sorted({0}.union(*((span.start, span.end) for span in self.spans.values())))

    def add(self, start: int, duration: int, units: int) -> int | None:
        """Plan a span and return its number; None if too few units are free."""
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
        """Remove a span."""
        span = self.spans.pop(number)
        if not self.spans:
            self._times = None
        elif self._times is not None:
            self._adjust_free(span, span.units)
            self._release_point(span.start)
            self._release_point(span.end)

    def reduce(self, number: int, units: int) -> bool:
        """Release units of a span. A span without units is removed; return whether it was."""
        span = self.spans[number]
        if units > span.units:
            raise ValueError(f"cannot release {units} units of a span of {span.units}")
        if units == span.units:
            self.remove(number)
            return True
        self.spans[number] = span._replace(units=span.units - units)
        self._adjust_free(span, units)
        return False

    def resize(self, total: int) -> None:
        """Change the total. Free units become zero at points where more than the new total is planned.

        As in Fluxion (`planner::update_total`), units that are released later are free again in any
        case.
        """
        if self.spans and self._times is None:
            self._build_points()
        self._free = [max(free + total - self.total, 0) for free in self._free]
        self.total = total

    def _build_points(self) -> None:
        """Create the points of all spans."""
        self._times, self._free, self._uses = [0], [self.total], [1]
        for span in self.spans.values():
            self._add_to_points(span)

    def _add_to_points(self, span: PlannedSpan) -> None:
        self._ensure_point(span.start)
        self._ensure_point(span.end)
        self._adjust_free(span, -span.units)

    def _ensure_point(self, time: int) -> None:
        """Add a point, or count one more use of an existing one."""
        assert self._times is not None
        index = bisect_left(self._times, time)
        if index == len(self._times) or self._times[index] != time:
            self._times.insert(index, time)
            self._free.insert(index, self._free[index - 1])
            self._uses.insert(index, 0)
        self._uses[index] += 1

    def _adjust_free(self, span: PlannedSpan, units: int) -> None:
        """Add to the free units for the duration of a span."""
        if self._times is None:
            return
        first = bisect_left(self._times, span.start)
        last = bisect_left(self._times, span.end, first)
        self._free[first:last] = [free + units for free in self._free[first:last]]

    def _release_point(self, time: int) -> None:
        """Count one use less of a point; remove it after the last one."""
        assert self._times is not None
        index = bisect_left(self._times, time)
        self._uses[index] -= 1
        if not self._uses[index]:
            del self._times[index], self._free[index], self._uses[index]


class MultiPlanner:
    """One planner per type. A span takes units of each type."""

    __slots__ = ("_number", "planners", "spans")

    def __init__(self, totals: Mapping[str, int]) -> None:
        #: By type. The order matters: fits are searched along the points of the first planner.
        self.planners = {type: Planner(total) for type, total in totals.items()}
        #: By span, its number in each planner. A type whose units were all released has no entry.
        self.spans: dict[int, dict[str, int]] = {}
        self._number = 0

    def fits(self, start: int, duration: int, units: Mapping[str, int]) -> bool:
        """Return whether units of each type are free throughout a window."""
        return all(planner.fits(start, duration, units.get(type, 0)) for type, planner in self.planners.items())

    def fitting_points(self, not_before: int, duration: int, units: Mapping[str, int]) -> Iterator[int]:
        """Yield the points of the first planner at which a request can start, in order."""
        leading, *others = self.planners.items()
        for time in leading[1].fitting_points(not_before, duration, units.get(leading[0], 0)):
            if all(planner.fits(time, duration, units.get(type, 0)) for type, planner in others):
                yield time

    def add(self, start: int, duration: int, units: Mapping[str, int]) -> int | None:
        """Plan a span with units of each type and return its number; None if some are not free."""
        numbers: dict[str, int] = {}
        for type, planner in self.planners.items():
            number = planner.add(start, duration, units.get(type, 0))
            if number is None:
                for other, span_number in numbers.items():
                    self.planners[other].remove(span_number)
                return None
            numbers[type] = number
        self._number += 1
        self.spans[self._number] = numbers
        return self._number

    def remove(self, number: int) -> None:
        """Remove a span."""
        for type, span_number in self.spans.pop(number).items():
            self.planners[type].remove(span_number)

    def reduce(self, number: int, units: Mapping[str, int]) -> bool:
        """Release units of a span by type. A span without units is removed; return whether it was.

        A type of which the span had no units counts as released (flux-sched:
        planner_multi_reduce_span).
        """
        numbers = self.spans[number]
        for type in list(numbers):
            if self.planners[type].reduce(numbers[type], units.get(type, 0)):
                del numbers[type]
        if not numbers:
            del self.spans[number]
        return not numbers

    def planned(self, number: int, type: str) -> int:
        """Return the units of a type that a span has."""
        span_number = self.spans[number].get(type)
        return 0 if span_number is None else self.planners[type].spans[span_number].units

    def resize(self, totals: Mapping[str, int]) -> None:
        """Change the types and their totals. Spans keep their units of the types that remain."""
        planners = {type: self.planners.get(type) or Planner(total) for type, total in totals.items()}
        for type, total in totals.items():
            planners[type].resize(total)
        removed = [type for type in self.planners if type not in planners]
        for numbers in self.spans.values():
            for type in removed:
                numbers.pop(type, None)
        self.planners = planners
