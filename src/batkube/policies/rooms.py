"""Room: what is free, and where a job would go.

Two resource models share one interface, so that a policy is written once:

* whole machines (`machines.MachineRoom`): each unit of a job's size takes one machine alone, as in Batsim;
* packing by requests (`nodes.NodeRoom`): each pod of a job takes its requests from a node it may share.

Rooms are values. `room - placement` is the room left, `room + placement` the room once it is given back, and
`room & other` what is free in both, which is what a job that lasts through both moments may use.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, Self

from batkube.workloads.model import Job

if TYPE_CHECKING:
    # Not imported where it is not needed: it takes longer to load than a small run does to run.
    import numpy as np
    import numpy.typing as npt

Accepts = Callable[[Job], "npt.NDArray[np.bool_] | None"]
"""Tells which machines take a job at all, one bit per machine; None when all do."""


class Choice(enum.Enum):
    """Which of several machines that fit is taken."""

    FIRST = "lowest id"
    PACK = "least left over"
    SPREAD = "most left over"


class Placement(Protocol):
    """Where a job's pods go."""

    @property
    def machine_ids(self) -> tuple[int, ...]:
        """One machine id per pod, in order of rank."""

    @property
    def mask(self) -> int:
        """The machines used, as an interval set (kernel/intervals.py)."""


class Room(Protocol):
    """What is free on every machine at some moment."""

    def fit(self, job: Job, choice: Choice | random.Random = Choice.FIRST) -> Placement | None:
        """Return where `job` would go, or None if it does not fit. A `Random` chooses among the fitting machines."""

    def taken_by(self, job: Job, machine_ids: Iterable[int]) -> Placement:
        """Return what pods of `job` that are on these machines take of what is free; nothing where there is too little.

        Machines that take no jobs have nothing to be taken.
        """

    def holds(self, job: Job) -> bool:
        """Return whether `job` fits, at less cost than to say where."""

    def __sub__(self, placement: Placement) -> Self:
        """Return the room left when `placement` is taken; ValueError if it is not free."""

    def __add__(self, placement: Placement) -> Self:
        """Return the room when `placement` is given back."""

    def __and__(self, other: Self) -> Self:
        """Return what is free in both rooms."""

    @property
    def is_full(self) -> bool:
        """True when no job at all can fit, so that looking for one is pointless."""
