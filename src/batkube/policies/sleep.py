"""First come, first served, with machines that are switched off while they are idle."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from batkube.kernel.instants import Duration, Instant, seconds
from batkube.kernel.quantities import PODS
from batkube.platforms.model import Machine
from batkube.policies.interface import Decision, Policy, Start, SwitchOff, SwitchOn, View, WakeAt


class SleepingFcfs(Policy):
    """First come, first served; machines that have been idle for a while sleep until they are needed.

    A machine that has been idle for `idle` seconds is switched off. If the job at the head of the
    queue does not fit, as many machines are switched on as it lacks, lowest ids first. For runs
    with energy accounting in which jobs take whole machines.
    """

    def __init__(self, idle: float = 300.0) -> None:
        self._idle_timeout: Duration = seconds(idle)
        #: Machines that were switched off, and machines that were switched on and are not available yet.
        self._asleep: set[int] = set()
        self._waking: set[int] = set()
        self._available: set[int] = set()
        #: When each idle machine became idle.
        self._idle_since: dict[int, Instant] = {}

    def begin(self, machines: Sequence[Machine], rng: random.Random) -> None:
        """Update the machines that take jobs now."""
        super().begin(machines, rng)
        self._available = {number for number, machine in enumerate(machines) if machine.capacity[PODS] > 0}
        self._waking -= self._available

    def decide(self, view: View) -> Iterator[Decision]:
        """Start jobs from the head of the queue; then switch machines on for it, or idle ones off."""
        while view.head is not None and (placement := view.free.fit(view.head)) is not None:
            yield Start(view.head, placement)
        busy = {number for running in view.running for number in running.placement.machine_ids}
        free = sorted(self._available - busy - self._asleep)
        self._idle_since = {number: self._idle_since.get(number, view.now) for number in free}
        if view.head is not None:
            missing = view.head.size - len(free) - len(self._waking)
            to_wake = sorted(self._asleep - self._waking)[: max(0, missing)]
            if to_wake:
                self._waking.update(to_wake)
                self._asleep.difference_update(to_wake)
                yield SwitchOn(tuple(to_wake))
            return
        to_sleep = [number for number in free if view.now - self._idle_since[number] >= self._idle_timeout]
        if to_sleep:
            self._asleep.update(to_sleep)
            for number in to_sleep:
                del self._idle_since[number]
            yield SwitchOff(tuple(to_sleep))
        if self._idle_since:
            yield WakeAt(Instant(min(self._idle_since.values()) + self._idle_timeout))
