"""Totals of a cluster, updated by a stream of deltas: capacity, amounts held by pods, waiting pods and jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from batkube.outputs.playback.deltas import Delta, DeltaKind
from batkube.outputs.playback.model import NodeStatus, RecordedNode, RecordedPod


class PlaybackTotals:
    """The totals of one resource, and the numbers of waiting pods and jobs, after the applied deltas.

    The pods of a failed node hold nothing, and only ready nodes have anything free.
    """

    def __init__(self, nodes: Sequence[RecordedNode], pods: Sequence[RecordedPod], resource: str) -> None:
        self._nodes, self._pods, self._resource = nodes, pods, resource
        self._status: dict[str, NodeStatus] = {}
        self._capacity = {node.name: node.capacity.get(resource, 0) for node in nodes}
        self._held_on: defaultdict[str, int] = defaultdict(int)
        #: What existing nodes offer, what pods hold of it, and what is free on ready nodes.
        self.offered = 0
        self.held = 0
        self.free = 0
        self.pending_pods = 0
        self.waiting_jobs = 0
        self.running_jobs = 0
        #: Which pods are bound, and which jobs run.
        self._bound: set[int] = set()
        self._running: set[int] = set()

    @property
    def utilisation(self) -> float:
        """The share of the capacity that pods hold; 0 without capacity."""
        return self.held / self.offered if self.offered else 0.0

    def apply(self, delta: Delta) -> None:
        """Apply the next delta of the stream."""
        kind = delta.kind
        if kind in (DeltaKind.NODE_ADDED, DeltaKind.NODE_REMOVED, DeltaKind.NODE_STATUS):
            name = self._nodes[delta.number].name
            self._change_node(name, None if kind is DeltaKind.NODE_REMOVED else NodeStatus(delta.text or "ready"))
        elif kind in (DeltaKind.POD_QUEUED, DeltaKind.POD_BOUND, DeltaKind.POD_ENDED):
            self._change_pod(delta)
        elif kind is DeltaKind.JOB_QUEUED:
            self.waiting_jobs += 1
        elif kind is DeltaKind.JOB_STARTED:
            self.waiting_jobs -= 1
            self._running.add(delta.number)
        elif kind is DeltaKind.JOB_ENDED and delta.number in self._running:
            self._running.remove(delta.number)
        elif kind is DeltaKind.JOB_ENDED:
            self.waiting_jobs -= 1
        self.running_jobs = len(self._running)

    def _change_pod(self, delta: Delta) -> None:
        if delta.kind is DeltaKind.POD_QUEUED:
            self.pending_pods += 1
        elif delta.kind is DeltaKind.POD_BOUND:
            self.pending_pods -= 1
            self._bound.add(delta.number)
            self._add_held(delta, 1)
        elif delta.number in self._bound:
            self._bound.remove(delta.number)
            self._add_held(delta, -1)
        else:
            self.pending_pods -= 1

    def _add_held(self, delta: Delta, sign: int) -> None:
        amount = sign * self._pods[delta.number].requests.get(self._resource, 0)
        self._count(delta.node, -1)
        self._held_on[delta.node] += amount
        self._count(delta.node, 1)

    def _change_node(self, name: str, status: NodeStatus | None) -> None:
        """Set the status of a node; None if it does not exist any more."""
        self._count(name, -1)
        if status is None:
            self._status.pop(name, None)
        else:
            self._status[name] = status
        self._count(name, 1)

    def _count(self, name: str, sign: int) -> None:
        """Add the amounts of a node to the totals, or subtract them with a `sign` of -1."""
        status = self._status.get(name)
        if status is None:
            return
        held = 0 if status is NodeStatus.FAILED else self._held_on[name]
        self.offered += sign * self._capacity[name]
        self.held += sign * held
        if status is NodeStatus.READY:
            self.free += sign * max(0, self._capacity[name] - held)
