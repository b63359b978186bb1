"""Energy meters of hosts, as SimGrid computes energy for Batsim (SimGrid 3.32, src/plugins/host_energy.cpp).

The power of a host depends on its load. A meter is updated when a task on the host ends, when a task begins that runs
on this host only, when the power state changes, and when the meter is read. Each update adds the energy since the last
one at the power of the load just before. So the latency before a task of several processes, and a pause within a job,
count at the power of the task. All meters are read when a job starts or ends.

Idle hosts are not updated one by one: together they draw constant power, so reading them is cheap.
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
    """The energy meter of one host."""

    __slots__ = ("is_loaded", "joules", "updated_at", "watts")

    def __init__(self) -> None:
        self.joules = 0.0
        self.updated_at = START
        #: The power of an idle host; that of a busy one is computed on update.
        self.watts = 0.0
        #: Whether the host is switching on or off, which makes it busy without a task.
        self.is_loaded = False


class EnergyMeters:
    """The energy meters of all machines."""

    def __init__(self, platform: FluidPlatform, machines: Sequence[str]) -> None:
        """`machines` are the hosts that are metered. Raise InputError if the platform has no power for one of them."""
        self.platform = platform
        self._power: dict[str, HostPower] = {}
        self._meters = {name: _HostMeter() for name in machines}
        #: The number of tasks on each machine, including those in their latency phase.
        self._tasks = dict.fromkeys(machines, 0)
        #: Hosts that are metered one by one, in the order in which they became busy.
        self._busy: dict[str, None] = {}
        #: The sums over all idle hosts: their joules, extrapolated to instant 0 at constant power, and their watts.
        self._idle_joules = 0.0
        self._idle_watts = 0.0
        #: When all meters were last read.
        self._read_at = START
        for name in machines:
            power = power_of(platform.network.source, platform.host(name))
            if power is None:
                raise InputError(
                    platform.network.source,
                    at=f"host {name!r}",
                    problem="has no power values, which the energy model needs",
                    remedy="add the property wattage_per_state, or run without energy",
                )
            self._power[name] = power
            self._add_to_idle(name)
        #: The sum of the lowest power of each machine in its current power state.
        self.lowest_watts = math.fsum(power.draws[platform.pstate(name)].lowest for name, power in self._power.items())

    def power(self, name: str) -> HostPower:
        """Return the power values of a machine in the platform file."""
        return self._power[name]

    # Notifications

    def begin_task(self, task: Task, now: Instant) -> None:
        """Handle the start of a task; only a task on a single host updates the meter of a busy host."""
        assert isinstance(task, ParallelTask)
        is_alone = len(task.hosts) == 1
        for name in self._machines_of(task):
            if is_alone or name not in self._busy:
                self._update_busy(name, now if is_alone else self.updated_at(name))
            self._tasks[name] += 1

    def end_task(self, task: Task, now: Instant) -> None:
        """Handle the end of a task, which still holds its resources."""
        for name in self._machines_of(task):
            self._update_busy(name, now)
            self._tasks[name] -= 1

    def set_pstate(self, name: str, pstate: int, now: Instant, *, is_loaded: bool = False) -> None:
        """Change the power state of a machine; `is_loaded` marks a transition state, which counts as load."""
        self._update_busy(name, now)
        self._meters[name].is_loaded = is_loaded
        draws = self._power[name].draws
        self.lowest_watts += draws[pstate].lowest - draws[self.platform.pstate(name)].lowest
        self.platform.set_pstate(name, pstate)

    def update(self, name: str, now: Instant) -> None:
        """Update the meter of a host, if it has one."""
        if name in self._busy:
            self._update_busy(name, now)
        elif name in self._meters:
            meter = self._meters[name]
            meter.joules += meter.watts * (now - meter.updated_at) / _SECOND
            meter.updated_at = now

    # Readings

    def updated_at(self, name: str) -> Instant:
        """Return when the meter of a machine was last updated."""
        return max(self._meters[name].updated_at, self._read_at)

    def joules(self, names: Iterable[str], now: Instant) -> float:
        """Return the energy that machines have used."""
        names = list(names)
        for name in names:
            self.update(name, now)
        return math.fsum([self._read(name, now) for name in names])

    def total_joules(self, now: Instant) -> float:
        """Return the energy that all machines have used; this reads all meters."""
        self._read_at = now
        for name in list(self._busy):
            self._read(name, now)
        at_work = [self._meters[name].joules for name in self._busy]
        return math.fsum([self._idle_joules, self._idle_watts * now / _SECOND, *at_work])

    # Internals

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
        """Update a meter; its host counts as busy until it is read without load."""
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
        """Return the power of a machine at its current load."""
        cores = self.platform.cores(name)
        if self._meters[name].is_loaded:
            load = 1.0 / self.platform.host(name).cores
        else:
            load = cores.load / cores.capacity if cores.capacity > 0 else 1.0
        return self._power[name].draws[self.platform.pstate(name)].at(load)

    def _add_to_idle(self, name: str) -> None:
        """Add a machine without load to the sums of idle hosts."""
        meter = self._meters[name]
        meter.watts = self._power[name].draws[self.platform.pstate(name)].idle
        self._idle_watts += meter.watts
        self._idle_joules += meter.joules - meter.watts * meter.updated_at / _SECOND
