"""How much energy hosts have used, as SimGrid counts it for Batsim (SimGrid 3.32, src/plugins/host_energy.cpp).

The power of a host is that of its load. A meter is brought up to date when a task ends on the host, when one begins
that computes nowhere else, when its power state changes and when it is read; for the time since the last of these it
takes the power of the load just before. So what is in front of a task of several processes counts as its work does: its
moments of latency, and a pause within a job. When jobs begin or end, all are read.

Hosts without a task are not touched one by one: together they draw a constant power, and cost nothing to read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from batkube.execution.fluid_platform import FluidPlatform, ParallelTask
from batkube.fluid.tasks import Task
from batkube.kernel.errors import InputError
from batkube.kernel.instants import START, Instant
from batkube.platforms.power import HostPower, power_of

_SECOND = 1e9


class _Meter:
    """The meter of one host."""

    __slots__ = ("is_loaded", "joules", "since", "watts")

    def __init__(self) -> None:
        self.joules = 0.0
        self.since = START
        #: Of a host at rest; one that works is looked at when it is read.
        self.watts = 0.0
        #: Whether it switches on or off, which keeps it busy without any task.
        self.is_loaded = False


class Meters:
    """The meters of all machines."""

    def __init__(self, platform: FluidPlatform, machines: Sequence[str]) -> None:
        """`machines` are the hosts whose energy counts. Raises InputError when the platform says nothing of one."""
        self.platform = platform
        self._power: dict[str, HostPower] = {}
        self._meters = {name: _Meter() for name in machines}
        #: How many tasks each has, those included that pay their latency.
        self._tasks = dict.fromkeys(machines, 0)
        #: Hosts that are looked at one by one, in the order in which that began.
        self._busy: dict[str, None] = {}
        #: All others together: their joules at the instant 0, if they had always drawn what they draw, and their watts.
        self._rest_joules = 0.0
        self._rest_watts = 0.0
        #: When all meters were read last.
        self._read_at = START
        for name in machines:
            power = power_of(platform.network.source, platform.host(name))
            if power is None:
                raise InputError(
                    platform.network.source,
                    at=f"host {name!r}",
                    problem="nothing is said of its power, and energy is asked for",
                    remedy="give it the property wattage_per_state, or do not ask for energy",
                )
            self._power[name] = power
            self._rest(name)
        #: What all machines draw at least if they work, each in its power state.
        self.lowest_watts = math.fsum(power.draws[platform.pstate(name)].lowest for name, power in self._power.items())

    def power(self, name: str) -> HostPower:
        """Return what the file says of a machine's power."""
        return self._power[name]

    # What they hear

    def begin_task(self, task: Task, now: Instant) -> None:
        """Hear that a task begins, which brings no meter up to date but that of one that computes alone."""
        assert isinstance(task, ParallelTask)
        is_alone = len(task.hosts) == 1
        for name in self._machines_of(task):
            if is_alone or name not in self._busy:
                self._wake(name, now if is_alone else self.since(name))
            self._tasks[name] += 1

    def end_task(self, task: Task, now: Instant) -> None:
        """Hear that a task is about to end: it still holds what it took."""
        for name in self._machines_of(task):
            self._wake(name, now)
            self._tasks[name] -= 1

    def set_pstate(self, name: str, pstate: int, now: Instant, *, is_loaded: bool = False) -> None:
        """Let a machine be in another power state; one that only stands for switching on or off counts as loaded."""
        self._wake(name, now)
        self._meters[name].is_loaded = is_loaded
        draws = self._power[name].draws
        self.lowest_watts += draws[pstate].lowest - draws[self.platform.pstate(name)].lowest
        self.platform.set_pstate(name, pstate, now)

    def touch(self, name: str, now: Instant) -> None:
        """Hear that something ends on a host, which has its meter brought up to date; some hosts have none."""
        if name in self._busy:
            self._wake(name, now)
        elif name in self._meters:
            meter = self._meters[name]
            meter.joules += meter.watts * (now - meter.since) / _SECOND
            meter.since = now

    # What they tell

    def since(self, name: str) -> Instant:
        """Return when the meter of a machine was brought up to date last."""
        return max(self._meters[name].since, self._read_at)

    def joules(self, names: Iterable[str], now: Instant) -> float:
        """Return what machines have used."""
        names = list(names)
        for name in names:
            self.touch(name, now)
        return math.fsum([self._read(name, now) for name in names])

    def total(self, now: Instant) -> float:
        """Return what all machines have used; all meters are read."""
        self._read_at = now
        for name in list(self._busy):
            self._read(name, now)
        at_work = [self._meters[name].joules for name in self._busy]
        return math.fsum([self._rest_joules, self._rest_watts * now / _SECOND, *at_work])

    # Inside

    def _machines_of(self, task: Task) -> list[str]:
        assert isinstance(task, ParallelTask)
        return [name for name in dict.fromkeys(task.hosts) if name in self._meters]

    def _read(self, name: str, now: Instant) -> float:
        meter = self._meters[name]
        if name not in self._busy:
            return meter.joules + meter.watts * (now - meter.since) / _SECOND
        self._wake(name, now)
        if not self._tasks[name] and not meter.is_loaded:
            del self._busy[name]
            self._rest(name)
        return meter.joules

    def _wake(self, name: str, now: Instant) -> None:
        """Bring a meter up to date; its host is looked at by itself until it is read at rest."""
        meter = self._meters[name]
        watts = self._watts(name)
        if name not in self._busy:
            watts = meter.watts
            self._rest_watts -= watts
            self._rest_joules -= meter.joules - watts * meter.since / _SECOND
            self._busy[name] = None
        meter.joules += watts * (now - meter.since) / _SECOND
        meter.since = now

    def _watts(self, name: str) -> float:
        """Return what a machine draws with the load it has."""
        cores = self.platform.cores(name)
        if self._meters[name].is_loaded:
            load = 1.0 / self.platform.host(name).cores
        else:
            load = cores.load / cores.capacity if cores.capacity > 0 else 1.0
        return self._power[name].draws[self.platform.pstate(name)].at(load)

    def _rest(self, name: str) -> None:
        """Let a machine without work join the others at rest."""
        meter = self._meters[name]
        meter.watts = self._power[name].draws[self.platform.pstate(name)].idle
        self._rest_watts += meter.watts
        self._rest_joules += meter.joules - meter.watts * meter.since / _SECOND
