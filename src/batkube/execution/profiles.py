"""How a profile goes on given machines, where nothing else matters.

`delay` takes its time anywhere. Computation without communication takes flops divided by the machine's speed, and the
slowest machine decides: as long as a job has its machines for itself. Everything else flows (`profile_runner`).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from batkube.execution.shapes import NotModelled
from batkube.kernel.instants import Duration, seconds
from batkube.platforms.model import Machine
from batkube.workloads.batsim_profiles import type_of
from batkube.workloads.model import (
    Composed,
    Delay,
    Foreign,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
)
from batkube.workloads.run_times import RunTime, run_time_of


def run_time_on(profile: Profile, machines: Sequence[Machine]) -> RunTime:
    """Return how `profile` goes with its rank i on `machines[i]`."""
    return run_time_of(profile, lambda simple: _length(simple, machines))


def is_delay(profile: Profile) -> bool:
    """Return whether the profile only waits, so that no machine matters to it."""
    if isinstance(profile, Composed):
        return all(map(is_delay, profile.parts))
    return isinstance(profile, Delay)


def only_computes(profile: Profile) -> bool:
    """Return whether the profile neither sends nor stores anything."""
    match profile:
        case Composed():
            return all(map(only_computes, profile.parts))
        case Parallel():
            return not any(profile.com_bytes)
        case ParallelHomogeneous() | ParallelHomogeneousTotal():
            return profile.com_bytes <= 0
    return isinstance(profile, Delay)


def _length(profile: Profile, machines: Sequence[Machine]) -> Duration:
    match profile:
        case Delay():
            return profile.duration
        case Parallel():
            _refuse_communication(profile, any(profile.com_bytes))
            if len(profile.cpu_flops) != len(machines):
                raise NotModelled(f"has {len(profile.cpu_flops)} tasks for {len(machines)} machines")
            return _slowest(profile.cpu_flops, machines)
        case ParallelHomogeneous():
            _refuse_communication(profile, profile.com_bytes > 0)
            return _slowest([profile.cpu_flops] * len(machines), machines)
        case ParallelHomogeneousTotal():
            _refuse_communication(profile, profile.com_bytes > 0)
            return _slowest([profile.cpu_flops / len(machines)] * len(machines), machines)
        case Foreign():
            raise NotModelled(f"is of type {profile.kind!r}, for which a network is needed")
        case _:
            raise NotModelled(f"is of type {type_of(profile)!r}, for which a network is needed")


def _refuse_communication(profile: Profile, communicates: bool) -> None:
    if communicates:
        raise NotModelled(f"communicates ({type_of(profile)} with com > 0), for which a network is needed")


def _slowest(flops: Sequence[float], machines: Sequence[Machine]) -> Duration:
    longest = Duration(0)
    for amount, machine in zip(flops, machines, strict=True):
        if amount == 0:
            continue
        if machine.speed_flops is None:
            raise NotModelled(f"computes, and the platform gives no speed for machine {machine.name!r}")
        longest = max(longest, seconds(Decimal(amount) / Decimal(machine.speed_flops)))
    return longest
