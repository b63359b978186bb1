"""Resources, and tasks that use several of them at one common rate.

A parallel task is one piece of work, from 0 to 1. While it goes on at the rate r (per second), it takes w·r of each
resource it uses, where w is its work there: flops on a host, bytes on a link. So nothing of it runs ahead of the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from batkube.kernel.instants import Duration, Instant

NO_TIME = Duration(0)


class FluidResource:
    """What tasks share: the cores of a host (flops per second) or a link (bytes per second)."""

    __slots__ = ("capacity", "name", "tasks")

    def __init__(self, name: str, capacity: float) -> None:
        self.name = name
        self.capacity = capacity
        #: Those that take of it now, in the order in which they came; as keys, so that leaving is cheap.
        self.tasks: dict[Task, None] = {}

    def __repr__(self) -> str:
        return f"Supply({self.name!r}, {self.capacity:g})"

    @property
    def load(self) -> float:
        """How much of it is taken now."""
        return math.fsum(
            weight * task.rate for task in self.tasks for resource, weight in task.uses if resource is self
        )


class Task:
    """A piece of work on several resources at once."""

    __slots__ = (
        "bound",
        "due",
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
        latency: Duration = NO_TIME,
    ) -> None:
        """`uses` may name a resource twice: two processes on one host claim two shares of it.

        `bound` is a rate it never exceeds. During its `latency`, at first, it takes nothing of anything.
        """
        self.name = name
        self.uses = tuple((resource, weight) for resource, weight in uses if weight > 0)
        self.bound = bound
        self.latency = latency
        #: What is left of it at the instant `since`; from there it goes on at `rate` per second.
        self.remaining = 1.0 if self.uses else 0.0
        self.rate = 0.0
        self.since = Instant(0)
        #: How much later than `since` that is, a fraction of a nanosecond. Whoever does one task after the other
        #: hands it on to the next, so that three thirds of a second are a second.
        self.lag = 0.0
        #: Whether its latency is over, and it is not.
        self.is_flowing = False
        #: When its latency or its work will end, as far as is known; None when it is over, or nothing moves it.
        self.due: Instant | None = None
        #: How often that has changed: entries of the calendar that are older do not count.
        self.generation = 0

    def __repr__(self) -> str:
        return f"Task({self.name!r}, {self.remaining:.3g} left)"

    def progress(self, now: Instant) -> float:
        """Return how much of it is done, from 0 to 1."""
        return 1.0 - min(1.0, max(0.0, self.remaining - self.rate * (now - self.since - self.lag) / 1e9))
