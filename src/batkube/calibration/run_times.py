"""The requested run times of recorded jobs, which recordings do not include.

They are those of the workload, if it is available. Otherwise they are estimated: all jobs of a profile sleep for the
same number of whole seconds, so their run time is the shortest recorded execution, rounded down to a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from batkube.calibration.recorded_runs import Floats, RecordedRun
from batkube.kernel.errors import InputError
from batkube.kernel.instants import as_float_s
from batkube.workloads.model import Delay
from batkube.workloads.reader import read_workload


def run_times_in(path: Path) -> dict[str, float]:
    """Return the run time in seconds of each delay job of a workload, by job id."""
    workload = read_workload(path, name="w0")
    run_times = {job.name: as_float_s(job.profile.duration) for job in workload.jobs if isinstance(job.profile, Delay)}
    if not run_times:
        raise InputError(
            path,
            problem="contains no job with a delay profile",
            remedy="use a workload with delay profiles; only their run times are known",
        )
    return run_times


def run_times_of(recording: RecordedRun, run_times: Mapping[str, float] | None) -> Floats:
    """Return the real run time of each job in seconds: from `run_times`, by job id, or estimated."""
    if run_times is not None:
        return np.array([run_times.get(job_id, np.nan) for job_id in recording.job_ids]) / recording.speed
    shortest: dict[str, float] = {}
    for profile, execution_time in zip(recording.profiles, recording.execution_times, strict=True):
        if not np.isnan(execution_time):
            shortest[profile] = min(execution_time, shortest.get(profile, execution_time))
    estimates = np.array([shortest.get(profile, np.nan) for profile in recording.profiles])
    return np.asarray(np.floor(estimates * recording.speed) / recording.speed)
