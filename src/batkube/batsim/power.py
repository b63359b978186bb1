"""Machines that draw power, and are switched to other speeds, to sleep and back.

A switch between speeds is immediate. The way to sleep, and back, leads through a power state that stands for it, and
takes as long as one flop at its speed. A request is answered when its last machine has switched.

Imitated: Batsim 4.2.1, src/pstate.cpp and server_on_pstate_modification.
"""

from __future__ import annotations

import functools

from batkube.batsim.actors import Enter, Pause, Scene, Script, Sleep
from batkube.batsim.machines import LiveMachine, Machines, MachineState
from batkube.batsim.mailboxes import Mailbox
from batkube.batsim.meter_reading import read_meters
from batkube.batsim.refusal import Refusal
from batkube.batsim.server import BatsimServer
from batkube.execution.energy_book import SWITCHING_OFF, SWITCHING_ON, EnergyBook
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.platforms.power import HostPower

#: What Batsim writes of a request for a power state that stands for a way.
_NOWHERE = -42


class _Request:
    """Machines that are to be in a power state, and those of them that are not yet.

    One that asks for what a machine cannot do at present is never done.
    """

    def __init__(self, machines: int, state: int) -> None:
        self.machines = self.left = machines
        self.state = state


class MachinePower:
    """What machines draw, and how they are switched."""

    def __init__(
        self, scene: Scene, mailbox: Mailbox, server: BatsimServer, machines: Machines, book: EnergyBook
    ) -> None:
        self._scene = scene
        self._mailbox = mailbox
        self._server = server
        self._machines = machines
        self._book = book
        self._requests: list[_Request] = []

    def consumed(self, now: Instant) -> float:
        """Return the joules of all machines since the beginning."""
        return self._book.meters.total(now)

    def read_meters(self) -> Script:
        """Have all meters read, which takes the actor its time."""
        yield from read_meters(self._scene, self._book.meters, self._machines.all)

    def switch(self, machines: int, state: int) -> Script:
        """Begin to bring machines into a power state, at once or by somebody who takes the time for it."""
        yield from self.read_meters()
        now = self._scene.now
        self._requests.append(_Request(machines, state))
        self._begin(machines, _transition(self._power(self._machines.first(machines)), state), now)
        for machine in self._machines.among(machines):
            power, current = self._power(machine), self._pstate(machine)
            if power.computes_in(current) and power.computes_in(state):
                yield Pause(functools.partial(self._change_speed, machine, state, now))
                self._settle(machine, state, at_once=True)
                continue
            if power.computes_in(current) and state in power.sleeps:
                if machine.jobs:
                    raise Refusal(f"jobs are running on machine {machine.id}")
                self._machines.change(machine, MachineState.SWITCHING_OFF, now)
                travel = self._travel(machine, power.sleeps[state].off, state, MachineState.SLEEPING)
            elif current in power.sleeps and power.computes_in(state):
                self._machines.change(machine, MachineState.SWITCHING_ON, now)
                travel = self._travel(machine, power.sleeps[current].on, state, MachineState.IDLE)
            elif current in power.sleeps or not 0 <= state < len(power.draws):
                raise forbidden(machine, current, state)
            else:
                self._pass_over(machine, current, state)
                continue
            yield Enter(travel, machine.name)
            self._server.pending["switches"] += 1

    def _power(self, machine: LiveMachine) -> HostPower:
        return self._book.meters.power(machine.name)

    def _travel(self, machine: LiveMachine, way: int, state: int, arrival: MachineState) -> Script:
        yield Pause(lambda: self._leave(machine, way, state, self._scene.now))
        speed = self._book.meters.platform.host(machine.name).speeds_flops[way]
        # What computing a flop is made of: its amount, host and priority (SimGrid: s4u::this_actor::execute).
        for _ in range(3):
            yield Pause()
        yield Sleep(seconds(1.0 / speed) or Duration(1), is_work=True)
        yield Pause(lambda: self._arrive(machine, state, self._scene.now))
        now = self._scene.now
        self._machines.change(machine, arrival, now)
        yield from self._mailbox.put(functools.partial(self._arrived, machine, state))

    def _arrived(self, machine: LiveMachine, state: int) -> Script:
        self._settle(machine, state, at_once=False)
        self._server.pending["switches"] -= 1
        yield from ()

    def _settle(self, machine: LiveMachine, state: int, *, at_once: bool) -> None:
        """One machine is there, which the first request that waits for it hears; with the last one it is done."""
        place = 1 << machine.id
        request = next(one for one in self._requests if one.state == state and one.left & place)
        request.left &= ~place
        if not request.left:
            self._requests.remove(request)
            self._complete(request.machines, request.state, self._scene.now)
            self._server.switched(request.machines, request.state, at_once=at_once)

    def _pass_over(self, machine: LiveMachine, current: int, state: int) -> None:
        """Leave a machine alone that is on its way already, or is asked into a state that stands for a way.

        Batsim writes an error into its log and goes on; the request is never done.
        """

    # What a switch does to the machines themselves

    def _pstate(self, machine: LiveMachine) -> int:
        return self._book.meters.platform.pstate(machine.name)

    def _begin(self, machines: int, transition: int, now: Instant) -> None:
        self._book.request_switch(machines, transition, now)

    def _complete(self, machines: int, state: int, now: Instant) -> None:
        self._book.complete_switch(machines, state, now)

    def _change_speed(self, machine: LiveMachine, state: int, now: Instant) -> None:
        self._book.meters.set_pstate(machine.name, state, now)

    def _leave(self, machine: LiveMachine, way: int, goal: int, now: Instant) -> None:
        """Set out for the power state `goal`, by way of another."""
        self._book.meters.set_pstate(machine.name, way, now)

    def _arrive(self, machine: LiveMachine, state: int, now: Instant) -> None:
        self._book.meters.set_pstate(machine.name, state, now)


def _transition(power: HostPower, state: int) -> int:
    """Return what is written of machines that are asked into a power state, until they are there."""
    if power.computes_in(state):
        return SWITCHING_ON
    return SWITCHING_OFF if state in power.sleeps else _NOWHERE


def forbidden(machine: LiveMachine, current: int, state: int) -> Refusal:
    """Return what is said of a switch that no machine can make."""
    return Refusal(f"Switching machine {machine.id} ('{machine.name}') from pstate {current} to {state} is forbidden")
