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

from batkube.execution.profiles.fluid_platform import FluidPlatform, ParallelTask
from batkube.fluid.tasks import Task
from batkube.kernel.errors import InputError
from batkube.kernel.instants import START, Instant
from batkube.platforms.simgrid.power import HostPower, power_of

_SECOND = 1e9


class _HostMeter:
    """The meter of one host."""

    __slots__ = ("is_loaded", "joules", "updated_at", "watts")

    def __init__(self) -> None:
        self.joules = 0.0
        self.updated_at = START
        #: Of a host at rest; one that works is looked at when it is read.
        self.watts = 0.0
        #: Whether it switches on or off, which keeps it busy without any task.
        self.is_loaded = False


class EnergyMeters:
    """The meters of all machines."""

    def __init__(self, platform: FluidPlatform, machines: Sequence[str]) -> None:
        """`machines` are the hosts whose energy counts. Raises InputError when the platform says nothing of one."""
        self.platform = platform
        self._power: dict[str, HostPower] = {}
        self._meters = {name: _HostMeter() for name in machines}
        #: How many tasks each has, those included that pay their latency.
        self._tasks = dict.fromkeys(machines, 0)
        #: Hosts that are looked at one by one, in the order in which that began.
        self._busy: dict[str, None] = {}
        #: All others together: their joules at the instant 0, if they had always drawn what they draw, and their watts.
        self._idle_joules = 0.0
        self._idle_watts = 0.0
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
            self._add_to_idle(name)
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
                self._update_busy(name, now if is_alone else self.updated_at(name))
            self._tasks[name] += 1

    def end_task(self, task: Task, now: Instant) -> None:
        """Hear that a task is about to end: it still holds what it took."""
        for name in self._machines_of(task):
            self._update_busy(name, now)
            self._tasks[name] -= 1

    def set_pstate(self, name: str, pstate: int, now: Instant, *, is_loaded: bool = False) -> None:
        """Let a machine be in another power state; one that only stands for switching on or off counts as loaded."""
        self._update_busy(name, now)
        self._meters[name].is_loaded = is_loaded
        draws = self._power[name].draws
        self.lowest_watts += draws[pstate].lowest - draws[self.platform.pstate(name)].lowest
        self.platform.set_pstate(name, pstate, now)

    def update(self, name: str, now: Instant) -> None:
        """Hear that something ends on a host, which has its meter brought up to date; some hosts have none."""
        if name in self._busy:
            self._update_busy(name, now)
        elif name in self._meters:
            meter = self._meters[name]
            meter.joules += meter.watts * (now - meter.updated_at) / _SECOND
            meter.updated_at = now

    # What they tell

    def updated_at(self, name: str) -> Instant:
        """Return when the meter of a machine was brought up to date last."""
        return max(self._meters[name].updated_at, self._read_at)

    def joules(self, names: Iterable[str], now: Instant) -> float:
        """Return what machines have used."""
        names = list(names)
        for name in names:
            self.update(name, now)
        return math.fsum([self._read(name, now) for name in names])

    def total_joules(self, now: Instant) -> float:
        """Return what all machines have used; all meters are read."""
        self._read_at = now
        for name in list(self._busy):
            self._read(name, now)
        at_work = [self._meters[name].joules for name in self._busy]
        return math.fsum([self._idle_joules, self._idle_watts * now / _SECOND, *at_work])

    # Inside

    def _machines_of(self, task: Task) -> list[str]:
        assert isinstance(task, ParallelTask)
        return [name for name in dict.fromkeys(task.hosts) if name in self._meters]

    def _read(self, name: str, now: Instant) -> float:
        meter = self._meters[name]
        if name not in self._busy:
            return meter.joules + meter.watts * (now - meter.updated_at) / _SECOND
        self._update_busy(name, now)
        if not self._tasks[name] and not meter.is_loaded:
            del self._busy[name]
            self._add_to_idle(name)
        return meter.joules

    def _update_busy(self, name: str, now: Instant) -> None:
        """Bring a meter up to date; its host is looked at by itself until it is read at rest."""
        meter = self._meters[name]
        watts = self._watts(name)
        if name not in self._busy:
            watts = meter.watts
            self._idle_watts -= watts
            self._idle_joules -= meter.joules - watts * meter.updated_at / _SECOND
            self._busy[name] = None
        meter.joules += watts * (now - meter.updated_at) / _SECOND
        meter.updated_at = now

    def _watts(self, name: str) -> float:
        """Return what a machine draws with the load it has."""
        cores = self.platform.cores(name)
        if self._meters[name].is_loaded:
            load = 1.0 / self.platform.host(name).cores
        else:
            load = cores.load / cores.capacity if cores.capacity > 0 else 1.0
        return self._power[name].draws[self.platform.pstate(name)].at(load)

    def _add_to_idle(self, name: str) -> None:
        """Let a machine without work join the others at rest."""
        meter = self._meters[name]
        meter.watts = self._power[name].draws[self.platform.pstate(name)].idle
        self._idle_watts += meter.watts
        self._idle_joules += meter.joules - meter.watts * meter.updated_at / _SECOND
