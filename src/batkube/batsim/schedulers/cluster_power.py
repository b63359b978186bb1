"""Machines of a cluster that a scheduler of Batsim's protocol switches off and on.

The scheduler is answered as by a Batsim (`power`); what it wants becomes a policy's decision, and the cluster's nodes
are closed, sleep, wake and are opened again as those of any policy (`execution.power_switches`), in the same time.
"""

from __future__ import annotations

from collections.abc import Iterator

from batkube.batsim.server.batsim_server import BatsimServer
from batkube.batsim.server.power import MachinePower, switch_forbidden
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.state.errors import BatsimAbort
from batkube.batsim.state.machines import LiveMachine, Machines
from batkube.execution.profiles.energy_log import EnergyLog
from batkube.kernel.instants import Instant
from batkube.policies.interface import SwitchOff, SwitchOn


class NoPower:
    """A run that counts no energy: it has none to tell, and machines that are always on."""

    #: The machines that take no jobs because the scheduler switched them off.
    away = 0

    def consumed_joules(self, now: Instant) -> float:
        """Refuse to tell."""
        raise BatsimAbort("QUERY: the scheduler asks for consumed_energy, and the run counts none: add --energy")

    def read_meters(self) -> ActorCode:
        """There are none."""
        yield from ()

    def set_state(self, machines: int, state: int) -> ActorCode:
        """Refuse to switch machines."""
        raise BatsimAbort(
            "SET_RESOURCE_STATE: the scheduler switches machines, and the run counts no energy: add --energy"
        )

    def on_machines_back(self, present: int) -> None:
        """No machine was away."""

    def decisions(self) -> Iterator[SwitchOff | SwitchOn]:
        """There are none."""
        yield from ()


class ClusterPower(MachinePower):
    """What machines draw, and how the cluster is asked to switch them."""

    def __init__(
        self, scene: ActorKernel, mailbox: Mailbox, server: BatsimServer, machines: Machines, book: EnergyLog
    ) -> None:
        super().__init__(scene, mailbox, server, machines, book)
        #: The machines that take no jobs because the scheduler switched them off, and those of them that are awake
        #: again, which the cluster may not have told yet.
        self.away = self._awake = 0
        #: The power states as the scheduler knows them: its wishes of this instant are not carried out yet.
        self._pstates: dict[str, int] = {}
        #: The states that machines worked in before they slept, which they come back to.
        self._work_pstates: dict[str, int] = {}
        self._to_sleep: list[int] = []
        self._to_wake: list[int] = []

    def on_machines_back(self, present: int) -> None:
        """Machines that are awake, and take jobs again, are away no more."""
        self.away &= ~(self._awake & present)
        self._awake &= ~present

    def decisions(self) -> Iterator[SwitchOff | SwitchOn]:
        """Yield what the cluster is to do."""
        to_sleep, self._to_sleep = self._to_sleep, []
        to_wake, self._to_wake = self._to_wake, []
        if to_wake:
            yield SwitchOn(tuple(to_wake))
        if to_sleep:
            yield SwitchOff(tuple(to_sleep))

    # What differs from a Batsim: its book is kept by whoever switches the cluster's machines.

    def _pstate(self, machine: LiveMachine) -> int:
        return self._pstates.get(machine.name, super()._pstate(machine))

    def _record_request(self, machines: int, transition: int, now: Instant) -> None:
        pass

    def _record_completion(self, machines: int, state: int, now: Instant) -> None:
        pass

    def _ignore_request(self, machine: LiveMachine, current: int, state: int) -> None:
        raise switch_forbidden(machine, current, state)

    def _change_speed(self, machine: LiveMachine, state: int, now: Instant) -> None:
        if state != self._pstate(machine):
            raise _unsupported_switch(machine, f"from speed {self._pstate(machine)} to {state}")

    def _start_switch(self, machine: LiveMachine, way: int, goal: int, now: Instant) -> None:
        sleeps = self._power(machine).sleep_states
        if goal in sleeps:
            if goal != next(iter(sleeps)):
                raise _unsupported_switch(
                    machine, f"to sleep in power state {goal}, and its first sleep is {next(iter(sleeps))}"
                )
            self._work_pstates[machine.name] = self._pstate(machine)
            self._to_sleep.append(machine.id)
            self.away |= 1 << machine.id
        else:
            before = self._work_pstates[machine.name]
            if goal != before:
                raise _unsupported_switch(machine, f"on to speed {goal}, and it went to sleep from {before}")
            self._to_wake.append(machine.id)
        self._pstates[machine.name] = way

    def _finish_switch(self, machine: LiveMachine, state: int, now: Instant) -> None:
        self._pstates[machine.name] = state
        if state not in self._power(machine).sleep_states:
            self._awake |= 1 << machine.id


def _unsupported_switch(machine: LiveMachine, what: str) -> BatsimAbort:
    return BatsimAbort(
        f"SET_RESOURCE_STATE: the scheduler switches machine {machine.id} ('{machine.name}') {what}: on a cluster "
        "machines go to their first sleep and come back to the speed they had; use `batkube batsim -E`"
    )
