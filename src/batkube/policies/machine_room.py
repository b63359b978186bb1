"""Room in whole machines: each unit of a job's size takes one machine, as in Batsim without sharing.

The free machines are an integer with one bit per machine (kernel/intervals.py), so that testing
whether a job fits costs an `and` and a population count. A long trace makes that test some hundred
million times, mostly with the result "no", which is the fast case here.
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
    """The machines that a job has exclusively."""

    mask: int

    @property
    def machine_ids(self) -> tuple[int, ...]:
        """The machines in ascending order. As in Batsim's default mapping, rank 0 runs on the lowest."""
        return tuple(members(self.mask))


class WholeMachines:
    """The machines of a run, shared by all its rooms."""

    def __init__(self, machines: Sequence[Machine], accepts: Accepts | None) -> None:
        #: The machines with pod slots; machines that take no jobs have none.
        self.all_usable = mask_of(number for number, machine in enumerate(machines) if machine.capacity[PODS] > 0)
        #: Sets of machines with equal cpu, in ascending order of cpu.
        self.by_cpu = _grouped_by_cpu(machines)
        self._capacities: list[Mapping[str, int]] = [machine.capacity for machine in machines]
        #: By requests, the machines with enough capacity. A trace has few distinct requests.
        self._eligible: dict[Requests, int] = {}
        self._accepts = accepts

    def eligible(self, job: Job) -> int:
        """Return the machines that accept the job and have enough capacity for its requests."""
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
    """The free machines."""

    mask: int
    machines: WholeMachines

    @classmethod
    def whole(cls, machines: Sequence[Machine], accepts: Accepts | None = None) -> MachineRoom:
        """Return the room in which every machine is free. `accepts` restricts jobs with requests."""
        whole = WholeMachines(machines, accepts)
        return cls(whole.all_usable, whole)

    def fit(self, job: Job, choice: Choice | random.Random = Choice.FIRST) -> MachinePlacement | None:
        """Return `job.size` free machines that can each hold the job's requests, or None.

        FIRST takes the lowest ids, PACK the machines with the least cpu, SPREAD those with the most
        (ties by id).
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
        """Return which of these machines a job can take: those that exist and are free."""
        return MachinePlacement(mask_of(machine_ids) & self.mask)

    def only(self, machine_ids: Iterable[int]) -> Self:
        """Return the part of the room on these machines."""
        return type(self)(self.mask & mask_of(number for number in machine_ids if number >= 0), self.machines)

    def holds(self, job: Job) -> bool:
        """Return whether enough machines are free that can hold the job's requests."""
        return self._fitting(job).bit_count() >= job.size

    def fitting(self, job: Job) -> int:
        """Return how many machines are free that can hold the job's requests."""
        return self._fitting(job).bit_count()

    def _fitting(self, job: Job) -> int:
        return self.mask & self.machines.eligible(job) if job.requests else self.mask

    def __sub__(self, placement: Placement) -> Self:
        mask = placement.mask
        if mask & ~self.mask:
            raise ValueError(f"machines {list(members(mask & ~self.mask))} are not free")
        return type(self)(self.mask ^ mask, self.machines)

    def __add__(self, placement: Placement) -> Self:
        mask = placement.mask
        if mask & self.mask or mask & ~self.machines.all_usable:
            raise ValueError(f"cannot release machines {list(members(mask))}: not all are in use")
        return type(self)(self.mask | mask, self.machines)

    def __and__(self, other: Self) -> Self:
        return type(self)(self.mask & other.mask, self.machines)

    def __repr__(self) -> str:
        return f"MachineRoom(free: {format_intervals(self.mask) or 'none'})"

    @property
    def is_full(self) -> bool:
        """Whether no machine is free."""
        return self.mask == 0


def _grouped_by_cpu(machines: Sequence[Machine]) -> tuple[int, ...]:
    groups: dict[int, int] = {}
    for number, machine in enumerate(machines):
        groups[machine.cpu_milli] = groups.get(machine.cpu_milli, 0) | 1 << number
    return tuple(groups[cpu] for cpu in sorted(groups))


def _take_by_group(fitting: int, groups: Sequence[int], count: int) -> int:
    """Return `count` machines of `fitting`, exhausting one group after the other."""
    mask = 0
    for group in groups:
        fitting_in_group = fitting & group
        missing = count - mask.bit_count()
        if fitting_in_group.bit_count() >= missing:
            return mask | lowest(fitting_in_group, missing)
        mask |= fitting_in_group
    raise AssertionError("unreachable: every machine is in a group and enough of them fit")
