"""Room by requests: each pod takes its requests and one pod slot from a node, which pods may share.

A pod fits a node if, for every requested resource, the node's allocatable amount minus the requests
of its pods is sufficient, and a pod slot is free. Actual use is ignored. Imitates the plugin
NodeResourcesFit (kube-scheduler: pkg/scheduler/framework/plugins/noderesources/fit.go). Several
pods of a job may share a node, and a job starts with all its pods or not at all.

Free resources are an array with a row per resource and a column per node. The number of additional
pods with given requests that each node can take is computed once per room: rooms are values, and a
queue has many similar jobs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Self

import msgspec
import numpy as np
import numpy.typing as npt

from batkube.kernel.intervals import mask_of
from batkube.kernel.quantities import PODS
from batkube.platforms.model import Machine
from batkube.policies.rooms import Accepts, Choice, Placement
from batkube.workloads.model import Job, Requests

Amounts = npt.NDArray[np.int64]


class NodePlacement(msgspec.Struct, frozen=True, gc=False):
    """The node of each pod of a job, by rank, and the requests of each of these pods."""

    machine_ids: tuple[int, ...]
    requests: Requests

    @property
    def mask(self) -> int:
        """The nodes used, as an interval set."""
        return mask_of(self.machine_ids)


class PodDemand:
    """The requests of one pod as a column of the arrays."""

    def __init__(self, requests: Requests, row_of: dict[str, int]) -> None:
        requested = {resource: amount for resource, amount in requests if amount > 0 and resource != PODS}
        #: False if it requests a resource that no node has. The pod then never fits.
        self.is_satisfiable = all(resource in row_of for resource in requested)
        #: By row of the arrays; 0 where nothing is requested.
        self.amounts: Amounts = np.zeros(len(row_of), dtype=np.int64)
        for resource, amount in requested.items():
            if resource in row_of:
                self.amounts[row_of[resource]] = amount
        #: The rows by which nodes are compared. Pod slots are left out: there are so many of them that
        #: they would dominate the other resources.
        self.compared = np.flatnonzero(self.amounts).tolist() or [row_of[PODS]]
        self.amounts[row_of[PODS]] = 1
        #: The rows of requested resources.
        self.rows: list[int] = np.flatnonzero(self.amounts).tolist()


class Nodes:
    """The nodes of a run, shared by all its rooms."""

    def __init__(self, machines: Sequence[Machine], accepts: Accepts | None) -> None:
        #: Returns the nodes that accept a job; None if all nodes accept all jobs.
        self.accepts = accepts
        names = sorted({PODS}.union(*(machine.capacity for machine in machines)))
        self.row_of = {name: row for row, name in enumerate(names)}
        self.capacity: Amounts = np.array(
            [[machine.capacity.get(name, 0) for machine in machines] for name in names], dtype=np.int64
        )
        #: By requests. A trace has few distinct ones.
        self._demands: dict[Requests, PodDemand] = {}

    def demand(self, requests: Requests) -> PodDemand:
        """Return the demand of a pod with these requests."""
        demand = self._demands.get(requests)
        if demand is None:
            demand = self._demands[requests] = PodDemand(requests, self.row_of)
        return demand


class NodeRoom:
    """The free resources of each node. A value: `free` is never modified, and never negative."""

    __slots__ = ("_slot_counts", "free", "nodes")

    def __init__(self, free: Amounts, nodes: Nodes) -> None:
        self.free = free
        self.nodes = nodes
        #: By requests, the number of such pods that each node can take, and their sum.
        self._slot_counts: dict[Requests, tuple[Amounts, int]] = {}

    @classmethod
    def whole(cls, machines: Sequence[Machine], accepts: Accepts | None = None) -> NodeRoom:
        """Return the room in which nothing runs. `accepts` restricts jobs to nodes."""
        nodes = Nodes(machines, accepts)
        return cls(nodes.capacity, nodes)

    def fit(self, job: Job, choice: Choice | random.Random = Choice.FIRST) -> NodePlacement | None:
        """Return a node for each of the job's `size` pods, or None if not all of them fit.

        FIRST fills the nodes in the order of their ids. PACK and SPREAD choose a node for one pod
        after the other by the share of it that would be left: of the requested resources, the
        largest (free − request) / capacity. PACK takes the lowest share, SPREAD the highest (ties
        by id). A `Random` draws for each pod one of the nodes that still fit it, with equal
        probability.
        """
        slots, count = self._slots_for(job)
        if count < job.size:
            return None
        if choice is Choice.FIRST:
            machine_ids = _first(slots, job.size)
        elif isinstance(choice, random.Random):
            machine_ids = _at_random(slots.copy(), job.size, choice)
        else:
            machine_ids = self._by_left_over(job, slots.copy(), 1 if choice is Choice.PACK else -1)
        return NodePlacement(machine_ids, job.requests)

    def only(self, machine_ids: Iterable[int]) -> Self:
        """Return the part of the room on these nodes."""
        count = self.free.shape[1]
        chosen = np.zeros(count, dtype=bool)
        chosen[[number for number in machine_ids if 0 <= number < count]] = True
        return type(self)(np.where(chosen, self.free, 0), self.nodes)

    def holds(self, job: Job) -> bool:
        """Return whether the nodes together can take all the job's pods."""
        return self._slots_for(job)[1] >= job.size

    def fitting(self, job: Job) -> int:
        """Return how many of the job's pods the nodes together can take."""
        return self._slots_for(job)[1]

    def taken_by(self, job: Job, machine_ids: Iterable[int]) -> NodePlacement:
        """Return the resources that the job's pods take on these nodes; nothing if not all are free.

        Nodes without pod slots are left out.
        """
        slots = self.nodes.capacity[self.nodes.row_of[PODS]]
        placement = NodePlacement(tuple(number for number in machine_ids if slots[number]), job.requests)
        try:
            _ = self - placement
        except ValueError:
            return NodePlacement((), ())
        return placement

    def _slots_for(self, job: Job) -> tuple[Amounts, int]:
        """Return how many of the job's pods each node that accepts the job can take, and their sum."""
        slots, count = self._slots_by_requests(job.requests)
        accepted = None if self.nodes.accepts is None else self.nodes.accepts(job)
        if accepted is None or accepted.all():
            return slots, count
        slots = np.where(accepted, slots, 0)
        return slots, int(slots.sum())

    def _slots_by_requests(self, requests: Requests) -> tuple[Amounts, int]:
        cached = self._slot_counts.get(requests)
        if cached is not None:
            return cached
        demand = self.nodes.demand(requests)
        if demand.is_satisfiable:
            slots = self.free[demand.rows[0]] // demand.amounts[demand.rows[0]]
            for row in demand.rows[1:]:
                slots = np.minimum(slots, self.free[row] // demand.amounts[row])
        else:
            slots = np.zeros(self.free.shape[1], dtype=np.int64)
        entry = self._slot_counts[requests] = slots, int(slots.sum())
        return entry

    def _by_left_over(self, job: Job, slots: Amounts, sign: int) -> tuple[int, ...]:
        """Choose nodes pod by pod, the lowest `sign` times the share left first. Modifies `slots`."""
        demand = self.nodes.demand(job.requests)
        rows = demand.compared
        capacity = np.maximum(self.nodes.capacity[rows], 1)  # a node without the resource has no slots
        amounts = demand.amounts[rows]
        left = self.free[rows] - amounts[:, np.newaxis]
        score = np.where(slots > 0, sign * (left / capacity).max(axis=0), np.inf)
        machine_ids = []
        for _ in range(job.size):
            node = int(score.argmin())
            machine_ids.append(node)
            slots[node] -= 1
            left[:, node] -= amounts
            score[node] = sign * (left[:, node] / capacity[:, node]).max() if slots[node] else np.inf
        return tuple(machine_ids)

    def __sub__(self, placement: Placement) -> Self:
        free = self._free_after(placement, -1)
        if free.min() < 0:
            raise ValueError(f"nodes {placement.machine_ids} lack free {_requests_of(placement)} for each pod")
        return type(self)(free, self.nodes)

    def __add__(self, placement: Placement) -> Self:
        free = self._free_after(placement, 1)
        if (free > self.nodes.capacity).any():
            raise ValueError(f"cannot release more on nodes {placement.machine_ids} than their capacity")
        return type(self)(free, self.nodes)

    def _free_after(self, placement: Placement, sign: int) -> Amounts:
        """Return the free resources after the placement is released (`sign` 1) or taken (-1)."""
        demand = self.nodes.demand(_requests_of(placement))
        if not demand.is_satisfiable:
            raise ValueError(f"no node has all resources of {_requests_of(placement)}")
        free = self.free.copy()
        if len(placement.machine_ids) == 1:
            free[:, placement.machine_ids[0]] += sign * demand.amounts
        else:
            free += sign * np.outer(demand.amounts, np.bincount(placement.machine_ids, minlength=free.shape[1]))
        return free

    def __and__(self, other: Self) -> Self:
        return type(self)(np.minimum(self.free, other.free), self.nodes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeRoom) and np.array_equal(self.free, other.free)

    __hash__ = None  # type: ignore[assignment]  # an array has no cheap hash

    def __repr__(self) -> str:
        free = {name: self.free[row].tolist() for name, row in self.nodes.row_of.items()}
        return f"NodeRoom({free})"

    @property
    def is_full(self) -> bool:
        """Whether no node takes another pod, even one without requests."""
        return not self.free[self.nodes.row_of[PODS]].any()


def _requests_of(placement: Placement) -> Requests:
    if not isinstance(placement, NodePlacement):
        raise TypeError(f"a {type(placement).__name__} has no requests; use a placement from NodeRoom.fit")
    return placement.requests


def _first(slots: Amounts, size: int) -> tuple[int, ...]:
    """Return nodes for `size` pods, filling each before the next."""
    if size == 1:
        return (int((slots > 0).argmax()),)
    filled = np.minimum(slots.cumsum(), size)
    pods = np.diff(filled, prepend=0)
    return tuple(np.repeat(np.arange(len(slots)), pods).tolist())


def _at_random(slots: Amounts, size: int, rng: random.Random) -> tuple[int, ...]:
    """Return nodes for `size` pods, each drawn from those with a free slot. Modifies `slots`."""
    machine_ids = []
    for _ in range(size):
        open_nodes = np.flatnonzero(slots)
        node = int(open_nodes[rng.randrange(len(open_nodes))])
        machine_ids.append(node)
        slots[node] -= 1
    return tuple(machine_ids)
