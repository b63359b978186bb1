"""What each node has left, counted independently of any scheduler.

This is the kubelet's own admission check (Kubernetes: pkg/kubelet/lifecycle/predicate.go): whatever a scheduler
believes, a pod that does not fit is rejected with `OutOf<resource>`, so no node is ever over-allocated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from batkube.kernel.errors import Bug
from batkube.workloads.model import Requests


class NodeAccounts:
    """The free amounts of every node, by machine id."""

    def __init__(self, capacities: Sequence[Mapping[str, int]]) -> None:
        self._capacities = capacities
        #: Between zero and the node's capacity, for every resource.
        self._free = [dict(capacity) for capacity in capacities]
        #: Pods each node holds.
        self._pods = [0] * len(capacities)
        #: Nodes that hold at least one pod.
        self.busy_nodes = 0

    def take(self, machine_id: int, demand: Requests) -> str | None:
        """Take `demand` from the node, or return the resource of which it has too little and take nothing."""
        free = self._free[machine_id]
        for resource, amount in demand:
            if free.get(resource, 0) < amount:
                return resource
        for resource, amount in demand:
            free[resource] -= amount
        self._pods[machine_id] += 1
        if self._pods[machine_id] == 1:
            self.busy_nodes += 1
        return None

    def give_back(self, machine_id: int, demand: Requests) -> None:
        """Return `demand` to the node."""
        free = self._free[machine_id]
        for resource, amount in demand:
            free[resource] += amount
            if free[resource] > self._capacities[machine_id][resource]:
                raise Bug(f"machine {machine_id} was given back more {resource} than it has")
        self._pods[machine_id] -= 1
        if self._pods[machine_id] == 0:
            self.busy_nodes -= 1
