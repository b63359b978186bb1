"""Machines that draw power, and are switched to other speeds, to sleep and back.

A switch between speeds is immediate. The way to sleep, and back, leads through a power state that stands for it, and
takes as long as one flop at its speed. A request is answered when its last machine has switched.

Imitated: Batsim 4.2.1, src/pstate.cpp and server_on_pstate_modification.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from batkube.batsim.actors import Mailbox, Scene, Script, Sleep
from batkube.batsim.machines import LiveMachine, Machines, MachineState
from batkube.batsim.refusal import Refusal
from batkube.batsim.server import BatsimServer
from batkube.execution.energy_book import SWITCHING_OFF, SWITCHING_ON, EnergyBook
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.platforms.power import HostPower


class _Request:
    """Machines that are to be in a power state, and those of them that are not yet."""

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

    def consumed(self, now: Instant) -> float:
        """Return the joules of all machines since the beginning."""
        return self._book.meters.total(now)

    def request(self, machines: int, state: int, now: Instant) -> Iterator[tuple[LiveMachine, Script | None]]:
        """Begin to bring machines into a power state: yield who does it for each, None where it is done at once."""
        first = self._machines.first(machines)
        is_work = self._power(first).computes_in(state)
        request = _Request(machines, state)
        self._book.request_switch(machines, SWITCHING_ON if is_work else SWITCHING_OFF, now)
        for machine in self._machines.among(machines):
            power, current = self._power(machine), self._book.meters.plant.pstate(machine.name)
            if power.computes_in(current) and power.computes_in(state):
                self._book.meters.set_pstate(machine.name, state, now)
                self._settle(request, machine, at_once=True)
                yield machine, None
            elif power.computes_in(current) and state in power.sleeps:
                if machine.jobs:
                    raise Refusal(f"jobs are running on machine {machine.id}")
                self._machines.change(machine, MachineState.SWITCHING_OFF, now)
                yield machine, self._travel(request, machine, power.sleeps[state].off, MachineState.SLEEPING)
            elif current in power.sleeps and power.computes_in(state):
                self._machines.change(machine, MachineState.SWITCHING_ON, now)
                yield machine, self._travel(request, machine, power.sleeps[current].on, MachineState.IDLE)
            else:
                raise Refusal(
                    f"Switching machine {machine.id} ('{machine.name}') from pstate {current} to {state} is forbidden"
                )

    def _power(self, machine: LiveMachine) -> HostPower:
        return self._book.meters.power(machine.name)

    def _travel(self, request: _Request, machine: LiveMachine, way: int, arrival: MachineState) -> Script:
        meters, name = self._book.meters, machine.name
        meters.set_pstate(name, way, self._scene.now)
        yield Sleep(seconds(1.0 / meters.plant.speed(name)) or Duration(1))
        now = self._scene.now
        meters.set_pstate(name, request.state, now)
        self._machines.change(machine, arrival, now)
        yield self._mailbox.put(functools.partial(self._arrived, request, machine))

    def _arrived(self, request: _Request, machine: LiveMachine) -> Script:
        self._settle(request, machine, at_once=False)
        self._server.pending["switches"] -= 1
        yield from ()

    def _settle(self, request: _Request, machine: LiveMachine, *, at_once: bool) -> None:
        """One machine is there; with the last one the request is done."""
        request.left &= ~(1 << machine.id)
        if not request.left:
            self._book.complete_switch(request.machines, request.state, self._scene.now)
            self._server.switched(request.machines, request.state, at_once=at_once)
