"""The rates of tasks that share resources.

The rule is SimGrid's "fair bottleneck" (SimGrid 3.32, FairBottleneck::do_solve in src/kernel/lmm/fair_bottleneck.cpp),
which Batsim uses. It has rounds. In each round, the remaining capacity of a resource is offered in equal parts to the
growing tasks that use it, and each task grows by as much as its scarcest offer and its bound allow. A task stops
growing when it is at its bound, or when nothing remains of one of its resources. So no resource is overcommitted.

SimGrid charges a task that has stopped growing for its last increment again in all later rounds, and the capacity
charged in this way remains unused. By default that is imitated, because Batsim's results contain it. With
`charges_once`, every increment is charged once, and no task could be faster without slowing another; the results then
differ a little from Batsim's.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence

from batkube.fluid.tasks import FluidResource, Task

#: A remaining capacity below this counts as 0 (SimGrid: maxmin/precision), in flops or bytes per second.
PRECISION = 1e-5


def compute_rates(tasks: Sequence[Task], *, charges_once: bool = False) -> list[float]:
    """Return the rates of `tasks`, which must be all tasks that use their resources."""
    if len(tasks) == 1:
        return [_single_task_rate(tasks[0])]
    return _FairBottleneck(tasks).rates(charges_once)


class _FairBottleneck:
    """One computation. Tasks and resources are indices here, since a shared backbone makes this the slowest code."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        indices: dict[FluidResource, int] = {}
        #: By task: its resources with its work on each, and its bound.
        self._uses = [
            [(indices.setdefault(resource, len(indices)), weight) for resource, weight in task.uses] for task in tasks
        ]
        self._bounds = [task.bound for task in tasks]
        self._rates, self._increments = [0.0] * len(tasks), [0.0] * len(tasks)
        #: By resource: its remaining capacity, its tasks with their work on it, and the number of growing shares.
        self._remaining = [resource.capacity for resource in indices]
        self._tasks: list[list[int]] = [[] for _ in indices]
        self._weights: list[list[float]] = [[] for _ in indices]
        for task, uses in enumerate(self._uses):
            for resource, weight in uses:
                self._tasks[resource].append(task)
                self._weights[resource].append(weight)
        self._counts = [len(users) for users in self._tasks]
        self._growing = {task: None for task, uses in enumerate(self._uses) if uses}

    def rates(self, charges_once: bool) -> list[float]:
        """Run rounds until no task grows any more, and return the rates."""
        resources = list(range(len(self._remaining)))
        while self._growing:
            resources = [resource for resource in resources if self._counts[resource]]
            stopping = self._grow(
                [remaining / (count or 1) for remaining, count in zip(self._remaining, self._counts, strict=True)]
            )
            increments = self._increments
            open_resources = []
            for resource in resources:
                charges = map(operator.mul, self._weights[resource], map(increments.__getitem__, self._tasks[resource]))
                self._remaining[resource] -= math.fsum(charges)
                if self._remaining[resource] < PRECISION:
                    stopping += self._tasks[resource]
                else:
                    open_resources.append(resource)
            resources = open_resources
            self._stop(stopping, charges_once)
        return self._rates

    def _grow(self, offers: list[float]) -> list[int]:
        """Increase the rates of growing tasks as far as the offers allow; return the tasks that reach their bound."""
        rates, bounds, bounded = self._rates, self._bounds, []
        for task in self._growing:
            increment = bounds[task] - rates[task]
            for resource, weight in self._uses[task]:
                offer = offers[resource] / weight
                if offer < increment:
                    increment = offer
            self._increments[task] = increment
            rates[task] += increment
            if rates[task] == bounds[task]:
                bounded.append(task)
        return bounded

    def _stop(self, tasks: Iterable[int], charges_once: bool) -> None:
        for task in tasks:
            if task not in self._growing:
                continue
            del self._growing[task]
            for resource, _ in self._uses[task]:
                self._counts[resource] -= 1
            if charges_once:
                self._increments[task] = 0.0


def _single_task_rate(task: Task) -> float:
    """Return the rate of a task that shares its resources with no other; it may have several shares of one."""
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
