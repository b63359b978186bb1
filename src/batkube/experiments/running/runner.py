"""Execution of one run of an experiment, in a worker process."""

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
    """A run for a worker to execute: its scenario and output folder."""

    scenario: Scenario
    folder: Path
    #: The programs it needs, already built, by name.
    programs: Mapping[str, Path]
    command: Sequence[str]
    #: The pickled policy, if the scenario's policy was given as an object.
    policy: bytes = b""


def execute_request(request: RunRequest) -> str | None:
    """Run the scenario; return the failure message, or None."""
    reset_peak_memory()
    try:
        # `force`: a worker of a killed experiment may have written the same run meanwhile.
        execute(
            request.scenario,
            request.folder,
            force=True,
            command=request.command,
            builder=lambda name, _: request.programs[name],
            own_policy=pickle.loads(request.policy) if request.policy else None,
        )
    except Bug as bug:
        return str(bug)  # the traceback is in the run's folder
    except Exception as error:
        failure = expected_error(error)
        if failure is None:
            raise
        return str(failure)
    return None
