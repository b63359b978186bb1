"""Power control of a simulated cluster for a scheduler of Batsim's protocol.

The scheduler receives the same answers as from a Batsim (`server/power.py`). Its requests become decisions of a policy,
which the cluster carries out as for any policy (`execution/energy/power_switches.py`), in the same time.
"""

from __future__ import annotations

from collections.abc import Iterator

from batkube.batsim.server.batsim_server import BatsimServer
from batkube.batsim.server.power import MachinePower, switch_forbidden
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.state.errors import BatsimAbort
from batkube.batsim.state.machines import LiveMachine, Machines
from batkube.execution.energy.log import EnergyLog
from batkube.kernel.instants import Instant
from batkube.policies.interface import SwitchOff, SwitchOn


class NoPower:
    """The power control of a run without energy accounting: it rejects all requests."""

    #: The machines that run no jobs because the scheduler has switched them off.
    switched_off = 0

    def consumed_joules(self, now: Instant) -> float:
        """Reject the request."""
        raise BatsimAbort(
            "QUERY: the scheduler requests consumed_energy, and the run has no energy accounting: add --energy"
        )

    def read_meters(self) -> ActorCode:
        """Do nothing: there are no meters."""
        yield from ()

    def set_state(self, machines: int, state: int) -> ActorCode:
        """Reject the request."""
        raise BatsimAbort(
            "SET_RESOURCE_STATE: the scheduler switches machines, and the run has no energy accounting: add --energy"
        )

    def on_machines_changed(self, present: int) -> None:
        """Do nothing: no machine is switched off."""

    def decisions(self) -> Iterator[SwitchOff | SwitchOn]:
        """Yield nothing."""
        yield from ()


class ClusterPower(MachinePower):
    """Measures the energy of the machines of a cluster, and requests switches from it."""

    def __init__(
        self, kernel: ActorKernel, mailbox: Mailbox, server: BatsimServer, machines: Machines, energy_log: EnergyLog
    ) -> None:
        super().__init__(kernel, mailbox, server, machines, energy_log)
        #: The machines that run no jobs because the scheduler has switched them off, and those of them that are awake
        #: again but that the cluster may not have uncordoned yet.
        self.switched_off = self._awake = 0
        #: The power states that the scheduler assumes; its requests of this instant are not carried out yet.
        self._pstates: dict[str, int] = {}
        #: The speeds of machines before they slept, to which they return.
        self._work_pstates: dict[str, int] = {}
        self._to_sleep: list[int] = []
        self._to_wake: list[int] = []

    def on_machines_changed(self, present: int) -> None:
        """Handle a change of the machines that take jobs: those that are awake and take jobs are on again."""
        self.switched_off &= ~(self._awake & present)
        self._awake &= ~present

    def decisions(self) -> Iterator[SwitchOff | SwitchOn]:
        """Yield the switches that were requested since the last call."""
        to_sleep, self._to_sleep = self._to_sleep, []
        to_wake, self._to_wake = self._to_wake, []
        if to_wake:
            yield SwitchOn(tuple(to_wake))
        if to_sleep:
            yield SwitchOff(tuple(to_sleep))

    # Differences from a Batsim: the component that switches the nodes of the cluster writes the energy log.

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

    def _start_switch(self, machine: LiveMachine, transition: int, state: int, now: Instant) -> None:
        sleep_states = self._power(machine).sleep_states
        if state in sleep_states:
            first = next(iter(sleep_states))
            if state != first:
                raise _unsupported_switch(machine, f"to the sleep state {state}, and its first sleep state is {first}")
            self._work_pstates[machine.name] = self._pstate(machine)
            self._to_sleep.append(machine.id)
            self.switched_off |= 1 << machine.id
        else:
            before = self._work_pstates[machine.name]
            if state != before:
                raise _unsupported_switch(machine, f"on to speed {state}, and it had speed {before} before it slept")
            self._to_wake.append(machine.id)
        self._pstates[machine.name] = transition

    def _finish_switch(self, machine: LiveMachine, state: int, now: Instant) -> None:
        self._pstates[machine.name] = state
        if state not in self._power(machine).sleep_states:
            self._awake |= 1 << machine.id


def _unsupported_switch(machine: LiveMachine, change: str) -> BatsimAbort:
    return BatsimAbort(
        f"SET_RESOURCE_STATE: the scheduler switches machine {machine.id} ('{machine.name}') {change}: on a cluster "
        "machines go to their first sleep state and return to their last speed; use `batkube batsim -E`"
    )
