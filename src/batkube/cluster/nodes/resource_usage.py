"""How much of each resource the nodes of a cluster offer and their pods hold, over time.

Utilisation is the one divided by the other. Both are step functions, so their integrals over any window are exact.
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

#: The largest amount that is recorded: quantities have no bound, and an array of a trace's length needs one.
_MAX_AMOUNT = 2**63 - 1


class AmountSteps:
    """An amount that changes now and then: `amounts[i]` from `times[i]` on."""

    __slots__ = ("amounts", "times")

    def __init__(self) -> None:
        self.times = array("q", [START])
        self.amounts = array("q", [0])

    def set(self, amount: int, now: Instant) -> None:
        """Record the amount from `now` on; the last of several at one instant counts."""
        amount = min(amount, _MAX_AMOUNT)
        if amount == self.amounts[-1]:
            return
        # Programs start before the run does; what exists then counts from the first instant on.
        if now <= self.times[-1]:
            self.amounts[-1] = amount
        else:
            self.times.append(now)
            self.amounts.append(amount)

    def integral(self, begin: Instant, end: Instant) -> int:
        """Return the sum of amount times nanoseconds from `begin` to `end`."""
        if begin >= end:
            return 0
        # Without a loop of Python's: a trace of 28,000 jobs has 56,000 steps.
        first, last = max(0, bisect_right(self.times, begin) - 1), bisect_left(self.times, end)
        starts, ends = self.times[first:last], (*self.times[first + 1 : last], end)
        starts[0] = max(starts[0], begin)
        return sum(map(mul, self.amounts[first:last], map(sub, ends, starts)))


class ResourceUsage:
    """What all nodes offer and what their pods hold of it, by resource, at every instant."""

    def __init__(self) -> None:
        self.offered: defaultdict[str, int] = defaultdict(int)
        self.held: defaultdict[str, int] = defaultdict(int)
        #: Whether nodes held more than they offer: one was made smaller than its pods, or refuses none.
        self.is_overcommitted = False
        #: By resource that a node ever offered: how much of it was offered, and how much was held.
        self._offered_steps: dict[str, AmountSteps] = {}
        self._held_steps: dict[str, AmountSteps] = {}
        self._have_offers_changed = False

    def offer(self, amounts: Mapping[str, int], sign: int = 1) -> None:
        """Add what a node offers, or with a `sign` of -1 take it away."""
        self._have_offers_changed = True
        for resource, amount in amounts.items():
            self.offered[resource] += sign * amount
            if resource != PODS and resource not in self._offered_steps:
                self._offered_steps[resource], self._held_steps[resource] = AmountSteps(), AmountSteps()

    def hold(self, demand: Requests, pods: int) -> None:
        """Count what so many pods hold, or with a negative number hold no longer."""
        held = self.held
        for resource, count in demand:
            held[resource] += count * pods

    def record(self, now: Instant) -> None:
        """Record the present amounts from `now` on. Raises Bug if pods hold more than there is."""
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
        """Return the mean share of a resource that pods held in a window; None where none was offered in it.

        Raises Bug if the share is not within 0 and 1, unless nodes were overdrawn: then it is at most 1.
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
