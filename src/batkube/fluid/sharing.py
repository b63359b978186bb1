"""At which rates tasks go on that share resources, while none begins or ends.

The rule is that of SimGrid's "fair bottleneck" (SimGrid 3.32, kernel/lmm/fair_bottleneck.cpp), which Batsim runs with.
It goes in rounds. In each, what is left of a resource is offered in equal parts to the tasks that still grow and use
it; each of them grows by what the scarcest of its offers allows, or up to its bound. Who is at its bound, or uses a
resource of which nothing is left, has its rate. So no resource is overcommitted, and who stops has a reason.

One thing of it is peculiar, and kept because published figures contain it: a task that has its rate is charged its last
increment again in all later rounds. What it is charged for nothing stays unused. `is_thrifty` leaves that out; then no
task could go faster without slowing another one, and what Batsim computes differs a little.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence

from batkube.fluid.tasks import FluidResource, Task

#: What is left of a resource counts as nothing below this (SimGrid: maxmin/precision), in flops or bytes per second.
PRECISION = 1e-5


def compute_rates(tasks: Sequence[Task], *, is_thrifty: bool = False) -> list[float]:
    """Return the rate of each of `tasks`, which are all that use the resources they use."""
    if len(tasks) == 1:
        return [_single_task_rate(tasks[0])]
    return _FairBottleneck(tasks).rates(is_thrifty)


class _FairBottleneck:
    """The rounds of one computation, with numbers for tasks and resources: it is here that a backbone costs time."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        numbers: dict[FluidResource, int] = {}
        #: Of each task: what it uses, and its work there; and its bound.
        self._uses = [
            [(numbers.setdefault(supply, len(numbers)), weight) for supply, weight in task.uses] for task in tasks
        ]
        self._bounds = [task.bound for task in tasks]
        self._values, self._grown = [0.0] * len(tasks), [0.0] * len(tasks)
        #: Of each resource: what is left, who uses it with which work, and how many claims on it still grow.
        self._remaining = [supply.capacity for supply in numbers]
        self._tasks: list[list[int]] = [[] for _ in numbers]
        self._weights: list[list[float]] = [[] for _ in numbers]
        for task, uses in enumerate(self._uses):
            for supply, weight in uses:
                self._tasks[supply].append(task)
                self._weights[supply].append(weight)
        self._counts = [len(users) for users in self._tasks]
        self._growing = {task: None for task, uses in enumerate(self._uses) if uses}

    def rates(self, is_thrifty: bool) -> list[float]:
        """Go on until nobody grows any more, and return the rates."""
        open_supplies = list(range(len(self._remaining)))
        while self._growing:
            open_supplies = [supply for supply in open_supplies if self._counts[supply]]
            full = self._grow([left / (count or 1) for left, count in zip(self._remaining, self._counts, strict=True)])
            grown = self._grown
            rest = []
            for supply in open_supplies:
                charges = map(operator.mul, self._weights[supply], map(grown.__getitem__, self._tasks[supply]))
                self._remaining[supply] -= math.fsum(charges)
                if self._remaining[supply] < PRECISION:
                    full += self._tasks[supply]
                else:
                    rest.append(supply)
            open_supplies = rest
            self._stop(full, is_thrifty)
        return self._values

    def _grow(self, offers: list[float]) -> list[int]:
        """Let each task that grows take what it is offered; return those that are at their bound."""
        values, bounds, full = self._values, self._bounds, []
        for task in self._growing:
            increment = bounds[task] - values[task]
            for supply, weight in self._uses[task]:
                offer = offers[supply] / weight
                if offer < increment:
                    increment = offer
            self._grown[task] = increment
            values[task] += increment
            if values[task] == bounds[task]:
                full.append(task)
        return full

    def _stop(self, tasks: Iterable[int], is_thrifty: bool) -> None:
        for task in tasks:
            if task not in self._growing:
                continue
            del self._growing[task]
            for supply, _ in self._uses[task]:
                self._counts[supply] -= 1
            if is_thrifty:
                self._grown[task] = 0.0


def _single_task_rate(task: Task) -> float:
    """Return the rate of a task that shares with nobody; it may still claim several shares of one resource."""
    if not task.uses:
        return 1.0
    shares: dict[FluidResource, int] = {}
    for resource, _ in task.uses:
        shares[resource] = shares.get(resource, 0) + 1
    if len(shares) == len(task.uses):
        return min(task.bound, min(resource.capacity / weight for resource, weight in task.uses))
    totals: dict[FluidResource, float] = {}
    for resource, weight in task.uses:
        totals[resource] = totals.get(resource, 0.0) + weight
    return min(task.bound, min(resource.capacity / weight for resource, weight in totals.items()))
