"""Batkube simulates Kubernetes clusters in order to study schedulers.

import batkube

run = batkube.run(workload="trace.swf", platform="100x1", scheduler="policy:easy")
run.jobs            # a pandas frame of jobs.csv
run.gantt()         # a matplotlib figure
"""

from __future__ import annotations

from batkube.kernel.errors import BatkubeError, Bug, InputError, RunFailed
from batkube.simulation.run import Run, run
from batkube.simulation.scenario import Scenario
from batkube.version import __version__

__all__ = ["BatkubeError", "Bug", "InputError", "Run", "RunFailed", "Scenario", "__version__", "run"]
