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
        resources = {resource: None for capacity in capacities for resource in capacity}
        #: By resource, then machine id.
        self._capacity = {name: [capacity.get(name, 0) for capacity in capacities] for name in resources}
        #: Between zero and the capacity, everywhere.
        self._free = {name: list(amounts) for name, amounts in self._capacity.items()}
        self._nothing = [0] * len(capacities)
        #: Pods each node holds.
        self._pods = [0] * len(capacities)
        #: Nodes that hold at least one pod.
        self.busy_nodes = 0

    def take(self, machine_ids: Sequence[int], demand: Requests) -> tuple[int, str] | None:
        """Take `demand` from each of the nodes (named once per pod).

        If one has too little, take nothing and return its id and the resource.
        """
        for position, (resource, amount) in enumerate(demand):
            free = self._free.get(resource, self._nothing)
            for rank, machine_id in enumerate(machine_ids):
                left = free[machine_id] - amount
                if left < 0:
                    self._restore(machine_ids[:rank], ((resource, amount),))
                    self._restore(machine_ids, demand[:position])
                    return machine_id, resource
                free[machine_id] = left
        pods = self._pods
        for machine_id in machine_ids:
            if pods[machine_id] == 0:
                self.busy_nodes += 1
            pods[machine_id] += 1
        return None

    def give_back(self, machine_ids: Sequence[int], demand: Requests) -> None:
        """Return `demand` to each of the nodes (named once per pod)."""
        self._restore(machine_ids, demand)
        pods = self._pods
        for machine_id in machine_ids:
            pods[machine_id] -= 1
            if pods[machine_id] == 0:
                self.busy_nodes -= 1

    def _restore(self, machine_ids: Sequence[int], amounts: Requests) -> None:
        for resource, amount in amounts:
            free = self._free.get(resource, self._nothing)
            capacity = self._capacity.get(resource, self._nothing)
            for machine_id in machine_ids:
                free[machine_id] += amount
                if free[machine_id] > capacity[machine_id]:
                    raise Bug(f"machine {machine_id} was given back more {resource} than it has")
