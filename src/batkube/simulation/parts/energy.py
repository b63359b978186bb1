"""The parts of a run whose jobs compute and communicate, or that accounts for energy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from batkube.cluster.world import World
from batkube.components.access import Access
from batkube.simulation.preparation.inputs import Inputs

if TYPE_CHECKING:
    from batkube.execution.energy.log import EnergyLog
    from batkube.execution.energy.power_switches import PowerSwitches
    from batkube.execution.jobs.work_runners import FluidWorkRunner


class EnergyParts(NamedTuple):
    """The runner of jobs in the fluid model; with --energy, also the energy log and the power switches."""

    execution_work: FluidWorkRunner | None = None
    energy_log: EnergyLog | None = None
    switches: PowerSwitches | None = None


def create_energy_parts(world: World, inputs: Inputs, access: Access) -> EnergyParts:
    """Create the parts of a run with a fluid model."""
    model = inputs.fluid_model
    if model is None:
        return EnergyParts()
    # Imported lazily: most workloads have only delays.
    from batkube.execution.energy.log import EnergyLog
    from batkube.execution.energy.power_switches import PowerSwitches
    from batkube.execution.jobs.work_runners import FluidWorkRunner

    platform = model.new_platform()
    runner = model.new_runner(world.agenda, platform)
    energy_log = EnergyLog.of_platform(inputs.platform, platform) if inputs.scenario.energy else None
    switches = None
    if energy_log is not None:
        runner.meters = energy_log.meters
        switches = PowerSwitches(world, access.client("batkube"), inputs.platform.machines, runner, energy_log)
    return EnergyParts(FluidWorkRunner(world.agenda, runner, energy_log), energy_log, switches)
