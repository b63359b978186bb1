"""Records the amounts of each resource that nodes offer and pods hold over time, for utilisation.

Both are step functions, so their integrals over any window are exact. Utilisation is their ratio.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping
from operator import mul, sub

from batkube.kernel.errors import Bug
from batkube.kernel.instants import START, Instant
from batkube.kernel.quantities import PODS
from batkube.workloads.model import Requests

#: The largest amount that is recorded; quantities are unbounded, array elements have 64 bits.
_MAX_AMOUNT = 2**63 - 1


class AmountSteps:
    """A step function of time: the amount is `amounts[i]` from `times[i]` on."""

    __slots__ = ("amounts", "times")

    def __init__(self) -> None:
        self.times = array("q", [START])
        self.amounts = array("q", [0])

    def set(self, amount: int, now: Instant) -> None:
        """Set the amount from `now` on; of several calls at one instant the last one counts."""
        amount = min(amount, _MAX_AMOUNT)
        if amount == self.amounts[-1]:
            return
        # Programs start before the run does. What they create counts from the start of the run.
        if now <= self.times[-1]:
            self.amounts[-1] = amount
        else:
            self.times.append(now)
            self.amounts.append(amount)

    def integral(self, begin: Instant, end: Instant) -> int:
        """Return the integral of the amount from `begin` to `end`, in amount times nanoseconds."""
        if begin >= end:
            return 0
        # Without a Python loop: a trace of 28,000 jobs has 56,000 steps.
        first, last = max(0, bisect_right(self.times, begin) - 1), bisect_left(self.times, end)
        starts, ends = self.times[first:last], (*self.times[first + 1 : last], end)
        starts[0] = max(starts[0], begin)
        return sum(map(mul, self.amounts[first:last], map(sub, ends, starts)))


class ResourceUsage:
    """The amounts of each resource that nodes offer and that pods hold, over time."""

    def __init__(self) -> None:
        self.offered: defaultdict[str, int] = defaultdict(int)
        self.held: defaultdict[str, int] = defaultdict(int)
        #: Whether pods ever held more than a node offers: a node was shrunk, or runs without admission.
        self.is_overcommitted = False
        #: For each resource that a node ever offered: the amounts offered, and held, over time.
        self._offered_steps: dict[str, AmountSteps] = {}
        self._held_steps: dict[str, AmountSteps] = {}
        self._have_offers_changed = False

    def offer(self, amounts: Mapping[str, int], sign: int = 1) -> None:
        """Add the amounts of a node to those offered, or subtract them with a `sign` of -1."""
        self._have_offers_changed = True
        for resource, amount in amounts.items():
            self.offered[resource] += sign * amount
            if resource != PODS and resource not in self._offered_steps:
                self._offered_steps[resource], self._held_steps[resource] = AmountSteps(), AmountSteps()

    def hold(self, demand: Requests, pods: int) -> None:
        """Add the demand of a number of pods to the held amounts; a negative number subtracts."""
        held = self.held
        for resource, count in demand:
            held[resource] += count * pods

    def record(self, now: Instant) -> None:
        """Record the present amounts from `now` on. Raise Bug if pods hold more than nodes offer."""
        for resource, amount in self.held.items():
            if not 0 <= amount <= self.offered[resource] and not self.is_overcommitted:
                raise Bug(f"pods hold {amount} of the {self.offered[resource]} {resource} that all nodes offer")
            if resource in self._held_steps:
                self._held_steps[resource].set(amount, now)
        if self._have_offers_changed:
            self._have_offers_changed = False
            for resource, steps in self._offered_steps.items():
                steps.set(self.offered[resource], now)

    def was_offered(self, resource: str) -> bool:
        """Return whether a node ever offered a resource."""
        return resource in self._offered_steps

    @property
    def resources_held(self) -> list[str]:
        """The resources that pods have held."""
        return [resource for resource, steps in self._held_steps.items() if any(steps.amounts)]

    def utilisation(self, resource: str, begin: Instant, end: Instant) -> float | None:
        """Return the mean share of a resource that pods held in a window; None if none was offered.

        Raise Bug if the share is not between 0 and 1. If nodes were overcommitted, the share is cut to 1 instead.
        """
        if resource not in self._offered_steps:
            return None
        total = self._offered_steps[resource].integral(begin, end)
        if not total:
            return None
        share = self._held_steps[resource].integral(begin, end) / total
        if not 0 <= share <= 1 and not self.is_overcommitted:
            raise Bug(f"pods held {share:%} of the {resource} that nodes offered")
        return min(share, 1.0)
