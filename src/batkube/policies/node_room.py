"""Room by requests: each pod of a job takes its requests, and one of the node's pod slots, from a node it may share.

That is how kube-scheduler counts (plugin NodeResourcesFit): a pod fits a node when, for each resource it asks for, the
node's allocatable amount less what the pods on it asked for is enough, and one more pod is allowed. Real use plays no
part. Several pods of one job may share a node, and a job starts with all its pods or not at all.

What is free is an array with a row per resource and a column per node. How many more pods of given requests each node
can take is worked out once per room and kept, for rooms are values and a queue holds many jobs alike.
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
    """The node of each pod of a job, by rank, and what every one of these pods asked for."""

    machine_ids: tuple[int, ...]
    requests: Requests

    @property
    def mask(self) -> int:
        """The nodes used, as an interval set."""
        return mask_of(self.machine_ids)


class PodDemand:
    """What one pod of given requests takes, in the terms of the arrays."""

    def __init__(self, requests: Requests, row_of: dict[str, int]) -> None:
        wanted = {resource: amount for resource, amount in requests if amount > 0 and resource != PODS}
        #: False when it asks for a resource that no node has: it never fits.
        self.is_known = all(resource in row_of for resource in wanted)
        #: Per row of the arrays; 0 where nothing is asked for.
        self.amounts: Amounts = np.zeros(len(row_of), dtype=np.int64)
        for resource, amount in wanted.items():
            if resource in row_of:
                self.amounts[row_of[resource]] = amount
        #: Rows by which nodes are compared. Pod slots are so many that they would drown the others.
        self.compared = np.flatnonzero(self.amounts).tolist() or [row_of[PODS]]
        self.amounts[row_of[PODS]] = 1
        #: Rows of which something is asked.
        self.rows: list[int] = np.flatnonzero(self.amounts).tolist()


class Nodes:
    """The nodes themselves, whatever runs on them. Every room of a run shares one."""

    def __init__(self, machines: Sequence[Machine], accepts: Accepts | None) -> None:
        #: Which nodes take a job at all; None when all do.
        self.accepts = accepts
        names = sorted({PODS}.union(*(machine.capacity for machine in machines)))
        self.row_of = {name: row for row, name in enumerate(names)}
        self.capacity: Amounts = np.array(
            [[machine.capacity.get(name, 0) for machine in machines] for name in names], dtype=np.int64
        )
        #: Grows by one entry for each distinct request seen.
        self._demands: dict[Requests, PodDemand] = {}

    def demand(self, requests: Requests) -> PodDemand:
        """Return what a pod of `requests` takes."""
        demand = self._demands.get(requests)
        if demand is None:
            demand = self._demands[requests] = PodDemand(requests, self.row_of)
        return demand


class NodeRoom:
    """What is free on each node. A value: `free` is never written to, and never negative."""

    __slots__ = ("_slot_counts", "free", "nodes")

    def __init__(self, free: Amounts, nodes: Nodes) -> None:
        self.free = free
        self.nodes = nodes
        #: By requests: how many such pods each node can take, and all nodes together.
        self._slot_counts: dict[Requests, tuple[Amounts, int]] = {}

    @classmethod
    def whole(cls, machines: Sequence[Machine], accepts: Accepts | None = None) -> NodeRoom:
        """Return the room in which nothing runs, and where jobs go only where they are accepted."""
        nodes = Nodes(machines, accepts)
        return cls(nodes.capacity, nodes)

    def fit(self, job: Job, choice: Choice | random.Random = Choice.FIRST) -> NodePlacement | None:
        """Return a node for each of the job's `size` pods, or None when not all of them fit.

        FIRST fills the nodes in the order of their ids. PACK and SPREAD choose for one pod after the other, by the
        share of a node that it would leave over: of the resources asked for, the one of which the largest share of
        the node's capacity is left; PACK takes the least, SPREAD the most (equals by id). A `Random` chooses for
        each pod among the nodes that still fit it, all alike.
        """
        places, count = self._slots_for(job)
        if count < job.size:
            return None
        if choice is Choice.FIRST:
            chosen = _first(places, job.size)
        elif isinstance(choice, random.Random):
            chosen = _at_random(places.copy(), job.size, choice)
        else:
            chosen = self._by_left_over(job, places.copy(), 1 if choice is Choice.PACK else -1)
        return NodePlacement(chosen, job.requests)

    def holds(self, job: Job) -> bool:
        """Return whether the nodes together can take all the job's pods."""
        return self._slots_for(job)[1] >= job.size

    def taken_by(self, job: Job, machine_ids: Iterable[int]) -> NodePlacement:
        """Return what the job's pods take of those of these nodes that have places for pods; all of it or nothing."""
        slots = self.nodes.capacity[self.nodes.row_of[PODS]]
        placement = NodePlacement(tuple(number for number in machine_ids if slots[number]), job.requests)
        try:
            _ = self - placement
        except ValueError:
            return NodePlacement((), ())
        return placement

    def _slots_for(self, job: Job) -> tuple[Amounts, int]:
        """Return how many of the job's pods each node can take, and all of those that accept it together."""
        places, count = self._slots_by_requests(job.requests)
        accepted = None if self.nodes.accepts is None else self.nodes.accepts(job)
        if accepted is None or accepted.all():
            return places, count
        places = np.where(accepted, places, 0)
        return places, int(places.sum())

    def _slots_by_requests(self, requests: Requests) -> tuple[Amounts, int]:
        known = self._slot_counts.get(requests)
        if known is not None:
            return known
        demand = self.nodes.demand(requests)
        if demand.is_known:
            places = self.free[demand.rows[0]] // demand.amounts[demand.rows[0]]
            for row in demand.rows[1:]:
                places = np.minimum(places, self.free[row] // demand.amounts[row])
        else:
            places = np.zeros(self.free.shape[1], dtype=np.int64)
        entry = self._slot_counts[requests] = places, int(places.sum())
        return entry

    def _by_left_over(self, job: Job, places: Amounts, sign: int) -> tuple[int, ...]:
        """Choose nodes pod by pod, the smallest `sign` times share left over first; `places` is used up."""
        demand = self.nodes.demand(job.requests)
        rows = demand.compared
        capacity = np.maximum(self.nodes.capacity[rows], 1)  # a node that has none of a resource has no places
        amounts = demand.amounts[rows]
        left = self.free[rows] - amounts[:, np.newaxis]
        score = np.where(places > 0, sign * (left / capacity).max(axis=0), np.inf)
        chosen = []
        for _ in range(job.size):
            node = int(score.argmin())
            chosen.append(node)
            places[node] -= 1
            left[:, node] -= amounts
            score[node] = sign * (left[:, node] / capacity[:, node]).max() if places[node] else np.inf
        return tuple(chosen)

    def __sub__(self, placement: Placement) -> Self:
        free = self._free_after(placement, -1)
        if free.min() < 0:
            raise ValueError(f"nodes {placement.machine_ids} do not have {_requests_of(placement)} free for each pod")
        return type(self)(free, self.nodes)

    def __add__(self, placement: Placement) -> Self:
        free = self._free_after(placement, 1)
        if (free > self.nodes.capacity).any():
            raise ValueError(f"nodes {placement.machine_ids} cannot be given back more than they have")
        return type(self)(free, self.nodes)

    def _free_after(self, placement: Placement, sign: int) -> Amounts:
        """Return what is free once the placement's requests are added (`sign` 1) or taken (-1)."""
        demand = self.nodes.demand(_requests_of(placement))
        if not demand.is_known:
            raise ValueError(f"no node has all of {_requests_of(placement)}")
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

    __hash__ = None  # type: ignore[assignment]  # an array has no cheap hash, and no one needs it

    def __repr__(self) -> str:
        free = {name: self.free[row].tolist() for name, row in self.nodes.row_of.items()}
        return f"NodeRoom({free})"

    @property
    def is_full(self) -> bool:
        """True when no node takes another pod, even one that asks for nothing."""
        return not self.free[self.nodes.row_of[PODS]].any()


def _requests_of(placement: Placement) -> Requests:
    if not isinstance(placement, NodePlacement):
        raise TypeError(f"a {type(placement).__name__} says nothing of requests; use what NodeRoom.fit returned")
    return placement.requests


def _first(places: Amounts, size: int) -> tuple[int, ...]:
    """Return nodes for `size` pods, filling each before the next."""
    if size == 1:
        return (int((places > 0).argmax()),)
    filled = np.minimum(places.cumsum(), size)
    pods = np.diff(filled, prepend=0)
    return tuple(np.repeat(np.arange(len(places)), pods).tolist())


def _at_random(places: Amounts, size: int, rng: random.Random) -> tuple[int, ...]:
    """Return nodes for `size` pods, each drawn from those with a place left; `places` is used up."""
    chosen = []
    for _ in range(size):
        open_nodes = np.flatnonzero(places)
        node = int(open_nodes[rng.randrange(len(open_nodes))])
        chosen.append(node)
        places[node] -= 1
    return tuple(chosen)
