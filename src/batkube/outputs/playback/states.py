"""The state of a cluster at an instant, computed in two equivalent ways: from the recorded objects, and by deltas.

`StateFold` applies deltas one by one, so a reader of the stream needs nothing else. `state_of` computes the state at
any instant directly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from batkube.kernel.instants import Instant
from batkube.kernel.quantities import PODS
from batkube.outputs.playback.deltas import Delta, DeltaKind
from batkube.outputs.playback.model import NodeStatus, RecordedJob, RecordedNode, RecordedPod


class NodeState(msgspec.Struct, frozen=True):
    """An existing node at an instant."""

    status: NodeStatus
    #: The numbers of the pods bound to it, in ascending order.
    pods: tuple[int, ...]
    #: The amounts that these pods hold, and their number as `pods`. The pods of a failed node hold nothing.
    used: Mapping[str, int]


class State(msgspec.Struct, frozen=True):
    """A cluster at an instant: pods and jobs by number, in ascending order."""

    #: The nodes that exist, by name, in the order of `Playback.nodes`.
    nodes: Mapping[str, NodeState]
    #: Pods that have no node.
    pending: tuple[int, ...]
    #: Pods that have a node and are not running yet.
    bound: tuple[int, ...]
    running: tuple[int, ...]
    #: Jobs that are submitted, and not all of whose pods run.
    waiting_jobs: tuple[int, ...]
    running_jobs: tuple[int, ...]


def state_of(
    nodes: Sequence[RecordedNode], jobs: Sequence[RecordedJob], pods: Sequence[RecordedPod], at: Instant
) -> State:
    """Return the state after everything at or before `at`."""
    pods_of_node: defaultdict[str, list[RecordedPod]] = defaultdict(list)
    pending: list[int] = []
    bound: list[int] = []
    running: list[int] = []
    for pod in pods:
        if pod.is_bound(at):
            pods_of_node[pod.node].append(pod)
            (running if pod.is_running(at) else bound).append(pod.number)
        elif pod.exists(at):
            pending.append(pod.number)
    waiting_jobs: list[int] = []
    running_jobs: list[int] = []
    for job in jobs:
        for execution in job.executions:
            if execution.queued <= at and (execution.ended is None or at < execution.ended):
                is_running = execution.started is not None and execution.started <= at
                (running_jobs if is_running else waiting_jobs).append(job.number)
    return State(
        {node.name: _node_state(node.status_at(at), pods_of_node[node.name]) for node in nodes if node.exists(at)},
        *map(tuple, (pending, bound, running, waiting_jobs, running_jobs)),
    )


def _node_state(status: NodeStatus, pods: Iterable[RecordedPod]) -> NodeState:
    used: defaultdict[str, int] = defaultdict(int)
    numbers = []
    for pod in pods:
        numbers.append(pod.number)
        if status is not NodeStatus.FAILED:
            used[PODS] += 1
            for resource, amount in pod.requests.items():
                used[resource] += amount
    return NodeState(status, tuple(sorted(numbers)), dict(sorted(used.items())))


class StateFold:
    """A state to which a stream of deltas is applied."""

    def __init__(self, nodes: Sequence[RecordedNode], pods: Sequence[RecordedPod]) -> None:
        self._nodes, self._pods = nodes, pods
        #: The statuses of the nodes that exist, by number.
        self.statuses: dict[int, NodeStatus] = {}
        #: The numbers of the pods that are bound to a node, by its name.
        self.pods_of_node: defaultdict[str, set[int]] = defaultdict(set)
        self.pending: set[int] = set()
        self.bound: set[int] = set()
        self.running: set[int] = set()
        self.waiting_jobs: set[int] = set()
        self.running_jobs: set[int] = set()

    def apply(self, delta: Delta) -> None:
        """Apply the next delta of the stream."""
        number, kind = delta.number, delta.kind
        if kind is DeltaKind.POD_QUEUED:
            self.pending.add(number)
        elif kind is DeltaKind.POD_BOUND:
            self.pending.discard(number)
            self.bound.add(number)
            self.pods_of_node[delta.node].add(number)
        elif kind is DeltaKind.POD_STARTED:
            self.bound.discard(number)
            self.running.add(number)
        elif kind is DeltaKind.POD_ENDED:
            for pods in (self.pending, self.bound, self.running, self.pods_of_node[delta.node]):
                pods.discard(number)
        elif kind in (DeltaKind.NODE_ADDED, DeltaKind.NODE_STATUS):
            self.statuses[number] = NodeStatus(delta.text or NodeStatus.READY)
        elif kind is DeltaKind.NODE_REMOVED:
            self.statuses.pop(number, None)
        else:
            self._apply_to_job(kind, number)

    def _apply_to_job(self, kind: DeltaKind, number: int) -> None:
        if kind is DeltaKind.JOB_QUEUED:
            self.waiting_jobs.add(number)
        elif kind is DeltaKind.JOB_STARTED:
            self.waiting_jobs.discard(number)
            self.running_jobs.add(number)
        elif kind is DeltaKind.JOB_ENDED:
            self.waiting_jobs.discard(number)
            self.running_jobs.discard(number)

    def node_state(self, number: int) -> NodeState:
        """Return the state of an existing node."""
        pods = sorted(self.pods_of_node.get(self._nodes[number].name, ()))
        return _node_state(self.statuses[number], map(self._pods.__getitem__, pods))

    def state(self) -> State:
        """Return the state after the deltas that were applied."""
        groups = (self.pending, self.bound, self.running, self.waiting_jobs, self.running_jobs)
        nodes = {self._nodes[number].name: self.node_state(number) for number in sorted(self.statuses)}
        return State(nodes, *(tuple(sorted(numbers)) for numbers in groups))
