"""The machines of a simulation: what each is doing, since when, and for which jobs."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from batkube.kernel.instants import START, Instant
from batkube.kernel.intervals import members


class MachineState(enum.StrEnum):
    """What a machine is doing, in Batsim's words."""

    SLEEPING = "sleeping"
    SWITCHING_ON = "switching_on"
    SWITCHING_OFF = "switching_off"
    IDLE = "idle"
    COMPUTING = "computing"
    UNAVAILABLE = "unavailable"


@dataclass(slots=True, eq=False)
class LiveMachine:
    """A machine and what it is doing."""

    id: int
    name: str
    properties: Mapping[str, str]
    zone_properties: Mapping[str, str]
    is_storage: bool = False
    state: MachineState = MachineState.IDLE
    since: Instant = START
    #: Ids of the jobs that run on it.
    jobs: set[str] = field(default_factory=set)


class Machines:
    """All machines but the master; their ids are their positions."""

    def __init__(self, machines: Sequence[LiveMachine], master: str) -> None:
        self.all = machines
        #: The host where everything lives that is no job.
        self.master = master
        # Hosts of storage are not counted at first, and move the counts as others do (Batsim: create_machines).
        self.counts = Counter({MachineState.IDLE: sum(not machine.is_storage for machine in machines)})
        #: Nanoseconds that machines spent in each state they have left.
        self.times: Counter[MachineState] = Counter()
        #: Told of every change that belongs in machine_states.csv.
        self.on_change: Callable[[Instant], None] = lambda now: None

    def select(self, mask: int) -> Iterable[LiveMachine]:
        """Return the machines of a set of ids, which must exist."""
        return (self.all[number] for number in members(mask))

    def first(self, mask: int) -> LiveMachine:
        """Return the machine of the lowest id in a set."""
        return self.all[(mask & -mask).bit_length() - 1]

    def all_exist(self, mask: int) -> bool:
        """Return whether there is a machine of each id."""
        return mask.bit_length() <= len(self.all)

    def set_state(self, machine: LiveMachine, state: MachineState, now: Instant) -> None:
        """Have a machine do something else."""
        self.times[machine.state] += now - machine.since
        self.counts[machine.state] -= 1
        self.counts[state] += 1
        machine.state, machine.since = state, now

    def start_job(self, job_id: str, mask: int, now: Instant) -> None:
        """A job begins on machines; one that is unavailable counts as computing again, as in Batsim."""
        for machine in self.select(mask):
            self.set_state(machine, MachineState.COMPUTING, now)
            machine.jobs.add(job_id)
        self.on_change(now)

    def end_job(self, job_id: str, mask: int, now: Instant) -> None:
        """A job ends; machines that became unavailable meanwhile stay so."""
        for machine in self.select(mask):
            machine.jobs.discard(job_id)
            if not machine.jobs and machine.state is not MachineState.UNAVAILABLE:
                self.set_state(machine, MachineState.IDLE, now)
        self.on_change(now)
