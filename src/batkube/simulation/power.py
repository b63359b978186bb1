"""The parts of a run in which jobs compute and communicate, or energy counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from batkube.cluster.world import World
from batkube.simulation.inputs import Inputs

if TYPE_CHECKING:
    from batkube.execution.course_work import CourseWork
    from batkube.execution.energy_book import EnergyBook
    from batkube.execution.power_switches import PowerSwitches


class PowerParts(NamedTuple):
    """The work of jobs, where some slow down others; and where energy counts, the book of it and machines' switches."""

    courses: CourseWork | None = None
    book: EnergyBook | None = None
    switches: PowerSwitches | None = None


def power_of_run(world: World, inputs: Inputs) -> PowerParts:
    """Put together what a run needs whose jobs do more than wait."""
    model = inputs.fluid_model
    if model is None:
        return PowerParts()
    # Imported only where they are needed: most jobs only wait.
    from batkube.execution.course_work import CourseWork
    from batkube.execution.power_switches import PowerSwitches

    platform = model.platform()
    runner = model.runner(world.agenda, platform)
    book = model.book(platform) if inputs.scenario.energy else None
    switches = None
    if book is not None:
        runner.meters = book.meters
        switches = PowerSwitches(world, inputs.platform.machines, runner, book)
    return PowerParts(CourseWork(world.agenda, runner, book), book, switches)
