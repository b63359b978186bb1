"""Room in whole machines: each unit of a job's size takes one machine alone, as in Batsim without compute sharing.

What is free is an integer with one bit per machine (kernel/intervals.py), so that asking whether a job fits costs an
`and` and a population count. That question is asked some hundred million times in a long trace, and mostly answered
"no": the "no" is what is fast here.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import msgspec

from batkube.kernel.intervals import format_intervals, lowest, mask_of, members
from batkube.kernel.quantities import PODS
from batkube.platforms.model import Machine
from batkube.policies.rooms import Accepts, Choice, Placement
from batkube.workloads.model import Job, Requests


class MachinePlacement(msgspec.Struct, frozen=True, gc=False):
    """The machines that a job has for itself."""

    mask: int

    @property
    def machine_ids(self) -> tuple[int, ...]:
        """The machines in ascending order: rank 0 runs on the lowest, as Batsim maps ranks unless told otherwise."""
        return tuple(members(self.mask))


class WholeMachines:
    """The machines themselves, whether free or not. Every room of a run shares one."""

    def __init__(self, machines: Sequence[Machine], accepts: Accepts | None) -> None:
        #: Machines that can hold a pod at all; some platforms list nodes with no slot for any.
        self.all_usable = mask_of(number for number, machine in enumerate(machines) if machine.capacity[PODS] > 0)
        #: Machines of equal cpu, as sets, from the smallest cpu to the largest.
        self.by_cpu = _grouped_by_cpu(machines)
        self._capacities: list[Mapping[str, int]] = [machine.capacity for machine in machines]
        #: Grows by one entry for each distinct request seen; a trace has few.
        self._eligible: dict[Requests, int] = {}
        self._accepts = accepts

    def eligible(self, job: Job) -> int:
        """Return the machines that accept the job and whose capacity is at least its requests, 0 where they lack it."""
        mask = self._eligible.get(job.requests)
        if mask is None:
            mask = self._eligible[job.requests] = mask_of(
                number
                for number, capacity in enumerate(self._capacities)
                if all(capacity.get(resource, 0) >= amount for resource, amount in job.requests)
            )
        accepted = None if self._accepts is None else self._accepts(job)
        return mask if accepted is None else mask & mask_of(accepted.nonzero()[0].tolist())


class MachineRoom(msgspec.Struct, frozen=True, gc=False):
    """The machines that are free."""

    mask: int
    machines: WholeMachines

    @classmethod
    def whole(cls, machines: Sequence[Machine], accepts: Accepts | None = None) -> MachineRoom:
        """Return the room in which every machine is free; jobs with requests go only where they are accepted."""
        whole = WholeMachines(machines, accepts)
        return cls(whole.all_usable, whole)

    def fit(self, job: Job, choice: Choice | random.Random = Choice.FIRST) -> MachinePlacement | None:
        """Return `job.size` free machines of which each can hold the job's requests, or None.

        FIRST takes the lowest ids, PACK the machines with the least cpu, SPREAD those with the most (equals by id).
        """
        fitting = self._fitting(job)
        if fitting.bit_count() < job.size:
            return None
        if choice is Choice.FIRST:
            return MachinePlacement(lowest(fitting, job.size))
        if isinstance(choice, random.Random):
            return MachinePlacement(mask_of(choice.sample(list(members(fitting)), job.size)))
        groups = self.machines.by_cpu if choice is Choice.PACK else self.machines.by_cpu[::-1]
        return MachinePlacement(_take_by_group(fitting, groups, job.size))

    def taken_by(self, job: Job, machine_ids: Iterable[int]) -> MachinePlacement:
        """Return which of these machines a job takes: those that are here, and not taken by another already."""
        return MachinePlacement(mask_of(machine_ids) & self.mask)

    def holds(self, job: Job) -> bool:
        """Return whether enough machines that can hold the job's requests are free."""
        return self._fitting(job).bit_count() >= job.size

    def _fitting(self, job: Job) -> int:
        return self.mask & self.machines.eligible(job) if job.requests else self.mask

    def __sub__(self, placement: Placement) -> Self:
        taken = placement.mask
        if taken & ~self.mask:
            raise ValueError(f"machines {list(members(taken & ~self.mask))} are not free")
        return type(self)(self.mask ^ taken, self.machines)

    def __add__(self, placement: Placement) -> Self:
        freed = placement.mask
        if freed & self.mask or freed & ~self.machines.all_usable:
            raise ValueError(f"machines {list(members(freed))} cannot be given back: some were not taken")
        return type(self)(self.mask | freed, self.machines)

    def __and__(self, other: Self) -> Self:
        return type(self)(self.mask & other.mask, self.machines)

    def __repr__(self) -> str:
        return f"MachineRoom(free: {format_intervals(self.mask) or 'none'})"

    @property
    def is_full(self) -> bool:
        """True when no machine is free."""
        return self.mask == 0


def _grouped_by_cpu(machines: Sequence[Machine]) -> tuple[int, ...]:
    groups: dict[int, int] = {}
    for number, machine in enumerate(machines):
        groups[machine.cpu_milli] = groups.get(machine.cpu_milli, 0) | 1 << number
    return tuple(groups[cpu] for cpu in sorted(groups))


def _take_by_group(fitting: int, groups: Sequence[int], count: int) -> int:
    """Return `count` machines of `fitting`, using up the groups one after the other."""
    taken = 0
    for group in groups:
        here = fitting & group
        missing = count - taken.bit_count()
        if here.bit_count() >= missing:
            return taken | lowest(here, missing)
        taken |= here
    raise AssertionError("unreachable: every machine is in a group and enough of them fit")
