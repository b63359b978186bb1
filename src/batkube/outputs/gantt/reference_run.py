"""Comparison with another run of the same workload: which jobs start earlier, later or at the same time.

The fills also differ in lightness, so that they are distinguishable without colours.
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

#: jobs.csv has microseconds.
_RESOLUTION_S = 1.5e-6
_EARLIER_FILL, _SAME_FILL, _LATER_FILL, _UNMATCHED_FILL = "#8FBFE6", "#E2E2E2", "#C4503A", "#FFFFFF"


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """The run that a chart compares another one with."""

    name: str
    utilisation: StepFunction
    queue: StepFunction


def shift_colouring(subjects: pd.DataFrame, results: MeasuredRun, other: MeasuredRun) -> Colouring:
    """Return the fills of a chart's subjects by whether they start earlier or later than in the other run.

    Raises InputError if the runs have no job in common.
    """
    keys = list(zip(other.jobs["workload_name"], other.jobs["job_id"], strict=True))
    starts = dict(zip(keys, other.jobs["starting_time"], strict=True))
    own = zip(subjects["workload_name"], subjects["job_id"], strict=True)
    before = np.array([starts.get(key, np.nan) for key in own], dtype=np.float64)
    shifts = subjects["starting_time"].to_numpy(dtype=np.float64) - before
    matched = np.isfinite(shifts)
    if not matched.any():
        problem = f"has no job in common with {results.path}"
        raise InputError(other.path, problem=problem, remedy="draw runs of the same workload against each other")
    earlier, later = shifts < -_RESOLUTION_S, shifts > _RESOLUTION_S
    same_or_unmatched = np.where(matched, _SAME_FILL, _UNMATCHED_FILL)
    fills = np.where(earlier, _EARLIER_FILL, np.where(later, _LATER_FILL, same_or_unmatched))
    legend = [
        LegendEntry(_EARLIER_FILL, _shift_label(shifts[earlier], "earlier")),
        LegendEntry(_SAME_FILL, f"{int((matched & ~earlier & ~later).sum()):,} at the same time"),
        LegendEntry(_LATER_FILL, _shift_label(shifts[later], "later")),
    ]
    legend = [entry for entry in legend if not entry.label.startswith("0 ")]
    if not matched.all():
        legend.append(LegendEntry(_UNMATCHED_FILL, f"{int((~matched).sum()):,} not in the other run"))
    return Colouring(fills.tolist(), legend)


def _shift_label(shifts: np.ndarray[tuple[int], np.dtype[np.float64]], word: str) -> str:
    middle = f", median {human_duration(seconds(float(np.median(np.abs(shifts)))))}" if len(shifts) else ""
    return f"{len(shifts):,} {word}{middle}"
