"""Reading the meters of machines, which takes actors their turns.

A host's meter is brought up to date by the kernel whenever something ends on it, and when an actor asks for it. Who
asks for one that is not up to date goes on a round later, for each host anew; so where energy is counted, other events
of the same date may come first.

Imitated: SimGrid 3.32, src/plugins/host_energy.cpp (HostEnergy::get_consumed_energy).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from batkube.batsim.simgrid.actors import ActorCode, ActorKernel, KernelCall
from batkube.batsim.state.machines import LiveMachine
from batkube.execution.profiles.energy_meters import EnergyMeters


def read_meters(scene: ActorKernel, meters: EnergyMeters, machines: Iterable[LiveMachine]) -> ActorCode:
    """Have the meters of machines read, one after the other."""
    for machine in machines:
        if meters.updated_at(machine.name) < scene.now:
            yield KernelCall(functools.partial(meters.update, machine.name, scene.now))
