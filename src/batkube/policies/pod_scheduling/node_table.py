"""Nodes as a scheduler of single pods sees them: what each has free, and which pods may go where.

An array with a row per resource and a column per node, so that a pod is compared with a thousand nodes in a few steps.
Which nodes accept a pod's rules is worked out once for all pods with equal rules, and again after a node has changed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from batkube.cluster.mapping import POD
from batkube.cluster.nodes.constraints import NodeConstraints, constraints_key
from batkube.cluster.pods.accessors import is_finished, node_of_pod, pods_on
from batkube.cluster.pods.resources import Amounts, allocatable_of, demand_of, has_changed_spec
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject, Store
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import CPU, MEMORY, PODS
from batkube.policies.pod_scheduling.node_columns import NodeColumns

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: Of so many sets of rules it is remembered which nodes accept them.
_CACHED_RULES_MAX = 1000


class Acceptance(NamedTuple):
    """Which nodes accept pods of one set of rules, how much such pods like each, and why the others do not."""

    mask: Mask
    preference: Column
    rejections: dict[str, int]


class PodAllocation(NamedTuple):
    """What a bound pod takes, and of which column."""

    column: int
    demand: Amounts


class NodeTable(NodeColumns):
    """Hears of nodes and pods, and knows what is free."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._store = store
        self._row_of: dict[str, int] = {CPU: 0, MEMORY: 1, PODS: 2}
        #: As wide as there are columns, once a batch of nodes has been heard.
        self._capacity: npt.NDArray[np.int64] = np.zeros((3, 0), dtype=np.int64)
        self._used: npt.NDArray[np.int64] = np.zeros((3, 0), dtype=np.int64)
        #: What each bound pod takes.
        self.allocations: dict[Key, PodAllocation] = {}
        #: By rules; as of `_accepted_at`.
        self._accepted: dict[bytes, Acceptance] = {}
        self._accepted_at = self.generation
        store.subscribe(POD, self._on_pods_changed)

    # What it hears

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        known = len(self.nodes)
        super()._on_nodes_changed(batch, now)
        if len(self.nodes) > known:
            wider = ((0, 0), (0, len(self.nodes) - known))
            self._capacity, self._used = np.pad(self._capacity, wider), np.pad(self._used, wider)
        if batch.type is DELETED:
            return
        for node in batch.objects:
            self._set_capacity(node["metadata"]["name"], allocatable_of(node))
        if batch.type is ADDED:
            # Pods may have been bound to a node before it came, or before it came back.
            for key, pod in pods_on(self._store, batch.keys):
                if not is_finished(pod):
                    self._add_pod(key, pod)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            if batch.type is DELETED or is_finished(pod):
                self._remove_pod(key)
            else:
                self._add_pod(key, pod)

    def _set_capacity(self, name: str, offered: Amounts) -> None:
        """Set what a node offers."""
        for resource in offered:
            self._row(resource)
        self._capacity[:, self._column_of[name]] = [offered.get(resource, 0) for resource in self._row_of]

    def _remove_node(self, name: str) -> int:
        column = super()._remove_node(name)
        for key in self.pods_on(column):
            self._remove_pod(key)
        self._capacity[:, column] = 0
        return column

    def _add_pod(self, key: Key, pod: KubeObject) -> None:
        column = self._column_of.get(node_of_pod(pod))
        held = self.allocations.get(key)
        if column is not None and (held is None or has_changed_spec(pod)):
            demand = demand_of(pod)
            if held is not None:
                self._adjust_used(held.column, held.demand, -1)
            self.allocations[key] = PodAllocation(column, demand)
            self._adjust_used(column, demand, 1)

    def _remove_pod(self, key: Key) -> None:
        held = self.allocations.pop(key, None)
        if held is not None:
            self._adjust_used(held.column, held.demand, -1)

    def _adjust_used(self, column: int, demand: Amounts, sign: int) -> None:
        for resource, count in demand.items():
            self._used[self._row(resource), column] += sign * min(count, 2**40 * 1000)

    def _row(self, resource: str) -> int:
        row = self._row_of.get(resource)
        if row is None:
            row = self._row_of[resource] = len(self._row_of)
            more = np.zeros((1, len(self.nodes)), dtype=np.int64)
            self._capacity = np.vstack([self._capacity, more])
            self._used = np.vstack([self._used, more.copy()])
        return row

    # What a scheduler asks

    def acceptance(self, pod: KubeObject) -> Acceptance:
        """Return which nodes accept the rules of `pod`."""
        if self._accepted_at != self.generation or len(self._accepted) > _CACHED_RULES_MAX:
            self._accepted.clear()
            self._accepted_at = self.generation
        key = constraints_key(pod["spec"])
        known = self._accepted.get(key)
        if known is None:
            known = self._accepted[key] = self._evaluate(NodeConstraints(pod["spec"]))
        return known

    def _evaluate(self, rules: NodeConstraints) -> Acceptance:
        mask = np.zeros(len(self.nodes), dtype=np.bool_)
        liking = np.zeros(len(self.nodes), dtype=np.int64)
        objections: dict[str, int] = {}
        for column, node in enumerate(self.nodes):
            if node is None:
                continue
            reason = rules.rejection_reason(node)
            if reason is None:
                mask[column] = True
                liking[column] = rules.preference_score(node)
            else:
                objections[reason] = objections.get(reason, 0) + 1
        return Acceptance(mask, liking, objections)

    def insufficient(self, demand: Amounts, extra: dict[int, Amounts] | None = None) -> dict[str, Mask]:
        """Return for each resource of which some node has too little for `demand`: which nodes.

        `extra` is what is to be counted as taken besides, by column.
        """
        shortages = {}
        for resource, count in demand.items():
            row = self._row(resource)
            free = self._capacity[row] - self._used[row]
            for column, taken in (extra or {}).items():
                free[column] -= taken.get(resource, 0)
            short = free < min(count, 2**62)
            if short.any():
                shortages[resource] = short
        return shortages

    def too_small(self, demand: Amounts) -> Mask:
        """Return the nodes that could not hold `demand` even if they were empty."""
        small = np.zeros(len(self.nodes), dtype=np.bool_)
        for resource, count in demand.items():
            small |= self._capacity[self._row(resource)] < min(count, 2**62)
        return small

    def least_allocated_score(self, demand: Amounts) -> npt.NDArray[np.float64]:
        """Return the share of cpu and memory that each node would have taken with `demand`, the mean of both.

        Kubernetes: NodeResourcesFit with LeastAllocated, which counts 100 millicores and 200 MB for a pod that asks for
        nothing, so that such pods are spread too.
        """
        shares: npt.NDArray[np.float64] = 1e-6 * self._used[self._row_of[PODS]]
        for resource, least in ((CPU, 100), (MEMORY, 200 * 1024**2)):
            row = self._row_of[resource]
            taken = self._used[row] + max(demand.get(resource, 0), least)
            shares += taken / np.maximum(self._capacity[row], 1) / 2
        return shares

    def pods_on(self, column: int) -> list[Key]:
        """Return the pods that the node of this column holds."""
        return [key for key, held in self.allocations.items() if held.column == column]

    def free(self, column: int) -> Amounts:
        """Return what the node of this column has left."""
        left = self._capacity[:, column] - self._used[:, column]
        return {resource: int(left[row]) for resource, row in self._row_of.items()}

    def name_of(self, column: int) -> str:
        """Return the name of the node of this column."""
        name = self.names[column]
        assert name is not None
        return name
