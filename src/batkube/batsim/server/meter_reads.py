"""Reading the energy meters of machines, which takes rounds of the kernel.

SimGrid updates the meter of a host whenever an activity on it ends. An actor that reads a meter that is not up to date
makes a simcall, and so is delayed by a round per host. With energy accounting, other events of the same date may
therefore come first.

Imitated: SimGrid 3.32, HostEnergy::get_consumed_energy in src/plugins/host_energy.cpp.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from batkube.batsim.simgrid.actors import ActorCode, ActorKernel, KernelCall
from batkube.batsim.state.machines import LiveMachine
from batkube.execution.energy.meters import EnergyMeters


def read_meters(kernel: ActorKernel, meters: EnergyMeters, machines: Iterable[LiveMachine]) -> ActorCode:
    """Read the meters of machines, one after the other."""
    for machine in machines:
        if meters.updated_at(machine.name) < kernel.now:
            yield KernelCall(functools.partial(meters.update, machine.name, kernel.now))
