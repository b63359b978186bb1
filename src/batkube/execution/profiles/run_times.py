"""How a profile goes on given machines, where nothing else matters.

`delay` takes its time anywhere. Computation without communication takes flops divided by the machine's speed, and the
slowest machine decides: as long as a job has its machines for itself. Everything else flows (`profile_runner`).
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
    "nodes", "jobs computed on nodes that a program created, which count as fast as the platform's slowest machine"
)


def run_time_on(profile: Profile, machines: Sequence[Machine]) -> RunTime:
    """Return how `profile` goes with its rank i on `machines[i]`."""
    return run_time_of(profile, lambda simple: _duration(simple, machines))


def check_created_nodes(job: Job, machines: Sequence[Machine], notes: FidelityNotes, *, flows: bool) -> None:
    """Note work whose length depends on `machines` that programs created and the platform does not describe.

    Raises RunFailed where it `flows`: such a machine has no host in the fluid model.
    """
    example = f"job {job.key} on {machines[0].name}"
    if flows:
        raise RunFailed(
            f"{example}: the job computes or communicates, and a program created the node, which the platform does not "
            "describe\n  remedy: use jobs of a fixed length (delay), or have events add nodes of the platform"
        )
    if not is_delay(job.profile):
        notes.add(_UNKNOWN_SPEED, example=example)


def is_delay(profile: Profile) -> bool:
    """Return whether the profile only waits, so that no machine matters to it."""
    return all(isinstance(one, Delay) for one in leaf_profiles(profile))


def only_computes(profile: Profile) -> bool:
    """Return whether the profile neither sends nor stores anything."""
    return all(isinstance(one, Delay) or _is_computation_only(one) for one in leaf_profiles(profile))


def _is_computation_only(profile: Profile) -> bool:
    """Return whether a task computes and sends nothing."""
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
        raise UnsupportedProfile(f"is of type {batsim_type_of(profile)!r}, for which a network is needed")
    if not _is_computation_only(profile):
        raise UnsupportedProfile(
            f"communicates ({batsim_type_of(profile)} with com > 0), for which a network is needed"
        )
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
