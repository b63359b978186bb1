"""Machines that draw power, and are switched to other speeds, to sleep and back.

A switch between speeds is immediate. The way to sleep, and back, leads through a power state that stands for it, and
takes as long as one flop at its speed. A request is answered when its last machine has switched.

Imitated: Batsim 4.2.1, src/pstate.cpp and server_on_pstate_modification.
"""

from __future__ import annotations

import functools

from batkube.batsim.server.batsim_server import BatsimServer
from batkube.batsim.server.meter_reads import read_meters
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel, KernelCall, Sleep, Spawn
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.state.errors import BatsimAbort
from batkube.batsim.state.machines import LiveMachine, Machines, MachineState
from batkube.execution.profiles.energy_log import SWITCHING_OFF, SWITCHING_ON, EnergyLog
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.platforms.simgrid.power import HostPower

#: What Batsim writes of a request for a power state that stands for a way.
_NO_TRANSITION = -42


class _SwitchRequest:
    """Machines that are to be in a power state, and those of them that are not yet.

    One that asks for what a machine cannot do at present is never done.
    """

    def __init__(self, machines: int, state: int) -> None:
        self.machines = self.pending = machines
        self.state = state


class MachinePower:
    """What machines draw, and how they are switched."""

    def __init__(
        self, scene: ActorKernel, mailbox: Mailbox, server: BatsimServer, machines: Machines, book: EnergyLog
    ) -> None:
        self._scene = scene
        self._mailbox = mailbox
        self._server = server
        self._machines = machines
        self._book = book
        self._requests: list[_SwitchRequest] = []

    def consumed_joules(self, now: Instant) -> float:
        """Return the joules of all machines since the beginning."""
        return self._book.meters.total_joules(now)

    def read_meters(self) -> ActorCode:
        """Have all meters read, which takes the actor its time."""
        yield from read_meters(self._scene, self._book.meters, self._machines.all)

    def set_state(self, machines: int, state: int) -> ActorCode:
        """Begin to bring machines into a power state, at once or by somebody who takes the time for it."""
        yield from self.read_meters()
        now = self._scene.now
        self._requests.append(_SwitchRequest(machines, state))
        self._record_request(machines, _transition(self._power(self._machines.first(machines)), state), now)
        for machine in self._machines.select(machines):
            power, current = self._power(machine), self._pstate(machine)
            if power.can_compute_in(current) and power.can_compute_in(state):
                yield KernelCall(functools.partial(self._change_speed, machine, state, now))
                self._complete_machine(machine, state, at_once=True)
                continue
            if power.can_compute_in(current) and state in power.sleep_states:
                if machine.jobs:
                    raise BatsimAbort(f"jobs are running on machine {machine.id}")
                self._machines.set_state(machine, MachineState.SWITCHING_OFF, now)
                travel = self._switch_through(machine, power.sleep_states[state].off, state, MachineState.SLEEPING)
            elif current in power.sleep_states and power.can_compute_in(state):
                self._machines.set_state(machine, MachineState.SWITCHING_ON, now)
                travel = self._switch_through(machine, power.sleep_states[current].on, state, MachineState.IDLE)
            elif current in power.sleep_states or not 0 <= state < len(power.draws):
                raise switch_forbidden(machine, current, state)
            else:
                self._ignore_request(machine, current, state)
                continue
            yield Spawn(travel, machine.name)
            self._server.pending["switches"] += 1

    def _power(self, machine: LiveMachine) -> HostPower:
        return self._book.meters.power(machine.name)

    def _switch_through(self, machine: LiveMachine, way: int, state: int, arrival: MachineState) -> ActorCode:
        yield KernelCall(lambda: self._start_switch(machine, way, state, self._scene.now))
        speed = self._book.meters.platform.host(machine.name).speeds_flops[way]
        # What computing a flop is made of: its amount, host and priority (SimGrid: s4u::this_actor::execute).
        for _ in range(3):
            yield KernelCall()
        yield Sleep(seconds(1.0 / speed) or Duration(1), is_work=True)
        yield KernelCall(lambda: self._finish_switch(machine, state, self._scene.now))
        now = self._scene.now
        self._machines.set_state(machine, arrival, now)
        yield from self._mailbox.put(functools.partial(self._on_switched, machine, state))

    def _on_switched(self, machine: LiveMachine, state: int) -> ActorCode:
        self._complete_machine(machine, state, at_once=False)
        self._server.pending["switches"] -= 1
        yield from ()

    def _complete_machine(self, machine: LiveMachine, state: int, *, at_once: bool) -> None:
        """One machine is there, which the first request that waits for it hears; with the last one it is done."""
        place = 1 << machine.id
        request = next(one for one in self._requests if one.state == state and one.pending & place)
        request.pending &= ~place
        if not request.pending:
            self._requests.remove(request)
            self._record_completion(request.machines, request.state, self._scene.now)
            self._server.on_machines_switched(request.machines, request.state, at_once=at_once)

    def _ignore_request(self, machine: LiveMachine, current: int, state: int) -> None:
        """Leave a machine alone that is on its way already, or is asked into a state that stands for a way.

        Batsim writes an error into its log and goes on; the request is never done.
        """

    # What a switch does to the machines themselves

    def _pstate(self, machine: LiveMachine) -> int:
        return self._book.meters.platform.pstate(machine.name)

    def _record_request(self, machines: int, transition: int, now: Instant) -> None:
        self._book.record_switch_request(machines, transition, now)

    def _record_completion(self, machines: int, state: int, now: Instant) -> None:
        self._book.record_switch_end(machines, state, now)

    def _change_speed(self, machine: LiveMachine, state: int, now: Instant) -> None:
        self._book.meters.set_pstate(machine.name, state, now)

    def _start_switch(self, machine: LiveMachine, way: int, goal: int, now: Instant) -> None:
        """Set out for the power state `goal`, by way of another."""
        self._book.meters.set_pstate(machine.name, way, now)

    def _finish_switch(self, machine: LiveMachine, state: int, now: Instant) -> None:
        self._book.meters.set_pstate(machine.name, state, now)


def _transition(power: HostPower, state: int) -> int:
    """Return what is written of machines that are asked into a power state, until they are there."""
    if power.can_compute_in(state):
        return SWITCHING_ON
    return SWITCHING_OFF if state in power.sleep_states else _NO_TRANSITION


def switch_forbidden(machine: LiveMachine, current: int, state: int) -> BatsimAbort:
    """Return what is said of a switch that no machine can make."""
    return BatsimAbort(
        f"Switching machine {machine.id} ('{machine.name}') from pstate {current} to {state} is forbidden"
    )
