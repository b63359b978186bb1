"""One run of an experiment, as it is done in a worker process."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from batkube.kernel.error_causes import expected_error
from batkube.kernel.errors import Bug
from batkube.kernel.stopwatch import reset_peak_memory
from batkube.scenarios.scenario import Scenario
from batkube.simulation.run import execute


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a worker is told: which scenario to run, and where its outputs go."""

    scenario: Scenario
    folder: Path
    #: The programs it needs, built already, by name.
    programs: Mapping[str, Path]
    command: Sequence[str]
    #: The policy, pickled, where the scenario only names one that was given as an object.
    policy: bytes = b""


def execute_request(order: RunRequest) -> str | None:
    """Run the scenario into its folder; return what went wrong, or None."""
    reset_peak_memory()
    try:
        # A worker that outlived an experiment that was killed may have put the same run there.
        execute(
            order.scenario,
            order.folder,
            force=True,
            command=order.command,
            builder=lambda name, _: order.programs[name],
            own_policy=pickle.loads(order.policy) if order.policy else None,
        )
    except Bug as bug:
        return str(bug)  # where it arose is in the run's folder
    except Exception as error:
        failure = expected_error(error)
        if failure is None:
            raise
        return str(failure)
    return None
