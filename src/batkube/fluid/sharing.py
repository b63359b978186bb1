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
from collections.abc import Sequence

from batkube.fluid.tasks import Supply, Task

#: What is left of a resource counts as nothing below this (SimGrid: maxmin/precision), in flops or bytes per second.
PRECISION = 1e-5


def rates_of(tasks: Sequence[Task], *, is_thrifty: bool = False) -> list[float]:
    """Return the rate of each of `tasks`, which are all that use the resources they use."""
    if len(tasks) == 1:
        return [_alone(tasks[0])]
    values, grown = [0.0] * len(tasks), [0.0] * len(tasks)
    growing = [bool(task.uses) for task in tasks]
    claims = _claims(tasks)
    left = {resource: resource.capacity for resource in claims}
    offers: dict[Supply, float] = {}
    while any(growing):
        for resource, entries in list(claims.items()):
            count = sum(growing[number] for number, _ in entries)
            if count == 0:
                del claims[resource]
            else:
                offers[resource] = left[resource] / count
        full = _grow(tasks, offers, values, grown, growing)
        for resource, entries in list(claims.items()):
            left[resource] -= math.fsum(
                weight * grown[number] for number, weight in entries if growing[number] or not is_thrifty
            )
            if left[resource] < PRECISION:
                full += [number for number, _ in entries]
                del claims[resource]
        for number in full:
            growing[number] = False
            if is_thrifty:
                grown[number] = 0.0
    return values


def _alone(task: Task) -> float:
    """Return the rate of a task that shares with nobody; it may still claim several shares of one resource."""
    if not task.uses:
        return 1.0
    shares: dict[Supply, int] = {}
    for resource, _ in task.uses:
        shares[resource] = shares.get(resource, 0) + 1
    if len(shares) == len(task.uses):
        return min(task.bound, min(resource.capacity / weight for resource, weight in task.uses))
    totals: dict[Supply, float] = {}
    for resource, weight in task.uses:
        totals[resource] = totals.get(resource, 0.0) + weight
    return min(task.bound, min(resource.capacity / weight for resource, weight in totals.items()))


def _claims(tasks: Sequence[Task]) -> dict[Supply, list[tuple[int, float]]]:
    """Return who uses each resource: numbers of tasks, and their work there."""
    claims: dict[Supply, list[tuple[int, float]]] = {}
    for number, task in enumerate(tasks):
        for resource, weight in task.uses:
            claims.setdefault(resource, []).append((number, weight))
    return claims


def _grow(
    tasks: Sequence[Task],
    offers: dict[Supply, float],
    values: list[float],
    grown: list[float],
    growing: list[bool],
) -> list[int]:
    """Let each task that grows take what it is offered; return those that are at their bound."""
    full = []
    for number, task in enumerate(tasks):
        if not growing[number]:
            continue
        increment = min(min([offers[resource] / weight for resource, weight in task.uses]), task.bound - values[number])
        grown[number] = increment
        values[number] += increment
        if values[number] == task.bound:
            full.append(number)
    return full
