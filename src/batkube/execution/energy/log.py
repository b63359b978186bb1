"""Records energy as Batsim does: at each start and end of a job, and at each change of a power state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from batkube.execution.energy.meters import EnergyMeters
from batkube.execution.profiles.fluid_platform import FluidPlatform
from batkube.kernel.errors import InputError
from batkube.kernel.instants import START, Instant
from batkube.platforms.model import Platform

#: The power states in pstate_changes.csv while machines switch on or off.
SWITCHING_ON, SWITCHING_OFF = -1, -2


class EnergyReading(NamedTuple):
    """A row of consumed_energy.csv."""

    at: Instant
    joules: float
    #: `s`: a job starts, `e`: a job ends, `p`: a power state changes.
    event: str
    lowest_watts: float


class PstateChange(NamedTuple):
    """A row of pstate_changes.csv; machines are a set of ids (kernel/intervals.py)."""

    at: Instant
    machines: int
    pstate: int


class EnergyLog:
    """The readings of the energy meters of a run."""

    @classmethod
    def of_platform(cls, platform: Platform, hosts: FluidPlatform) -> EnergyLog:
        """Return the log of a run on a platform with these hosts. Raise InputError if it has no power values."""
        names = [machine.name for machine in platform.machines]
        if any(name not in hosts.network.hosts for name in names):
            raise InputError(
                platform.source,
                problem="has no power values for its machines, which the energy model needs",
                remedy="use a SimGrid file (.xml) whose hosts have the property wattage_per_state",
            )
        return cls(EnergyMeters(hosts, names), names)

    def __init__(self, meters: EnergyMeters, machines: Sequence[str]) -> None:
        self.meters = meters
        self.readings: list[EnergyReading] = []
        self.pstate_changes: list[PstateChange] = []
        #: The number of switch requests, and the total number of machines in them.
        self.requests = 0
        self.switches = 0
        #: By job: the energy of its machines while it ran, including that of other jobs on them, as Batsim counts it.
        self.joules_by_job: dict[str, float] = {}
        by_pstate: dict[int, int] = {}
        for number, name in enumerate(machines):
            pstate = meters.platform.pstate(name)
            by_pstate[pstate] = by_pstate.get(pstate, 0) | 1 << number
        self.pstate_changes += [PstateChange(START, mask, pstate) for pstate, mask in sorted(by_pstate.items())]

    def record_job_start(self, key: str, hosts: Sequence[str], now: Instant) -> None:
        """Record the start of a job on hosts."""
        self.joules_by_job[key] = self.joules_by_job.get(key, 0.0) - self.meters.joules(dict.fromkeys(hosts), now)
        self._record_reading("s", now)

    def record_job_end(self, key: str, hosts: Sequence[str], now: Instant) -> None:
        """Record the end of a job."""
        self.joules_by_job[key] += self.meters.joules(dict.fromkeys(hosts), now)
        self._record_reading("e", now)

    def record_switch_request(self, machines: int, transition: int, now: Instant) -> None:
        """Record a request to switch machines on or off."""
        self.requests += 1
        self.switches += machines.bit_count()
        self._record_reading("p", now)
        self.pstate_changes.append(PstateChange(now, machines, transition))

    def record_switch_end(self, machines: int, pstate: int, now: Instant) -> None:
        """Record that machines have reached the requested power state."""
        self.pstate_changes.append(PstateChange(now, machines, pstate))
        self._record_reading("p", now)

    @property
    def last_job_joules(self) -> float | None:
        """The energy of all machines at the end of the last job (Batsim: consumed_joules); None if no job has ended."""
        return next((reading.joules for reading in reversed(self.readings) if reading.event == "e"), None)

    def _record_reading(self, event: str, now: Instant) -> None:
        self.readings.append(EnergyReading(now, self.meters.total_joules(now), event, self.meters.lowest_watts))
