"""The power states of machines: speeds, sleep, and the transitions between them.

Switching between speeds is immediate. Switching to sleep and back goes through a transition power state, and takes as
long as one flop at its speed. RESOURCE_STATE_CHANGED is sent when the last machine of a request has switched.

Imitated: Batsim 4.2.1, src/pstate.cpp, and server_on_pstate_modification in src/server.cpp.
"""

from __future__ import annotations

import functools

from batkube.batsim.server.batsim_server import BatsimServer
from batkube.batsim.server.meter_reads import read_meters
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel, KernelCall, Sleep, Spawn
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.state.errors import BatsimAbort
from batkube.batsim.state.machines import LiveMachine, Machines, MachineState
from batkube.execution.energy.log import SWITCHING_OFF, SWITCHING_ON, EnergyLog
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.platforms.simgrid.power import HostPower

#: The power state in pstate_changes.csv of a request for a transition power state.
_UNKNOWN_TRANSITION = -42


class _SwitchRequest:
    """A request to switch machines to a power state, and its pending machines.

    A request that a machine cannot fulfil when it is made stays pending, as in Batsim.
    """

    def __init__(self, machines: int, state: int) -> None:
        self.machines = self.pending = machines
        self.state = state


class MachinePower:
    """Measures the energy of machines, and switches their power states."""

    def __init__(
        self, kernel: ActorKernel, mailbox: Mailbox, server: BatsimServer, machines: Machines, energy_log: EnergyLog
    ) -> None:
        self._kernel = kernel
        self._mailbox = mailbox
        self._server = server
        self._machines = machines
        self._energy_log = energy_log
        self._requests: list[_SwitchRequest] = []

    def consumed_joules(self, now: Instant) -> float:
        """Return the energy of all machines since the start of the simulation."""
        return self._energy_log.meters.total_joules(now)

    def read_meters(self) -> ActorCode:
        """Read the meters of all machines."""
        yield from read_meters(self._kernel, self._energy_log.meters, self._machines.all)

    def set_state(self, machines: int, state: int) -> ActorCode:
        """Begin to switch machines to a power state."""
        yield from self.read_meters()
        now = self._kernel.now
        self._requests.append(_SwitchRequest(machines, state))
        self._record_request(machines, _transition(self._power(self._machines.first(machines)), state), now)
        for machine in self._machines.select(machines):
            power, current = self._power(machine), self._pstate(machine)
            if power.can_compute_in(current) and power.can_compute_in(state):
                yield KernelCall(functools.partial(self._change_speed, machine, state, now))
                self._complete_machine(machine, state, is_immediate=True)
                continue
            if power.can_compute_in(current) and state in power.sleep_states:
                if machine.jobs:
                    raise BatsimAbort(f"jobs are running on machine {machine.id}")
                self._machines.set_state(machine, MachineState.SWITCHING_OFF, now)
                switch = self._switch_through(machine, power.sleep_states[state].off, state, MachineState.SLEEPING)
            elif current in power.sleep_states and power.can_compute_in(state):
                self._machines.set_state(machine, MachineState.SWITCHING_ON, now)
                switch = self._switch_through(machine, power.sleep_states[current].on, state, MachineState.IDLE)
            elif current in power.sleep_states or not 0 <= state < len(power.draws):
                raise switch_forbidden(machine, current, state)
            else:
                self._ignore_request(machine, current, state)
                continue
            yield Spawn(switch, machine.name)
            self._server.pending["switches"] += 1

    def _power(self, machine: LiveMachine) -> HostPower:
        return self._energy_log.meters.power(machine.name)

    def _switch_through(
        self, machine: LiveMachine, transition: int, state: int, machine_state: MachineState
    ) -> ActorCode:
        """Switch a machine to a power state through a transition power state (Batsim: switch_on_machine_process)."""
        yield KernelCall(lambda: self._start_switch(machine, transition, state, self._kernel.now))
        speed = self._energy_log.meters.platform.host(machine.name).speeds_flops[transition]
        # Setting the amount, the host and the priority of an execution (SimGrid: this_actor::execute in s4u_Actor.cpp).
        for _ in range(3):
            yield KernelCall()
        yield Sleep(seconds(1.0 / speed) or Duration(1), is_work=True)
        yield KernelCall(lambda: self._finish_switch(machine, state, self._kernel.now))
        self._machines.set_state(machine, machine_state, self._kernel.now)
        yield from self._mailbox.put(functools.partial(self._on_switched, machine, state))

    def _on_switched(self, machine: LiveMachine, state: int) -> ActorCode:
        self._complete_machine(machine, state, is_immediate=False)
        self._server.pending["switches"] -= 1
        yield from ()

    def _complete_machine(self, machine: LiveMachine, state: int, *, is_immediate: bool) -> None:
        """Mark a machine as switched in the first request that waits for it; report a request that is complete."""
        bit = 1 << machine.id
        request = next(request for request in self._requests if request.state == state and request.pending & bit)
        request.pending &= ~bit
        if not request.pending:
            self._requests.remove(request)
            self._record_completion(request.machines, request.state, self._kernel.now)
            self._server.on_machines_switched(request.machines, request.state, is_immediate=is_immediate)

    def _ignore_request(self, machine: LiveMachine, current: int, state: int) -> None:
        """Ignore a request for a machine that is switching, or for a transition power state.

        Batsim logs an error and continues; the request stays pending.
        """

    # The effects of a switch, which ClusterPower overrides

    def _pstate(self, machine: LiveMachine) -> int:
        return self._energy_log.meters.platform.pstate(machine.name)

    def _record_request(self, machines: int, transition: int, now: Instant) -> None:
        self._energy_log.record_switch_request(machines, transition, now)

    def _record_completion(self, machines: int, state: int, now: Instant) -> None:
        self._energy_log.record_switch_end(machines, state, now)

    def _change_speed(self, machine: LiveMachine, state: int, now: Instant) -> None:
        self._energy_log.meters.set_pstate(machine.name, state, now)

    def _start_switch(self, machine: LiveMachine, transition: int, state: int, now: Instant) -> None:
        """Begin to switch to the power state `state`, through `transition`."""
        self._energy_log.meters.set_pstate(machine.name, transition, now)

    def _finish_switch(self, machine: LiveMachine, state: int, now: Instant) -> None:
        self._energy_log.meters.set_pstate(machine.name, state, now)


def _transition(power: HostPower, state: int) -> int:
    """Return the power state that pstate_changes.csv has for machines until they have reached `state`."""
    if power.can_compute_in(state):
        return SWITCHING_ON
    return SWITCHING_OFF if state in power.sleep_states else _UNKNOWN_TRANSITION


def switch_forbidden(machine: LiveMachine, current: int, state: int) -> BatsimAbort:
    """Return the error for a switch that no machine supports."""
    return BatsimAbort(
        f"Switching machine {machine.id} ('{machine.name}') from pstate {current} to {state} is forbidden"
    )
