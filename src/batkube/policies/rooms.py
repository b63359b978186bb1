"""Rooms: the free capacity of a cluster, and where a job would be placed in it.

Two resource models share one interface, so that a policy is written once:

* whole machines (`machine_room.MachineRoom`): each unit of a job's size takes one machine alone, as
  in Batsim;
* packing by requests (`node_room.NodeRoom`): each pod of a job takes its requests from a node it
  may share.

Rooms are values. `room - placement` is the remaining room, `room + placement` the room after the placement is released,
and `room & other` the capacity that is free in both: the room for a job that runs from one moment to the other.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, Self

from batkube.workloads.model import Job

if TYPE_CHECKING:
    # numpy takes longer to load than a small run.
    import numpy as np
    import numpy.typing as npt

Accepts = Callable[[Job], "npt.NDArray[np.bool_] | None"]
"""Returns the machines that accept a job as an array of booleans; None if all do."""


class Choice(enum.Enum):
    """Which of the machines that fit to take."""

    FIRST = "lowest id"
    PACK = "least left over"
    SPREAD = "most left over"


class Placement(Protocol):
    """The machines of a job's pods."""

    @property
    def machine_ids(self) -> tuple[int, ...]:
        """The machine id of each pod, in order of rank."""

    @property
    def mask(self) -> int:
        """The machines used, as an interval set (kernel/intervals.py)."""


class Room(Protocol):
    """The free capacity of all machines at a moment."""

    def fit(self, job: Job, choice: Choice | random.Random = Choice.FIRST) -> Placement | None:
        """Return the placement of `job`, or None if it does not fit. A `Random` draws among all machines."""

    def taken_by(self, job: Job, machine_ids: Iterable[int]) -> Placement:
        """Return the free capacity that pods of `job` take on these machines; empty if not all is free.

        Machines that take no jobs are left out.
        """

    def holds(self, job: Job) -> bool:
        """Return whether `job` fits, at less cost than `fit`."""

    def fitting(self, job: Job) -> int:
        """Return how many pods like those of `job` fit: at least its size if the job fits."""

    def only(self, machine_ids: Iterable[int]) -> Self:
        """Return the part of the room on these machines: `view.free.only(machines).fit(job)` places a job there."""

    def __sub__(self, placement: Placement) -> Self:
        """Return the room without `placement`. Raises ValueError if it is not free."""

    def __add__(self, placement: Placement) -> Self:
        """Return the room after `placement` is released."""

    def __and__(self, other: Self) -> Self:
        """Return the capacity that is free in both rooms."""

    @property
    def is_full(self) -> bool:
        """Whether no job at all can fit."""
