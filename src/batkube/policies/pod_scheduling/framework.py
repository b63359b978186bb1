"""The scheduling framework: filters nodes for a single pod, binds the pod, or records why it cannot.

It corresponds to kube-scheduler's framework (pkg/scheduler/framework/runtime/framework.go). Its
users choose among the nodes: `default_scheduler` scores them as kube-scheduler does,
`policy_scheduler` calls a policy. They handle changes of pods and nodes themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from batkube.cluster.client import ApiError, Client
from batkube.cluster.decisions import scheduler_rejection_status
from batkube.cluster.event_recorder import EventNote, EventRecorder
from batkube.cluster.mapping import POD
from batkube.cluster.object_meta import condition_of, name_of, namespace_of, status_with_condition
from batkube.cluster.pods.resources import Amounts
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import PODS
from batkube.policies.pod_scheduling.inter_pod_constraints import InterPodConstraints
from batkube.policies.pod_scheduling.node_table import Mask, NodeTable


class FilterResult(NamedTuple):
    """The nodes on which a pod fits, and the number of other nodes by reason."""

    fits: Mask
    counts: dict[str, int]


class SchedulingFramework:
    """Filters nodes, and writes to pods through the API."""

    def __init__(self, world: World, client: Client, events: EventRecorder) -> None:
        self.store = world.store
        self.events = events
        self._client = client
        self.table = NodeTable(world.store)
        self.inter_pod_constraints = InterPodConstraints(world.store, self.table)

    def bind(self, key: Key, pod: KubeObject, node_name: str, now: Instant) -> bool:
        """Bind a pod to a node; return whether the server accepted it."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name_of(key), "namespace": namespace_of(key), "uid": pod["metadata"]["uid"]},
            "target": {"kind": "Node", "name": node_name},
        }
        try:
            self._client.create(POD, binding, now, subresource="binding")
        except ApiError as error:
            self.mark_unschedulable(key, f"binding rejected: {error.message}", now)
            return False
        message = f"Successfully assigned {key} to {node_name}"
        self.events.record(pod, POD, EventNote("Normal", "Scheduled", message, action="Binding"), now)
        return True

    def reject(self, key: Key, reason: str, now: Instant) -> None:
        """Mark a pod as failed before it runs."""
        pod = self.store.get(POD, key)
        if pod is not None:
            self.write_status(pod, {**pod.get("status", {}), **scheduler_rejection_status(reason)}, now)

    def evict(self, key: Key, now: Instant) -> bool:
        """Delete a pod with its grace period; return whether the server accepted it."""
        try:
            self._client.delete(POD, key, now)
        except ApiError:
            return False
        return True

    def accepting_nodes(self, pod: KubeObject) -> Mask:
        """Return the nodes that a pod may use, regardless of free resources."""
        mask = self.table.acceptance(pod).mask
        for _, rejected in self.inter_pod_constraints.rejections(pod, mask):
            mask = mask & ~rejected
        return mask

    def filter(self, pod: KubeObject, demand: Amounts, reserved: dict[int, Amounts] | None = None) -> FilterResult:
        """Return the nodes on which a pod fits. `reserved` is capacity for other pods by column."""
        accepted = self.table.acceptance(pod)
        fits = accepted.mask.copy()
        counts = dict(accepted.rejections)
        for resource, short in self.table.insufficient(demand, reserved).items():
            fits &= ~short
            count = int((short & accepted.mask).sum())
            if count:
                counts["Too many pods" if resource == PODS else f"Insufficient {resource}"] = count
        for reason, rejected in self.inter_pod_constraints.rejections(pod, fits):
            fits &= ~rejected
            counts[reason] = counts.get(reason, 0) + int(rejected.sum())
        return FilterResult(fits, counts)

    def fit_error(self, counts: Mapping[str, int]) -> str:
        """Return why a pod fits nowhere, from the number of nodes by reason.

        Imitates FitError.Error (kube-scheduler: pkg/scheduler/framework/types.go).
        """
        if not self.table.count:
            return "no nodes available to schedule pods"
        reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
        return f"0/{self.table.count} nodes are available: {reasons}."

    def mark_unschedulable(self, key: Key, message: str, now: Instant) -> None:
        """Record in a pod's condition and an event why it is pending, unless the condition has it already."""
        pod = self.store.get(POD, key)
        if pod is None or (condition_of(pod, "PodScheduled") or {}).get("message") == message:
            return
        note = EventNote("Warning", "FailedScheduling", message, action="Scheduling")
        self.events.record(pod, POD, note, now)
        generation = pod["metadata"].get("generation")
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "reason": "Unschedulable",
            "message": message,
            **({"observedGeneration": generation} if generation else {}),
        }
        self.write_status(pod, status_with_condition(pod, condition, now), now)

    def write_status(self, pod: KubeObject, status: KubeObject, now: Instant) -> bool:
        """Update the status of a pod; return whether the server accepted it."""
        try:
            self._client.update(POD, {**pod, "status": status}, now, subresource="status")
        except ApiError:
            return False
        return True
