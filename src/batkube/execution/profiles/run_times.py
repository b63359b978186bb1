"""Run times of profiles that do not depend on other jobs.

`delay` takes the same time on every machine. Computation without communication takes flops divided by the speed of the
slowest machine, if the job has its machines for itself. All other profiles are simulated by the fluid model (`runner`).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from batkube.execution.profiles.task_shapes import UnsupportedProfile, shape_of, storage_lookup
from batkube.kernel.errors import RunFailed
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import Duration, seconds
from batkube.platforms.model import Machine
from batkube.workloads.formats.batsim.profiles import batsim_type_of
from batkube.workloads.model import (
    Delay,
    Job,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    leaf_profiles,
)
from batkube.workloads.run_times import RunTime, run_time_of

_UNKNOWN_SPEED = FidelityNote(
    "nodes", "jobs computed on nodes that a program created, which have the speed of the platform's slowest machine"
)


def run_time_on(profile: Profile, machines: Sequence[Machine]) -> RunTime:
    """Return the run time of `profile` with rank i on `machines[i]`."""
    return run_time_of(profile, lambda simple: _duration(simple, machines))


def check_created_nodes(job: Job, machines: Sequence[Machine], notes: FidelityNotes, *, flows: bool) -> None:
    """Note that the run time of a job depends on `machines` that programs created, whose speed is unknown.

    Raise RunFailed if the fluid model simulates the job (`flows`): it has no hosts for such machines.
    """
    example = f"job {job.key} on {machines[0].name}"
    if flows:
        raise RunFailed(
            f"{example}: the job computes or communicates, and a program created the node, which the platform does not "
            "describe\n  remedy: use jobs of a fixed length (delay), or add nodes of the platform by events"
        )
    if not is_delay(job.profile):
        notes.add(_UNKNOWN_SPEED, example=example)


def is_delay(profile: Profile) -> bool:
    """Return whether the profile consists of delays only, so that its run time does not depend on machines."""
    return all(isinstance(leaf, Delay) for leaf in leaf_profiles(profile))


def only_computes(profile: Profile) -> bool:
    """Return whether the profile uses neither network nor storage."""
    return all(isinstance(leaf, Delay) or _is_computation_only(leaf) for leaf in leaf_profiles(profile))


def _is_computation_only(profile: Profile) -> bool:
    """Return whether a task computes without communication."""
    match profile:
        case Parallel():
            return not any(profile.com_bytes)
        case ParallelHomogeneous() | ParallelHomogeneousTotal():
            return profile.com_bytes <= 0
    return False


def _duration(profile: Profile, machines: Sequence[Machine]) -> Duration:
    if isinstance(profile, Delay):
        return profile.duration
    if not isinstance(profile, Parallel | ParallelHomogeneous | ParallelHomogeneousTotal):
        raise UnsupportedProfile(f"is of type {batsim_type_of(profile)!r}, which needs a network")
    if not _is_computation_only(profile):
        raise UnsupportedProfile(f"communicates ({batsim_type_of(profile)} with com > 0), which needs a network")
    hosts = [machine.name for machine in machines]
    return _slowest_duration(shape_of(profile, hosts, storage_lookup(())).flops, machines)


def _slowest_duration(flops: Sequence[float], machines: Sequence[Machine]) -> Duration:
    longest = Duration(0)
    for amount, machine in zip(flops, machines, strict=True):
        if amount == 0:
            continue
        if machine.speed_flops is None:
            raise UnsupportedProfile(f"computes, and the platform gives no speed for machine {machine.name!r}")
        longest = max(longest, seconds(Decimal(amount) / Decimal(machine.speed_flops)))
    return longest
