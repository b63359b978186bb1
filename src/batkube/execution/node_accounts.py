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
from batkube.cluster.resource_usage import ResourceUsage
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


class _Account:
    """One node: what it offers, what is left of that, and how many pods hold the rest."""

    __slots__ = ("left", "offered", "pods", "reserved")

    def __init__(self) -> None:
        self.offered: defaultdict[str, int] = defaultdict(int)
        #: Less than nothing only when the node was made smaller since, or refuses nothing.
        self.left: defaultdict[str, int] = defaultdict(int)
        self.pods = 0
        #: What the cluster's own pods take, which are not counted in `pods`.
        self.reserved: Requests = ()

    def offer(self, amounts: Mapping[str, int]) -> bool:
        """Offer other amounts than before; what is taken stays taken. Return whether more is taken than offered."""
        for resource in {**self.offered, **amounts}:
            self.left[resource] += amounts.get(resource, 0) - self.offered[resource]
        self.offered = defaultdict(int, amounts)
        return any(amount < 0 for amount in self.left.values())

    def held(self) -> dict[str, int]:
        """Return what its pods hold."""
        reserved = dict(self.reserved)
        amounts = {name: self.offered[name] - left - reserved.get(name, 0) for name, left in self.left.items()}
        return {name: amount for name, amount in amounts.items() if amount}


class NodeAccounts:
    """The accounts of all nodes, by name."""

    def __init__(self, store: Store) -> None:
        self._accounts: dict[str, _Account] = {}
        #: Nodes that hold at least one pod.
        self.busy_nodes = 0
        #: What all nodes offer, and what pods hold of it, over time.
        self.usage = ResourceUsage()
        store.listen(NODE, self._on_nodes)

    def _on_nodes(self, batch: Batch, now: Instant) -> None:
        for change in batch.changes():
            if batch.type is DELETED:
                gone = self._accounts.pop(change.key)
                self.busy_nodes -= gone.pods > 0
                self.usage.offer(gone.offered, -1)
                self.usage.hold(tuple(gone.held().items()), -1)
                continue
            before = change.previous
            if before is None or before.get("status") != change.object.get("status"):
                account = self._accounts.setdefault(change.key, _Account())
                self.usage.offer(account.offered, -1)
                self.usage.is_overdrawn |= account.offer(allocatable_of(change.object))
                self.usage.offer(account.offered)
        self.record(now)

    def record(self, now: Instant) -> None:
        """Record what pods hold from `now` on. Raises Bug if that is more than the nodes offer."""
        self.usage.record(now)

    def __contains__(self, node: str) -> bool:
        return node in self._accounts

    def is_busy(self, node: str) -> bool:
        """Return whether a node holds pods."""
        account = self._accounts.get(node)
        return account is not None and account.pods > 0

    def unknown(self, nodes: Sequence[str]) -> list[str]:
        """Return those of the nodes that are not there."""
        accounts = self._accounts
        return [node for node in nodes if node not in accounts]

    def offered(self, node: str, resource: str) -> int:
        """Return how much of a resource a node has for pods."""
        return self._accounts[node].offered[resource]

    def exchange(self, node: str, old: Requests, new: Requests) -> Shortage | None:
        """Let a pod hold `new` in the place of `old`; if its node has too little, leave it and say so."""
        account, held = self._accounts[node], dict(old)
        left = account.left
        for resource, count in new:
            rest = left[resource] + held.get(resource, 0)
            if rest < count > held.get(resource, 0) and not self._lends(node, resource):
                offered = account.offered[resource]
                return Shortage(node, resource, count, offered - rest, offered)
        for sign, amounts in ((1, old), (-1, new)):
            for resource, count in amounts:
                left[resource] += sign * count
            self.usage.hold(amounts, -sign)
            self.usage.hold_outside_jobs(amounts, -sign)
        return None

    def take(self, nodes: Sequence[str], demand: Requests, *, for_job: bool = True) -> Shortage | None:
        """Take `demand` from each of the nodes, named once per pod; if one has too little, take nothing and say so.

        `for_job` says that the pods belong to a job of a workload.
        """
        for number, node in enumerate(nodes):
            account = self._accounts[node]
            left = account.left
            for resource, count in demand:
                if left[resource] < count and not self._lends(node, resource):
                    offered = account.offered[resource]
                    shortage = Shortage(node, resource, count, offered - left[resource], offered)
                    self.usage.hold(demand, number)
                    self.give_back(nodes[:number], demand)
                    return shortage
            for resource, count in demand:
                left[resource] -= count
            if account.pods == 0:
                self.busy_nodes += 1
            account.pods += 1
        self.usage.hold(demand, len(nodes))
        if not for_job:
            self.usage.hold_outside_jobs(demand, len(nodes))
        return None

    def _lends(self, node: str, resource: str) -> bool:
        """Return whether a node gives more of a resource than it has; kubelets do not let it."""
        return False

    def give_back(self, nodes: Sequence[str], demand: Requests, *, for_job: bool = True) -> None:
        """Return `demand` to each of the nodes, named once per pod; of a node that is gone, nothing was kept."""
        pods = 0
        for node in nodes:
            account = self._accounts.get(node)
            if account is None:
                continue
            pods += 1
            left, offered = account.left, account.offered
            for resource, count in demand:
                rest = left[resource] = left[resource] + count
                if rest > offered[resource]:
                    raise Bug(f"node {node} was given back more {resource} than was taken")
            account.pods -= 1
            if account.pods == 0:
                self.busy_nodes -= 1
        self.usage.hold(demand, -pods)
        if not for_job:
            self.usage.hold_outside_jobs(demand, -len(nodes))

    def reserve(self, node: str, demand: Requests) -> None:
        """Take `demand` for a pod of the cluster itself, which does not make the node busy."""
        account = self._accounts[node]
        reserved = defaultdict(int, account.reserved)
        for resource, count in demand:
            account.left[resource] -= count
            reserved[resource] += count
        account.reserved = tuple(reserved.items())


class UnguardedAccounts(NodeAccounts):
    """Nodes without kubelets, as the 2020 prototype had them: a pod without room runs all the same, and is counted."""

    def __init__(self, world: World) -> None:
        super().__init__(world.store)
        self._notes = world.notes
        #: Pods that were bound to a node without room for them.
        self.over_allocations = 0

    def _lends(self, node: str, resource: str) -> bool:
        """Give what is asked for, and take note of it."""
        self.over_allocations += 1
        self.usage.is_overdrawn = True
        self._notes.add(_NO_ROOM, example=f"{node} lacked {resource}")
        return True
