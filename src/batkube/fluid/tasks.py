"""Resources, and parallel tasks that use several of them at one common rate.

The work of a task is the number 1. At the rate r (per second), the task uses w·r of each resource, where w is its work
there: flops on a host, bytes on a link. So all its parts advance together (SimGrid 3.32, L07Action in
src/surf/ptask_L07.cpp).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from batkube.kernel.instants import Duration, Instant

_NO_TIME = Duration(0)


class FluidResource:
    """A shared resource: the cores of a host (flops per second) or a link (bytes per second)."""

    __slots__ = ("capacity", "name", "tasks")

    def __init__(self, name: str, capacity: float) -> None:
        self.name = name
        self.capacity = capacity
        #: The tasks that use it now, in order of arrival; a dict, so that removal is cheap.
        self.tasks: dict[Task, None] = {}

    def __repr__(self) -> str:
        return f"FluidResource({self.name!r}, {self.capacity:g})"

    @property
    def load(self) -> float:
        """The part of its capacity that is used now."""
        return math.fsum(
            weight * task.rate for task in self.tasks for resource, weight in task.uses if resource is self
        )


class Task:
    """A parallel task."""

    __slots__ = (
        "bound",
        "generation",
        "is_flowing",
        "lag",
        "latency",
        "name",
        "rate",
        "remaining",
        "since",
        "uses",
    )

    def __init__(
        self,
        name: str,
        uses: Iterable[tuple[FluidResource, float]],
        *,
        bound: float = math.inf,
        latency: Duration = _NO_TIME,
    ) -> None:
        """`uses` may contain a resource twice: two processes on one host have two shares of it.

        `bound` is the maximum rate. During its initial `latency`, the task uses no resources.
        """
        self.name = name
        self.uses = tuple((resource, weight) for resource, weight in uses if weight > 0)
        self.bound = bound
        self.latency = latency
        #: The remaining work at the instant `since`, from which it decreases by `rate` per second.
        self.remaining = 1.0 if self.uses else 0.0
        self.rate = 0.0
        self.since = Instant(0)
        #: The rounding error of `since`, in fractions of a nanosecond. Callers that run tasks one after the other
        #: transfer it to the next one, so that three tasks of 1/3 s take 1 s.
        self.lag = 0.0
        #: Whether its latency is over and the task has not ended.
        self.is_flowing = False
        #: Incremented when the end date changes: earlier entries in the flow's calendar are then invalid.
        self.generation = 0

    def __repr__(self) -> str:
        return f"Task({self.name!r}, {self.remaining:.3g} left)"

    def progress(self, now: Instant) -> float:
        """Return the fraction of the work that is done."""
        return 1.0 - min(1.0, max(0.0, self.remaining - self.rate * (now - self.since - self.lag) / 1e9))
