"""Groups of pods that kubelets handle together: a single pod, or the pods of one job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from batkube.cluster.store import Key
from batkube.kernel.instants import Instant
from batkube.workloads.model import Requests

_Value = TypeVar("_Value")


def without_none(values: Sequence[_Value | None]) -> Sequence[_Value]:
    """Return the values that are not None; `values` itself if none is."""
    if None in values:
        return [value for value in values if value is not None]
    return cast(Sequence[_Value], values)


class PodGroup:
    """Pods with equal requests; index i of every list is the pod of rank i."""

    __slots__ = ("demand", "keys", "nodes", "scheduled")

    def __init__(self, keys: list[Key], demand: Requests) -> None:
        self.keys = keys
        #: The resources that each pod takes from its node.
        self.demand = demand
        #: Of each pod: the node whose resources it holds, and when that node admitted it.
        self.nodes: list[str | None] = [None] * len(keys)
        self.scheduled: list[Instant | None] = [None] * len(keys)

    def are_all(self, ranks: Sequence[int]) -> bool:
        """Return whether `ranks` is the range of all ranks, in order: the usual case, which is handled faster."""
        return type(ranks) is range and len(ranks) == len(self.keys)

    def record_admission(self, ranks: Sequence[int], nodes: Sequence[str], now: Instant) -> None:
        """Record that pods hold resources of their nodes."""
        if self.are_all(ranks):
            self.nodes[:], self.scheduled[:] = nodes, [now] * len(nodes)
            return
        for rank, node in zip(ranks, nodes, strict=True):
            self.nodes[rank], self.scheduled[rank] = node, now

    def keys_of(self, ranks: Sequence[int]) -> Sequence[Key]:
        """Return the keys of pods; `keys` itself for all."""
        return self.keys if self.are_all(ranks) else [self.keys[rank] for rank in ranks]

    def live_ranks(self, ranks: Sequence[int]) -> Sequence[int]:
        """Return the ranks whose pods hold resources; `ranks` itself if all do."""
        nodes = self.nodes
        return ranks if None not in nodes else [rank for rank in ranks if nodes[rank] is not None]

    def pop_nodes(self, ranks: Sequence[int]) -> list[str]:
        """Return the nodes of pods that hold resources, and record that they no longer do."""
        nodes = self.nodes
        if self.are_all(ranks):
            self.nodes = [None] * len(nodes)
            return cast(list[str], nodes)
        released = cast(list[str], [nodes[rank] for rank in ranks])
        for rank in ranks:
            nodes[rank] = None
        return released

    @property
    def is_live(self) -> bool:
        """Whether any pod holds resources."""
        return any(self.nodes)

    @property
    def title(self) -> str:
        """The group's name in messages, such as `job w0!7`."""
        return f"pod {self.keys[0]}"
