"""What the pods on each node have taken, as its kubelet counts it, independently of any scheduler.

This is the kubelet's own admission check (Kubernetes: pkg/kubelet/lifecycle/predicate.go): whatever a scheduler
believes, a pod that does not fit is rejected with `OutOf<resource>`, so no node is ever over-allocated. Nodes come, go
and change their size; what they offer is read from the Node whenever it changes.
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
        """What is noted of the scheduler that did not see it."""
        what = f"bound a pod to a node without room for it (OutOf{self.resource})"
        return FidelityNote("scheduler", what, Severity.VIOLATION)

    def __str__(self) -> str:
        """Say it as the kubelet does (Kubernetes: lifecycle.InsufficientResourceError)."""
        return (
            f"Node didn't have enough resource: {self.resource}, requested: {self.requested}, "
            f"used: {self.used}, capacity: {self.capacity}"
        )


class _NodeAllocation:
    """One node: what it offers, what is left of that, and how many pods hold the rest."""

    __slots__ = ("allocatable", "free", "pods", "reserved")

    def __init__(self) -> None:
        self.allocatable: defaultdict[str, int] = defaultdict(int)
        #: Less than nothing only when the node was made smaller since, or refuses nothing.
        self.free: defaultdict[str, int] = defaultdict(int)
        self.pods = 0
        #: What the cluster's own pods take, which are not counted in `pods`.
        self.reserved: Requests = ()

    def set_allocatable(self, amounts: Mapping[str, int]) -> bool:
        """Offer other amounts than before; what is taken stays taken. Return whether more is taken than offered."""
        for resource in {**self.allocatable, **amounts}:
            self.free[resource] += amounts.get(resource, 0) - self.allocatable[resource]
        self.allocatable = defaultdict(int, amounts)
        return any(amount < 0 for amount in self.free.values())

    def allocated(self) -> dict[str, int]:
        """Return what its pods hold."""
        reserved = dict(self.reserved)
        amounts = {name: self.allocatable[name] - left - reserved.get(name, 0) for name, left in self.free.items()}
        return {name: amount for name, amount in amounts.items() if amount}


class NodeAllocations:
    """The accounts of all nodes, by name."""

    def __init__(self, store: Store) -> None:
        self._nodes: dict[str, _NodeAllocation] = {}
        #: Nodes that hold at least one pod.
        self.busy_node_count = 0
        #: What all nodes offer, and what pods hold of it, over time.
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
                account = self._nodes.setdefault(change.key, _NodeAllocation())
                self.usage.offer(account.allocatable, -1)
                # A pod may be bound before the kubelet of a new node has reported how many it takes.
                self.usage.is_overcommitted |= account.set_allocatable(
                    {PODS: DEFAULT_PODS, **allocatable_of(change.object)}
                )
                self.usage.offer(account.allocatable)
        self.record_usage(now)

    def record_usage(self, now: Instant) -> None:
        """Record what pods hold from `now` on. Raises Bug if that is more than the nodes offer."""
        self.usage.record(now)

    def __contains__(self, node: str) -> bool:
        return node in self._nodes

    def is_busy(self, node: str) -> bool:
        """Return whether a node holds pods."""
        account = self._nodes.get(node)
        return account is not None and account.pods > 0

    def unknown_nodes(self, nodes: Sequence[str]) -> list[str]:
        """Return those of the nodes that are not there."""
        accounts = self._nodes
        return [node for node in nodes if node not in accounts]

    def allocatable(self, node: str, resource: str) -> int:
        """Return how much of a resource a node has for pods."""
        return self._nodes[node].allocatable[resource]

    def resize(self, node: str, old: Requests, new: Requests) -> Shortage | None:
        """Let a pod hold `new` in the place of `old`; if its node has too little, leave it and say so."""
        account, held = self._nodes[node], dict(old)
        left = account.free
        for resource, count in new:
            rest = left[resource] + held.get(resource, 0)
            if rest < count > held.get(resource, 0) and not self._allows_overcommit(node, resource):
                offered = account.allocatable[resource]
                return Shortage(node, resource, count, offered - rest, offered)
        for sign, amounts in ((1, old), (-1, new)):
            for resource, count in amounts:
                left[resource] += sign * count
            self.usage.hold(amounts, -sign)
        return None

    def allocate(self, nodes: Sequence[str], demand: Requests) -> Shortage | None:
        """Take `demand` from each of the nodes, named once per pod; if one has too little, take nothing and say so."""
        for number, node in enumerate(nodes):
            account = self._nodes[node]
            left = account.free
            for resource, count in demand:
                if left[resource] < count and not self._allows_overcommit(node, resource):
                    offered = account.allocatable[resource]
                    shortage = Shortage(node, resource, count, offered - left[resource], offered)
                    self.usage.hold(demand, number)
                    self.release(nodes[:number], demand)
                    return shortage
            for resource, count in demand:
                left[resource] -= count
            if account.pods == 0:
                self.busy_node_count += 1
            account.pods += 1
        self.usage.hold(demand, len(nodes))
        return None

    def _allows_overcommit(self, node: str, resource: str) -> bool:
        """Return whether a node gives more of a resource than it has; kubelets do not let it."""
        return False

    def release(self, nodes: Sequence[str], demand: Requests) -> None:
        """Return `demand` to each of the nodes, named once per pod; of a node that is gone, nothing was kept."""
        pods = 0
        for node in nodes:
            account = self._nodes.get(node)
            if account is None:
                continue
            pods += 1
            left, offered = account.free, account.allocatable
            for resource, count in demand:
                rest = left[resource] = left[resource] + count
                if rest > offered[resource]:
                    raise Bug(f"node {node} was given back more {resource} than was taken")
            account.pods -= 1
            if account.pods == 0:
                self.busy_node_count -= 1
        self.usage.hold(demand, -pods)

    def reserve(self, node: str, demand: Requests) -> None:
        """Take `demand` for a pod of the cluster itself, which does not make the node busy."""
        account = self._nodes[node]
        reserved = defaultdict(int, account.reserved)
        for resource, count in demand:
            account.free[resource] -= count
            reserved[resource] += count
        account.reserved = tuple(reserved.items())


class OvercommittedAllocations(NodeAllocations):
    """Nodes without kubelets, as the 2020 prototype had them: a pod without room runs all the same, and is counted."""

    def __init__(self, world: World) -> None:
        super().__init__(world.store)
        self._notes = world.notes
        #: Pods that were bound to a node without room for them.
        self.over_allocations = 0

    def _allows_overcommit(self, node: str, resource: str) -> bool:
        """Give what is asked for, and take note of it."""
        self.over_allocations += 1
        self.usage.is_overcommitted = True
        self._notes.add(_OVERCOMMITTED, example=f"{node} lacked {resource}")
        return True
