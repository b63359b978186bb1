"""Batkube simulates Kubernetes clusters in order to study schedulers.

import batkube

run = batkube.run(workload="trace.swf", platform="100x1", scheduler="policy:easy")
run.jobs            # a pandas frame of jobs.csv
run.gantt()         # a matplotlib figure
run.animate()       # the same with a slider for the time
run.report()        # one HTML file

batkube.compare(run, "out/fcfs")                    # runs side by side
batkube.experiment("experiment.yaml", "out")        # a grid of runs, with their results as one frame
batkube.Results("out/easy")                         # a run's folder, read back; batkube.ExperimentResults likewise

Errors are `InputError` (invalid input), `RunFailed` (the scheduler failed) and `Bug`. Names are imported on first use,
so that the command line handles Ctrl-C before anything large is imported.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as of `typing`, which takes longer to import than all else here
if TYPE_CHECKING:
    from batkube.experiments.experiment import ExperimentResults, experiment
    from batkube.kernel.errors import BatkubeError, Bug, InputError, RunFailed
    from batkube.outputs.results import Results, compare
    from batkube.scenarios.scenario import Scenario
    from batkube.simulation.run import Run, run
    from batkube.version import __version__

__all__ = [
    "BatkubeError",
    "Bug",
    "ExperimentResults",
    "InputError",
    "Results",
    "Run",
    "RunFailed",
    "Scenario",
    "__version__",
    "compare",
    "experiment",
    "run",
]

_MODULES = {
    **dict.fromkeys(("BatkubeError", "Bug", "InputError", "RunFailed"), "batkube.kernel.errors"),
    **dict.fromkeys(("ExperimentResults", "experiment"), "batkube.experiments.experiment"),
    **dict.fromkeys(("Results", "compare"), "batkube.outputs.results"),
    **dict.fromkeys(("Run", "run"), "batkube.simulation.run"),
    "Scenario": "batkube.scenarios.scenario",
    "__version__": "batkube.version",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'batkube' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
