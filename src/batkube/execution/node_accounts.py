"""What the pods on each node have taken, as its kubelet counts it, independently of any scheduler.

This is the kubelet's own admission check (Kubernetes: pkg/kubelet/lifecycle/predicate.go): whatever a scheduler
believes, a pod that does not fit is rejected with `OutOf<resource>`, so no node is ever over-allocated. Nodes come, go
and change their size; what they offer is read from the Node whenever it changes.
"""

from __future__ import annotations

from typing import NamedTuple

from batkube.cluster.mapping import NODE
from batkube.cluster.resources import allocatable_of
from batkube.cluster.store import DELETED, Batch, Store
from batkube.cluster.world import World
from batkube.kernel.errors import Bug
from batkube.kernel.fidelity import FidelityNote, Severity
from batkube.kernel.instants import Instant
from batkube.workloads.model import Requests

_NO_ROOM = FidelityNote(
    "scheduler", "bound a pod to a node without room for it, where it ran all the same", Severity.VIOLATION
)


class Shortage(NamedTuple):
    """Why a pod is not admitted."""

    resource: str
    requested: int
    used: int
    capacity: int

    def __str__(self) -> str:
        """Say it as the kubelet does (Kubernetes: lifecycle.InsufficientResourceError)."""
        return (
            f"Node didn't have enough resource: {self.resource}, requested: {self.requested}, "
            f"used: {self.used}, capacity: {self.capacity}"
        )


class _Account:
    """One node: what it offers, what is taken of it, and how many pods hold that."""

    __slots__ = ("offered", "pods", "used")

    def __init__(self) -> None:
        self.offered: dict[str, int] = {}
        #: Never negative; above what is offered only when the node was made smaller, or refuses nothing.
        self.used: dict[str, int] = {}
        self.pods = 0


class NodeAccounts:
    """The accounts of all nodes, by name."""

    def __init__(self, store: Store) -> None:
        self._accounts: dict[str, _Account] = {}
        #: Nodes that hold at least one pod.
        self.busy_nodes = 0
        store.listen(NODE, self._hear)

    def _hear(self, batch: Batch, now: Instant) -> None:
        for change in batch.changes():
            if batch.type is DELETED:
                gone = self._accounts.pop(change.key)
                self.busy_nodes -= gone.pods > 0
                continue
            before = change.previous
            if before is None or before.get("status") != change.object.get("status"):
                account = self._accounts.setdefault(change.key, _Account())
                account.offered = allocatable_of(change.object)

    def take(self, node: str, demand: Requests) -> Shortage | None:
        """Take `demand` from `node`; if it has too little of something, take nothing and say of what."""
        account = self._accounts[node]
        used, offered = account.used, account.offered
        for resource, count in demand:
            taken = used.get(resource, 0)
            if taken + count > offered.get(resource, 0):
                return Shortage(resource, count, taken, offered.get(resource, 0))
        self._book(account, demand)
        return None

    def _book(self, account: _Account, demand: Requests) -> None:
        used = account.used
        for resource, count in demand:
            used[resource] = used.get(resource, 0) + count
        if account.pods == 0:
            self.busy_nodes += 1
        account.pods += 1

    def give_back(self, node: str, demand: Requests) -> None:
        """Return what a pod took; of a node that is gone, nothing was kept."""
        account = self._accounts.get(node)
        if account is None:
            return
        used = account.used
        for resource, count in demand:
            used[resource] -= count
            if used[resource] < 0:
                raise Bug(f"node {node} was given back more {resource} than was taken")
        account.pods -= 1
        if account.pods == 0:
            self.busy_nodes -= 1

    def reserve(self, node: str, demand: Requests) -> None:
        """Take `demand` for a pod of the cluster itself, which does not make the node busy."""
        account = self._accounts[node]
        for resource, count in demand:
            account.used[resource] = account.used.get(resource, 0) + count


class UnguardedAccounts(NodeAccounts):
    """Nodes without kubelets, as the 2020 prototype had them: a pod without room runs all the same, and is counted."""

    def __init__(self, world: World) -> None:
        super().__init__(world.store)
        self._notes = world.notes
        #: Pods that were bound to a node without room for them.
        self.over_allocations = 0

    def take(self, node: str, demand: Requests) -> Shortage | None:
        """Take `demand` from `node`, whether it has it or not."""
        shortage = super().take(node, demand)
        if shortage is not None:
            self.over_allocations += 1
            self._notes.add(_NO_ROOM, example=f"{node} lacked {shortage.resource}")
            self._book(self._accounts[node], demand)
        return None
