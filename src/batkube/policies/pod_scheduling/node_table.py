"""The nodes for schedulers of single pods: their free resources, and the nodes that accept a pod.

Resources are an array with a row per resource and a column per node, so that a pod is compared with
a thousand nodes in a few steps. The nodes that satisfy a pod's constraints are computed once for all
pods with equal constraints, and again after a node has changed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from batkube.cluster.mapping import POD
from batkube.cluster.nodes.constraints import NodeConstraints, constraints_key
from batkube.cluster.pods.accessors import is_finished, node_of_pod, pods_on, priority_of
from batkube.cluster.pods.resources import Amounts, allocatable_of, demand_of, has_changed_spec
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject, Store
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import CPU, MEMORY, PODS
from batkube.policies.pod_scheduling.node_columns import NodeColumns

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: The maximum number of sets of constraints whose acceptance is cached.
_CACHED_CONSTRAINTS_MAX = 1000


class Acceptance(NamedTuple):
    """The nodes that accept a pod, the preference for each node, and the number of other nodes by reason."""

    mask: Mask
    preference: Column
    rejections: dict[str, int]


class PodAllocation(NamedTuple):
    """The column, the demand and the priority of a bound pod."""

    column: int
    demand: Amounts
    priority: int


class NodeTable(NodeColumns):
    """The capacity and the use of each node."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._store = store
        self._row_of: dict[str, int] = {CPU: 0, MEMORY: 1, PODS: 2}
        #: By row and column. Padded to the number of columns after each batch of nodes.
        self._capacity: npt.NDArray[np.int64] = np.zeros((3, 0), dtype=np.int64)
        self._used: npt.NDArray[np.int64] = np.zeros((3, 0), dtype=np.int64)
        self.allocations: dict[Key, PodAllocation] = {}
        #: The number of bound pods by priority; priorities without pods are removed.
        self._priority_counts: dict[int, int] = {}
        #: By the key of the constraints, as of `_accepted_generation`.
        self._acceptances: dict[bytes, Acceptance] = {}
        self._accepted_generation = self.generation
        store.subscribe(POD, self._on_pods_changed)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        previous_count = len(self.nodes)
        super()._on_nodes_changed(batch, now)
        if len(self.nodes) > previous_count:
            padding = ((0, 0), (0, len(self.nodes) - previous_count))
            self._capacity, self._used = np.pad(self._capacity, padding), np.pad(self._used, padding)
        if batch.type is DELETED:
            return
        for node in batch.objects:
            self._set_capacity(node["metadata"]["name"], allocatable_of(node))
        if batch.type is ADDED:
            # Pods may have been bound to the node's name before the node was created.
            for key, pod in pods_on(self._store, batch.keys):
                if not is_finished(pod):
                    self._add_pod(key, pod)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            if batch.type is DELETED or is_finished(pod):
                self._remove_pod(key)
            else:
                self._add_pod(key, pod)

    def _set_capacity(self, name: str, allocatable: Amounts) -> None:
        """Set the allocatable resources of a node."""
        for resource in allocatable:
            self._row(resource)
        self._capacity[:, self._column_of[name]] = [allocatable.get(resource, 0) for resource in self._row_of]

    def _remove_node(self, name: str) -> int:
        column = super()._remove_node(name)
        for key in self.pods_on(column):
            self._remove_pod(key)
        self._capacity[:, column] = 0
        return column

    def _add_pod(self, key: Key, pod: KubeObject) -> None:
        column = self._column_of.get(node_of_pod(pod))
        previous = self.allocations.get(key)
        if column is not None and (previous is None or has_changed_spec(pod)):
            if previous is not None:
                self._count(previous, -1)
            self.allocations[key] = allocation = PodAllocation(column, demand_of(pod), priority_of(pod))
            self._count(allocation, 1)

    def _remove_pod(self, key: Key) -> None:
        allocation = self.allocations.pop(key, None)
        if allocation is not None:
            self._count(allocation, -1)

    def _count(self, allocation: PodAllocation, sign: int) -> None:
        """Add the requests of a pod to the use of its node, or subtract them."""
        column, demand, priority = allocation
        count = self._priority_counts.get(priority, 0) + sign
        if count:
            self._priority_counts[priority] = count
        else:
            del self._priority_counts[priority]
        for resource, count in demand.items():
            self._used[self._row(resource), column] += sign * min(count, 2**40 * 1000)

    def _row(self, resource: str) -> int:
        row = self._row_of.get(resource)
        if row is None:
            row = self._row_of[resource] = len(self._row_of)
            new_row = np.zeros((1, len(self.nodes)), dtype=np.int64)
            self._capacity = np.vstack([self._capacity, new_row])
            self._used = np.vstack([self._used, new_row.copy()])
        return row

    def acceptance(self, pod: KubeObject) -> Acceptance:
        """Return the nodes that satisfy a pod's constraints."""
        if self._accepted_generation != self.generation or len(self._acceptances) > _CACHED_CONSTRAINTS_MAX:
            self._acceptances.clear()
            self._accepted_generation = self.generation
        key = constraints_key(pod["spec"])
        acceptance = self._acceptances.get(key)
        if acceptance is None:
            acceptance = self._acceptances[key] = self._evaluate(NodeConstraints(pod["spec"]))
        return acceptance

    def _evaluate(self, constraints: NodeConstraints) -> Acceptance:
        mask = np.zeros(len(self.nodes), dtype=np.bool_)
        preference = np.zeros(len(self.nodes), dtype=np.int64)
        rejections: dict[str, int] = {}
        for column, node in enumerate(self.nodes):
            if node is None:
                continue
            reason = constraints.rejection_reason(node)
            if reason is None:
                mask[column] = True
                preference[column] = constraints.preference_score(node)
            else:
                rejections[reason] = rejections.get(reason, 0) + 1
        return Acceptance(mask, preference, rejections)

    def insufficient(self, demand: Amounts, reserved: dict[int, Amounts] | None = None) -> dict[str, Mask]:
        """Return the nodes with insufficient free resources for `demand`, by resource.

        `reserved` is counted as used as well, by column.
        """
        shortages = {}
        for resource, count in demand.items():
            row = self._row(resource)
            free = self._capacity[row] - self._used[row]
            for column, amounts in (reserved or {}).items():
                free[column] -= amounts.get(resource, 0)
            short = free < min(count, 2**62)
            if short.any():
                shortages[resource] = short
        return shortages

    def too_small(self, demand: Amounts) -> Mask:
        """Return the nodes whose capacity is less than `demand`."""
        small = np.zeros(len(self.nodes), dtype=np.bool_)
        for resource, count in demand.items():
            small |= self._capacity[self._row(resource)] < min(count, 2**62)
        return small

    def least_allocated_score(self, demand: Amounts) -> npt.NDArray[np.float64]:
        """Return the used share of cpu and memory of each node with `demand`, averaged; low is better.

        Imitates NodeResourcesFit with LeastAllocated (kube-scheduler:
        pkg/scheduler/framework/plugins/noderesources/least_allocated.go). It counts 100 millicores
        and 200 MB for pods without requests, so that these are spread too. The number of pods
        decides between nodes that are equal otherwise.
        """
        score: npt.NDArray[np.float64] = 1e-6 * self._used[self._row_of[PODS]]
        for resource, least in ((CPU, 100), (MEMORY, 200 * 1024**2)):
            row = self._row_of[resource]
            taken = self._used[row] + max(demand.get(resource, 0), least)
            score += taken / np.maximum(self._capacity[row], 1) / 2
        return score

    def has_lower_priority(self, priority: int) -> bool:
        """Return whether a bound pod has a lower priority."""
        return any(other < priority for other in self._priority_counts)

    def pods_on(self, column: int) -> list[Key]:
        """Return the pods on the node of a column."""
        return [key for key, allocation in self.allocations.items() if allocation.column == column]

    def free(self, column: int) -> Amounts:
        """Return the free resources of the node of a column."""
        free = self._capacity[:, column] - self._used[:, column]
        return {resource: int(free[row]) for resource, row in self._row_of.items()}

    def name_of(self, column: int) -> str:
        """Return the name of the node of a column."""
        name = self.names[column]
        assert name is not None
        return name
