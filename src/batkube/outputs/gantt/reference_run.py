"""A run against another one of the same workload: which jobs begin earlier, later, or as in the other.

The fills differ in lightness too, so that they are told apart without colours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from batkube.kernel.errors import InputError
from batkube.kernel.instants import human_duration, seconds
from batkube.outputs.charts.palette import Colouring, LegendEntry
from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.measures.occupancy.step_functions import StepFunction

#: jobs.csv tells microseconds.
_RESOLUTION_S = 1.5e-6
_EARLIER_FILL, _SAME_FILL, _LATER_FILL, _UNMATCHED_FILL = "#8FBFE6", "#E2E2E2", "#C4503A", "#FFFFFF"


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """The run that another one is drawn against."""

    name: str
    utilisation: StepFunction
    queue: StepFunction


def shift_colouring(subjects: pd.DataFrame, results: MeasuredRun, other: MeasuredRun) -> Colouring:
    """Return the fills of a chart's subjects by how far they begin from when they do in the other run.

    Raises InputError when the runs have no job in common.
    """
    keys = list(zip(other.jobs["workload_name"], other.jobs["job_id"], strict=True))
    starts = dict(zip(keys, other.jobs["starting_time"], strict=True))
    own = zip(subjects["workload_name"], subjects["job_id"], strict=True)
    before = np.array([starts.get(key, np.nan) for key in own], dtype=np.float64)
    shifts = subjects["starting_time"].to_numpy(dtype=np.float64) - before
    known = np.isfinite(shifts)
    if not known.any():
        problem = f"has no job in common with {results.path}"
        raise InputError(other.path, problem=problem, remedy="draw runs of the same workload against each other")
    earlier, later = shifts < -_RESOLUTION_S, shifts > _RESOLUTION_S
    fills = np.where(earlier, _EARLIER_FILL, np.where(later, _LATER_FILL, np.where(known, _SAME_FILL, _UNMATCHED_FILL)))
    legend = [
        LegendEntry(_EARLIER_FILL, _shift_label(shifts[earlier], "earlier")),
        LegendEntry(_SAME_FILL, f"{int((known & ~earlier & ~later).sum()):,} as there"),
        LegendEntry(_LATER_FILL, _shift_label(shifts[later], "later")),
    ]
    legend = [entry for entry in legend if not entry.label.startswith("0 ")]
    if not known.all():
        legend.append(LegendEntry(_UNMATCHED_FILL, f"{int((~known).sum()):,} not there"))
    return Colouring(fills.tolist(), legend)


def _shift_label(shifts: np.ndarray[tuple[int], np.dtype[np.float64]], word: str) -> str:
    middle = f", median {human_duration(seconds(float(np.median(np.abs(shifts)))))}" if len(shifts) else ""
    return f"{len(shifts):,} {word}{middle}"
