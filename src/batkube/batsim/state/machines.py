"""The machines of a simulation: the state of each, since when, and its jobs.

Imitated: Batsim 4.2.1, src/machines.cpp.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from batkube.kernel.instants import START, Instant
from batkube.kernel.intervals import members


class MachineState(enum.StrEnum):
    """The state of a machine, with Batsim's names (machine_state_to_string in src/machines.cpp)."""

    SLEEPING = "sleeping"
    SWITCHING_ON = "switching_on"
    SWITCHING_OFF = "switching_off"
    IDLE = "idle"
    COMPUTING = "computing"
    UNAVAILABLE = "unavailable"


@dataclass(slots=True, eq=False)
class LiveMachine:
    """A machine and its state."""

    id: int
    name: str
    properties: Mapping[str, str]
    zone_properties: Mapping[str, str]
    is_storage: bool = False
    state: MachineState = MachineState.IDLE
    since: Instant = START
    #: The ids of its running jobs.
    jobs: set[str] = field(default_factory=set)


class Machines:
    """All machines except the master; the id of a machine is its position."""

    def __init__(self, machines: Sequence[LiveMachine], master: str) -> None:
        self.all = machines
        #: The host of all actors that are not jobs.
        self.master = master
        # Storage hosts are not counted initially, but their state changes are (Batsim: Machines::create_machines).
        self.counts = Counter({MachineState.IDLE: sum(not machine.is_storage for machine in machines)})
        #: The total time of all machines in each state, up to their last state change, in nanoseconds.
        self.times: Counter[MachineState] = Counter()
        #: Called after each change that machine_states.csv records.
        self.on_change: Callable[[Instant], None] = lambda now: None

    def select(self, mask: int) -> Iterable[LiveMachine]:
        """Return the machines of a set of ids, all of which must exist."""
        return (self.all[number] for number in members(mask))

    def first(self, mask: int) -> LiveMachine:
        """Return the machine with the lowest id of a set."""
        return self.all[(mask & -mask).bit_length() - 1]

    def all_exist(self, mask: int) -> bool:
        """Return whether each id of a set is that of a machine."""
        return mask.bit_length() <= len(self.all)

    def set_state(self, machine: LiveMachine, state: MachineState, now: Instant) -> None:
        """Change the state of a machine."""
        self.times[machine.state] += now - machine.since
        self.counts[machine.state] -= 1
        self.counts[state] += 1
        machine.state, machine.since = state, now

    def start_job(self, job_id: str, mask: int, now: Instant) -> None:
        """Record the start of a job on machines; an unavailable machine counts as computing again, as in Batsim."""
        for machine in self.select(mask):
            self.set_state(machine, MachineState.COMPUTING, now)
            machine.jobs.add(job_id)
        self.on_change(now)

    def end_job(self, job_id: str, mask: int, now: Instant) -> None:
        """Record the end of a job; machines that have become unavailable stay unavailable."""
        for machine in self.select(mask):
            machine.jobs.discard(job_id)
            if not machine.jobs and machine.state is not MachineState.UNAVAILABLE:
                self.set_state(machine, MachineState.IDLE, now)
        self.on_change(now)
