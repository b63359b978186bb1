"""What the pods on each served node have taken, as its kubelet counts it.

Nodes come and go and change their size while the cluster is served, so unlike `execution.nodes` nothing is fixed
beforehand: what is offered is read from the Node when a pod asks for room.
"""

from __future__ import annotations

from typing import NamedTuple

from batkube.cluster.resources import Amounts, allocatable_of
from batkube.cluster.store import KubeObject


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


class ServedAccounts:
    """The amounts taken, by node."""

    def __init__(self) -> None:
        self._used: dict[str, Amounts] = {}

    def take(self, node: KubeObject, demand: Amounts) -> Shortage | None:
        """Take `demand` from `node`; if it has too little of something, take nothing and say of what."""
        used = self._used.setdefault(node["metadata"]["name"], {})
        offered = allocatable_of(node)
        for resource, count in demand.items():
            taken, capacity = used.get(resource, 0), offered.get(resource, 0)
            if taken + count > capacity:
                return Shortage(resource, count, taken, capacity)
        for resource, count in demand.items():
            used[resource] = used.get(resource, 0) + count
        return None

    def give_back(self, node_name: str, demand: Amounts) -> None:
        """Return what a pod took."""
        used = self._used.get(node_name, {})
        for resource, count in demand.items():
            used[resource] = used.get(resource, 0) - count
