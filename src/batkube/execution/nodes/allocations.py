"""The resource allocations of each node, as its kubelet counts them, independently of any scheduler.

This is the kubelet's own admission check (Kubernetes: pkg/kubelet/lifecycle/predicate.go): whatever a scheduler
assumes, a pod that does not fit is rejected with `OutOf<resource>`, so no node is ever overcommitted. Allocatable
resources are read from the Node whenever it changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from batkube.cluster.mapping import NODE
from batkube.cluster.nodes.resource_usage import ResourceUsage
from batkube.cluster.pods.resources import allocatable_of
from batkube.cluster.store import DELETED, Batch, Store
from batkube.cluster.world import World
from batkube.kernel.errors import Bug
from batkube.kernel.fidelity import FidelityNote, Severity
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import PODS
from batkube.platforms.model import DEFAULT_PODS
from batkube.workloads.model import Requests

_OVERCOMMITTED = FidelityNote(
    "scheduler", "bound a pod to a node without room for it, where it ran all the same", Severity.VIOLATION
)


class Shortage(NamedTuple):
    """Why a pod is not admitted."""

    node: str
    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def note(self) -> FidelityNote:
        """The fidelity note about the scheduler that bound the pod."""
        message = f"bound a pod to a node without room for it (OutOf{self.resource})"
        return FidelityNote("scheduler", message, Severity.VIOLATION)

    def __str__(self) -> str:
        """Return the kubelet's message (Kubernetes: pkg/kubelet/lifecycle/predicate.go, InsufficientResourceError)."""
        return (
            f"Node didn't have enough resource: {self.resource}, requested: {self.requested}, "
            f"used: {self.used}, capacity: {self.capacity}"
        )


class _NodeAllocation:
    """The allocatable and free resources of one node, and the number of its pods."""

    __slots__ = ("allocatable", "free", "pods", "reserved")

    def __init__(self) -> None:
        self.allocatable: defaultdict[str, int] = defaultdict(int)
        #: Negative only if the node was shrunk, or runs without admission.
        self.free: defaultdict[str, int] = defaultdict(int)
        self.pods = 0
        #: The resources of system pods, which are not counted in `pods`.
        self.reserved: Requests = ()

    def set_allocatable(self, amounts: Mapping[str, int]) -> bool:
        """Change the allocatable resources; return whether more is allocated than the node now offers."""
        for resource in {**self.allocatable, **amounts}:
            self.free[resource] += amounts.get(resource, 0) - self.allocatable[resource]
        self.allocatable = defaultdict(int, amounts)
        return any(amount < 0 for amount in self.free.values())

    def allocated(self) -> dict[str, int]:
        """Return the resources that its pods hold, without system pods."""
        reserved = dict(self.reserved)
        amounts = {name: self.allocatable[name] - free - reserved.get(name, 0) for name, free in self.free.items()}
        return {name: amount for name, amount in amounts.items() if amount}


