"""First come, first served, with machines that sleep while nobody needs them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from batkube.kernel.instants import Duration, Instant, seconds
from batkube.kernel.quantities import PODS
from batkube.platforms.model import Machine
from batkube.policies.interface import Decision, Policy, Start, SwitchOff, SwitchOn, View, WakeAt


class SleepingFcfs(Policy):
    """First come, first served; machines that nobody has used for a while sleep until they are needed.

    A machine that was idle for `idle` seconds is switched off. When the job at the head of the queue does not fit, as
    many machines are woken as it lacks, lowest ids first. For runs that count energy, where jobs take machines whole.
    """

    def __init__(self, idle: float = 300.0) -> None:
        self._idle_timeout: Duration = seconds(idle)
        #: Machines that sleep or are on their way there, and those that were woken and are not awake yet.
        self._asleep: set[int] = set()
        self._waking: set[int] = set()
        self._available: set[int] = set()
        #: Since when machines are idle.
        self._idle_since: dict[int, Instant] = {}

    def begin(self, machines: Sequence[Machine], rng: random.Random) -> None:
        """Take note of which machines take jobs now."""
        super().begin(machines, rng)
        self._available = {number for number, machine in enumerate(machines) if machine.capacity[PODS] > 0}
        self._waking -= self._available

    def decide(self, view: View) -> Iterator[Decision]:
        """Start jobs from the head of the queue; wake machines for it, or let idle ones sleep."""
        while view.head is not None and (placement := view.free.fit(view.head)) is not None:
            yield Start(view.head, placement)
        busy = {number for running in view.running for number in running.placement.machine_ids}
        free = sorted(self._available - busy - self._asleep)
        self._idle_since = {number: self._idle_since.get(number, view.now) for number in free}
        if view.head is not None:
            missing = view.head.size - len(free) - len(self._waking)
            woken = sorted(self._asleep - self._waking)[: max(0, missing)]
            if woken:
                self._waking.update(woken)
                self._asleep.difference_update(woken)
                yield SwitchOn(tuple(woken))
            return
        tired = [number for number in free if view.now - self._idle_since[number] >= self._idle_timeout]
        if tired:
            self._asleep.update(tired)
            for number in tired:
                del self._idle_since[number]
            yield SwitchOff(tuple(tired))
        if self._idle_since:
            yield WakeAt(Instant(min(self._idle_since.values()) + self._idle_timeout))
