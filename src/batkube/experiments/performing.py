"""One run of an experiment, as it is done in a worker process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.shortages import shortage
from batkube.kernel.stopwatch import forget_peak_memory
from batkube.simulation.run import execute
from batkube.simulation.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is told: which scenario to run, and where its outputs go."""

    scenario: Scenario
    folder: Path
    #: The programs it needs, built already, by name.
    programs: Mapping[str, Path]
    command: Sequence[str]


def perform(order: Order) -> str | None:
    """Run the scenario into its folder; return what went wrong, or None."""
    forget_peak_memory()
    try:
        execute(
            order.scenario, order.folder, force=True, command=order.command, builder=lambda name: order.programs[name]
        )
    except RunFailed as error:
        return str(error)
    except (InputError, OSError, MemoryError) as error:
        return str(shortage(error) or error)
    return None
