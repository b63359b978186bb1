"""Energy, written down as Batsim does: at each start and end of a job, and at each change of a power state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from batkube.execution.profiles.energy_meters import EnergyMeters
from batkube.kernel.instants import START, Instant

#: What pstate_changes.csv says while machines are on their way to a state of work, or of sleep.
SWITCHING_ON, SWITCHING_OFF = -1, -2


class EnergyReading(NamedTuple):
    """A row of consumed_energy.csv."""

    at: Instant
    joules: float
    #: `s`: a job starts, `e`: one ends, `p`: a power state changes.
    event: str
    lowest_watts: float


class PstateChange(NamedTuple):
    """A row of pstate_changes.csv; machines are a set of ids (kernel/intervals.py)."""

    at: Instant
    machines: int
    pstate: int


class EnergyLog:
    """What was read of the meters of a run."""

    def __init__(self, meters: EnergyMeters, machines: Sequence[str]) -> None:
        self.meters = meters
        self.readings: list[EnergyReading] = []
        self.pstate_changes: list[PstateChange] = []
        #: How often machines were asked to switch, and how many machines in all.
        self.requests = 0
        self.switches = 0
        #: By job: what its machines used while it ran, whoever else was on them, as Batsim counts it.
        self.joules_by_job: dict[str, float] = {}
        by_pstate: dict[int, int] = {}
        for number, name in enumerate(machines):
            pstate = meters.platform.pstate(name)
            by_pstate[pstate] = by_pstate.get(pstate, 0) | 1 << number
        self.pstate_changes += [PstateChange(START, mask, pstate) for pstate, mask in sorted(by_pstate.items())]

    def record_job_start(self, key: str, hosts: Sequence[str], now: Instant) -> None:
        """Take note that a job starts on hosts."""
        self.joules_by_job[key] = self.joules_by_job.get(key, 0.0) - self.meters.joules(dict.fromkeys(hosts), now)
        self._record_reading("s", now)

    def record_job_end(self, key: str, hosts: Sequence[str], now: Instant) -> None:
        """Take note that a job ends."""
        self.joules_by_job[key] += self.meters.joules(dict.fromkeys(hosts), now)
        self._record_reading("e", now)

    def record_switch_request(self, machines: int, transition: int, now: Instant) -> None:
        """Take note that machines are asked to switch."""
        self.requests += 1
        self.switches += machines.bit_count()
        self._record_reading("p", now)
        self.pstate_changes.append(PstateChange(now, machines, transition))

    def record_switch_end(self, machines: int, pstate: int, now: Instant) -> None:
        """Take note that machines are in the power state they were asked for."""
        self.pstate_changes.append(PstateChange(now, machines, pstate))
        self._record_reading("p", now)

    @property
    def last_job_joules(self) -> float | None:
        """What all machines had used when the last job ended (Batsim: consumed_joules); None if none has."""
        return next((reading.joules for reading in reversed(self.readings) if reading.event == "e"), None)

    def _record_reading(self, event: str, now: Instant) -> None:
        self.readings.append(EnergyReading(now, self.meters.total_joules(now), event, self.meters.lowest_watts))
