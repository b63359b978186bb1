"""Run times and exit codes of profiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration
from batkube.workloads.model import Composed, Delay, Job, Profile


class RunTime(NamedTuple):
    """The run time and the exit code of a profile."""

    length: Duration
    ret: int


def run_time_of(profile: Profile, length_of: Callable[[Profile], Duration]) -> RunTime:
    """Return the run time of `profile`; `length_of` returns the length of each profile that is not composed.

    As in Batsim (src/jobs_execution.cpp, execute_task), a sequence ends at the first part that fails.
    """
    if not isinstance(profile, Composed):
        return RunTime(length_of(profile), profile.ret)
    length = 0
    for part in profile.parts:
        part_time = run_time_of(part, length_of)
        length += part_time.length
        if part_time.ret:
            return RunTime(Duration(length), part_time.ret)
    return RunTime(Duration(profile.repeat * length), profile.ret)


class _DependsOnMachinesError(Exception):
    pass


def run_time(profile: Profile) -> Duration | None:
    """Return the run time of `profile`; None if it depends on the machines."""
    try:
        return run_time_of(profile, _fixed_length).length
    except _DependsOnMachinesError:
        return None


def fixed_run_time(job: Job, source: str, file_format: str) -> Duration:
    """Return the run time of a job, which a file format needs. Raises InputError if it depends on the machines."""
    run = run_time(job.profile)
    if run is None:
        problem = f"its profile {job.profile.name!r} has no fixed run time, which {file_format} needs"
        raise InputError(source, at=f"job {job.name}", problem=problem, remedy="write Batsim JSON (.json)")
    return run


def _fixed_length(profile: Profile) -> Duration:
    if isinstance(profile, Delay):
        return profile.duration
    raise _DependsOnMachinesError
