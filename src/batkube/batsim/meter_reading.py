"""Reading the meters of machines, which takes actors their turns.

A host's meter is brought up to date by the kernel whenever something ends on it, and when an actor asks for it. Who
asks for one that is not up to date goes on a round later, for each host anew; so where energy is counted, other events
of the same date may come first.

Imitated: SimGrid 3.32, src/plugins/host_energy.cpp (HostEnergy::get_consumed_energy).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from batkube.batsim.actors import Pause, Scene, Script
from batkube.batsim.machines import LiveMachine
from batkube.execution.meters import Meters


def read_meters(scene: Scene, meters: Meters, machines: Iterable[LiveMachine]) -> Script:
    """Have the meters of machines read, one after the other."""
    for machine in machines:
        if meters.since(machine.name) < scene.now:
            yield Pause(functools.partial(meters.touch, machine.name, scene.now))
