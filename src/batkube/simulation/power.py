"""The parts of a run in which jobs compute and communicate, or energy counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from batkube.cluster.world import World
from batkube.execution.course_work import CourseWork
from batkube.execution.energy_book import EnergyBook
from batkube.execution.fluid_model import FluidModel
from batkube.execution.power_switches import PowerSwitches
from batkube.platforms.model import Machine


class PowerParts(NamedTuple):
    """The work of jobs; and where energy counts, the book of it and the switches of machines."""

    courses: CourseWork
    book: EnergyBook | None
    switches: PowerSwitches | None


def power_of_run(world: World, fluid_model: FluidModel, machines: Sequence[Machine], *, has_energy: bool) -> PowerParts:
    """Put together what a run needs whose jobs do more than wait."""
    platform = fluid_model.platform()
    runner = fluid_model.runner(world.agenda, platform)
    book = fluid_model.book(platform) if has_energy else None
    switches = None
    if book is not None:
        runner.witness = book.meters
        switches = PowerSwitches(world, machines, runner, book)
    return PowerParts(CourseWork(world.agenda, runner, book), book, switches)