class NodeAllocations:
    """The allocations of all nodes, by name."""

    def __init__(self, store: Store) -> None:
        self._nodes: dict[str, _NodeAllocation] = {}
        #: The number of nodes that have at least one pod.
        self.busy_node_count = 0
        #: The amounts that nodes offer and pods hold, over time.
        self.usage = ResourceUsage()
        store.subscribe(NODE, self._on_nodes_changed)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        for change in batch.changes():
            if batch.type is DELETED:
                gone = self._nodes.pop(change.key)
                self.busy_node_count -= gone.pods > 0
                self.usage.offer(gone.allocatable, -1)
                self.usage.hold(tuple(gone.allocated().items()), -1)
                continue
            before = change.previous
            if before is None or before.get("status") != change.object.get("status"):
                allocation = self._nodes.setdefault(change.key, _NodeAllocation())
                self.usage.offer(allocation.allocatable, -1)
                # A pod may be bound before the kubelet of a new node has reported how many it takes.
                self.usage.is_overcommitted |= allocation.set_allocatable(
                    {PODS: DEFAULT_PODS, **allocatable_of(change.object)}
                )
                self.usage.offer(allocation.allocatable)
        self.record_usage(now)

    def record_usage(self, now: Instant) -> None:
        """Record the held amounts from `now` on. Raise Bug if they exceed the offer."""
        self.usage.record(now)

    def __contains__(self, node: str) -> bool:
        return node in self._nodes

    def is_busy(self, node: str) -> bool:
        """Return whether a node has pods."""
        allocation = self._nodes.get(node)
        return allocation is not None and allocation.pods > 0

    def unknown_nodes(self, nodes: Sequence[str]) -> list[str]:
        """Return those of the nodes that do not exist."""
        allocations = self._nodes
        return [node for node in nodes if node not in allocations]

    def allocatable(self, node: str, resource: str) -> int:
        """Return the allocatable amount of a resource on a node."""
        return self._nodes[node].allocatable[resource]

    def resize(self, node: str, old: Requests, new: Requests) -> Shortage | None:
        """Change the allocation of a pod from `old` to `new`; if that does not fit, change nothing and return why."""
        allocation, current = self._nodes[node], dict(old)
        free = allocation.free
        for resource, count in new:
            rest = free[resource] + current.get(resource, 0)
            if rest < count > current.get(resource, 0) and not self._allows_overcommit(node, resource):
                offered = allocation.allocatable[resource]
                return Shortage(node, resource, count, offered - rest, offered)
        for sign, amounts in ((1, old), (-1, new)):
            for resource, count in amounts:
                free[resource] += sign * count
            self.usage.hold(amounts, -sign)
        return None

    def allocate(self, nodes: Sequence[str], demand: Requests) -> Shortage | None:
        """Allocate `demand` on each node, one entry per pod; if one does not fit, change nothing and return why."""
        for number, node in enumerate(nodes):
            allocation = self._nodes[node]
            free = allocation.free
            for resource, count in demand:
                if free[resource] < count and not self._allows_overcommit(node, resource):
                    offered = allocation.allocatable[resource]
                    shortage = Shortage(node, resource, count, offered - free[resource], offered)
                    self.usage.hold(demand, number)
                    self.release(nodes[:number], demand)
                    return shortage
            for resource, count in demand:
                free[resource] -= count
            if allocation.pods == 0:
                self.busy_node_count += 1
            allocation.pods += 1
        self.usage.hold(demand, len(nodes))
        return None

    def _allows_overcommit(self, node: str, resource: str) -> bool:
        """Return whether a node allocates more of a resource than it has; kubelets do not."""
        return False

    def release(self, nodes: Sequence[str], demand: Requests) -> None:
        """Release `demand` on each of the nodes, one entry per pod; deleted nodes are ignored."""
        pods = 0
        for node in nodes:
            allocation = self._nodes.get(node)
            if allocation is None:
                continue
            pods += 1
            free, offered = allocation.free, allocation.allocatable
            for resource, count in demand:
                rest = free[resource] = free[resource] + count
                if rest > offered[resource]:
                    raise Bug(f"more {resource} was released on node {node} than was allocated")
            allocation.pods -= 1
            if allocation.pods == 0:
                self.busy_node_count -= 1
        self.usage.hold(demand, -pods)

    def reserve(self, node: str, demand: Requests) -> None:
        """Allocate `demand` for a system pod, which does not make the node busy."""
        allocation = self._nodes[node]
        reserved = defaultdict(int, allocation.reserved)
        for resource, count in demand:
            allocation.free[resource] -= count
            reserved[resource] += count
        allocation.reserved = tuple(reserved.items())


class OvercommittedAllocations(NodeAllocations):
    """Nodes without admission, as in the 2020 prototype: a pod that does not fit runs nevertheless, and is counted."""

    def __init__(self, world: World) -> None:
        super().__init__(world.store)
        self._notes = world.notes
        #: The number of pods that were bound to a node without room for them.
        self.over_allocations = 0

    def _allows_overcommit(self, node: str, resource: str) -> bool:
        """Allow the allocation, and note it."""
        self.over_allocations += 1
        self.usage.is_overcommitted = True
        self._notes.add(_OVERCOMMITTED, example=f"{node} lacked {resource}")
        return True
