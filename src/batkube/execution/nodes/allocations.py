"""The resource allocations of each node, as its kubelet counts them, independently of any scheduler.

This is the kubelet's own admission check (Kubernetes: pkg/kubelet/lifecycle/predicate.go): whatever a scheduler
assumes, a pod that does not fit is rejected with `OutOf<resource>`, so no node is ever overcommitted. Allocatable
resources are read from the Node whenever it changes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from batkube.cluster.mapping import NODE
from batkube.cluster.nodes.resource_usage import ResourceUsage
from batkube.cluster.pods.resources import allocatable_of
from batkube.cluster.store import DELETED, Batch, Store
from batkube.cluster.world import World
from batkube.kernel.fidelity import FidelityNote, Severity
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import PODS
from batkube.platforms.model import DEFAULT_PODS
from batkube.workloads.model import Requests

_OVERCOMMITTED = FidelityNote(
    "scheduler", "bound a pod to a node without room for it, where it ran nevertheless", Severity.VIOLATION
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


class _NodeState:
    """The allocatable resources of one node, and its pods."""

    __slots__ = ("allocatable", "pods", "reserved")

    def __init__(self) -> None:
        self.allocatable: Mapping[str, int] = {}
        self.pods = 0
        #: The resources of system pods, which are not counted in `pods`.
        self.reserved: Requests = ()


class NodeAllocations:
    """The allocations of all nodes, by name."""

    def __init__(self, store: Store) -> None:
        self._nodes: dict[str, _NodeState] = {}
        #: By resource, the free amount of each node; negative only if a node was shrunk, or runs without admission.
        self._free: dict[str, dict[str, int]] = {}
        #: The number of nodes that have at least one pod.
        self.busy_node_count = 0
        #: The amounts that nodes offer and pods hold, over time.
        self.usage = ResourceUsage()
        store.subscribe(NODE, self._on_nodes_changed)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        for change in batch.changes():
            if batch.type is DELETED:
                self._remove(change.key)
            elif change.previous is None or change.previous.get("status") != change.object.get("status"):
                # A pod may be bound before the kubelet of a new node has reported how many it takes.
                self._set_allocatable(change.key, {PODS: DEFAULT_PODS, **allocatable_of(change.object)})
        self.record_usage(now)

    def _remove(self, node: str) -> None:
        allocated = self._allocated(node)
        state = self._nodes.pop(node)
        for free in self._free.values():
            del free[node]
        self.busy_node_count -= state.pods > 0
        self.usage.offer(state.allocatable, -1)
        self.usage.hold(tuple(allocated.items()), -1)

    def _set_allocatable(self, node: str, amounts: Mapping[str, int]) -> None:
        """Change the allocatable resources of a node."""
        state = self._nodes.get(node)
        if state is None:
            state = self._nodes[node] = _NodeState()
            for free in self._free.values():
                free[node] = 0
        self.usage.offer(state.allocatable, -1)
        for resource in {**state.allocatable, **amounts}:
            self._free_of(resource)[node] += amounts.get(resource, 0) - state.allocatable.get(resource, 0)
        state.allocatable = amounts
        self.usage.is_overcommitted |= any(free[node] < 0 for free in self._free.values())
        self.usage.offer(amounts)

    def _free_of(self, resource: str) -> dict[str, int]:
        """Return the free amount of a resource by node."""
        free = self._free.get(resource)
        if free is None:
            free = self._free[resource] = dict.fromkeys(self._nodes, 0)
        return free

    def _allocated(self, node: str) -> dict[str, int]:
        """Return the resources that the pods of a node hold, without system pods."""
        state = self._nodes[node]
        reserved = dict(state.reserved)
        amounts = {
            resource: state.allocatable.get(resource, 0) - free[node] - reserved.get(resource, 0)
            for resource, free in self._free.items()
        }
        return {resource: amount for resource, amount in amounts.items() if amount}

    def record_usage(self, now: Instant) -> None:
        """Record the held amounts from `now` on. Raise Bug if they exceed the allocatable amounts."""
        self.usage.record(now)

    def __contains__(self, node: str) -> bool:
        return node in self._nodes

    def is_busy(self, node: str) -> bool:
        """Return whether a node has pods."""
        state = self._nodes.get(node)
        return state is not None and state.pods > 0

    def unknown_nodes(self, nodes: Sequence[str]) -> list[str]:
        """Return which of the nodes do not exist."""
        return [] if self._are_all_known(nodes) else [node for node in nodes if node not in self._nodes]

    def _are_all_known(self, nodes: Sequence[str]) -> bool:
        return all(map(self._nodes.__contains__, nodes))

    def allocatable(self, node: str, resource: str) -> int:
        """Return the allocatable amount of a resource on a node."""
        return self._nodes[node].allocatable.get(resource, 0)

    def resize(self, node: str, old: Requests, new: Requests) -> Shortage | None:
        """Change the allocation of a pod from `old` to `new`; if that does not fit, change nothing and return why."""
        current = dict(old)
        for resource, count in new:
            rest = self._free_of(resource)[node] + current.get(resource, 0)
            if rest < count > current.get(resource, 0) and not self._allows_overcommit(node, resource):
                return self._shortage(node, resource, count, rest)
        for sign, amounts in ((1, old), (-1, new)):
            for resource, count in amounts:
                self._free_of(resource)[node] += sign * count
            self.usage.hold(amounts, -sign)
        return None

    def allocate(self, nodes: Sequence[str], demand: Requests) -> Shortage | None:
        """Allocate `demand` on each node, one entry per pod; if one does not fit, change nothing and return why."""
        fits = True
        for resource, count in demand:
            free = self._free_of(resource)
            for node in nodes:
                rest = free[node] = free[node] - count
                if rest < 0:
                    fits = False
        if not fits and (shortage := self._first_shortage(nodes, demand)) is not None:
            self._deallocate(nodes, demand)
            return shortage
        states = self._nodes
        for node in nodes:
            state = states[node]
            if state.pods == 0:
                self.busy_node_count += 1
            state.pods += 1
        self.usage.hold(demand, len(nodes))
        return None

    def _first_shortage(self, nodes: Sequence[str], demand: Requests) -> Shortage | None:
        """Return the first shortage that does not allow overcommitment, when `demand` has been allocated on `nodes`."""
        remaining = Counter(nodes)
        for node in nodes:
            remaining[node] -= 1
            for resource, count in demand:
                # The free amount as it was after this pod, and before the later pods of the same node.
                rest = self._free[resource][node] + count * remaining[node]
                if rest < 0 and not self._allows_overcommit(node, resource):
                    return self._shortage(node, resource, count, rest + count)
        return None

    def _shortage(self, node: str, resource: str, count: int, free: int) -> Shortage:
        offered = self.allocatable(node, resource)
        return Shortage(node, resource, count, offered - free, offered)

    def _deallocate(self, nodes: Sequence[str], demand: Requests) -> None:
        """Add `demand` to the free amounts of existing nodes, one entry per pod."""
        for resource, count in demand:
            free = self._free[resource]
            for node in nodes:
                free[node] += count

    def _allows_overcommit(self, node: str, resource: str) -> bool:
        """Return whether a node allocates more of a resource than it has; kubelets do not."""
        return False

    def release(self, nodes: Sequence[str], demand: Requests) -> None:
        """Release `demand` on each of the nodes, one entry per pod; deleted nodes are ignored.

        Amounts that were not allocated are found by `record_usage`.
        """
        if not self._are_all_known(nodes):
            nodes = [node for node in nodes if node in self._nodes]
        self._deallocate(nodes, demand)
        states = self._nodes
        for node in nodes:
            state = states[node]
            state.pods -= 1
            if state.pods == 0:
                self.busy_node_count -= 1
        self.usage.hold(demand, -len(nodes))

    def reserve(self, node: str, demand: Requests) -> None:
        """Allocate `demand` for a system pod, which does not make the node busy."""
        state = self._nodes[node]
        reserved = defaultdict(int, state.reserved)
        for resource, count in demand:
            self._free_of(resource)[node] -= count
            reserved[resource] += count
        state.reserved = tuple(reserved.items())


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
