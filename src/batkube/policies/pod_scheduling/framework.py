"""What in-process schedulers do with pods that anybody makes: filter nodes, bind the pod, or say why not.

It is what kube-scheduler calls its framework. How to choose among nodes is left to who uses it: `default_scheduler`
scores as kube-scheduler does, `scheduler` asks a policy. They hear of pods and nodes themselves.
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
    """Where a pod fits, and how many of the other nodes it does not fit for each reason."""

    fits: Mask
    counts: dict[str, int]


class SchedulingFramework:
    """Knows the nodes, and writes to pods through the API."""

    def __init__(self, world: World, client: Client, events: EventRecorder) -> None:
        self.store = world.store
        self.events = events
        self._client = client
        self.table = NodeTable(world.store)
        self.inter_pod_constraints = InterPodConstraints(world.store, self.table)

    def bind(self, key: Key, pod: KubeObject, node_name: str, now: Instant) -> bool:
        """Give the pod its node; return whether the server agreed."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name_of(key), "namespace": namespace_of(key), "uid": pod["metadata"]["uid"]},
            "target": {"kind": "Node", "name": node_name},
        }
        try:
            self._client.create(POD, binding, now, subresource="binding")
        except ApiError as refusal:
            self.mark_unschedulable(key, f"binding rejected: {refusal.message}", now)
            return False
        message = f"Successfully assigned {key} to {node_name}"
        self.events.record(pod, POD, EventNote("Normal", "Scheduled", message, action="Binding"), now)
        return True

    def reject(self, key: Key, reason: str, now: Instant) -> None:
        """Let a pod fail before it ran."""
        pod = self.store.get(POD, key)
        if pod is not None:
            self.write_status(pod, {**pod.get("status", {}), **scheduler_rejection_status(reason)}, now)

    def evict(self, key: Key, now: Instant) -> bool:
        """Let a pod stop within its grace period; return whether the server agreed."""
        try:
            self._client.delete(POD, key, now)
        except ApiError:
            return False
        return True

    def accepting_nodes(self, pod: KubeObject) -> Mask:
        """Return the nodes to which a pod may go, whatever room they have."""
        mask = self.table.acceptance(pod).mask
        for _, refused in self.inter_pod_constraints.rejections(pod, mask):
            mask = mask & ~refused
        return mask

    def filter(self, pod: KubeObject, demand: Amounts, kept: dict[int, Amounts] | None = None) -> FilterResult:
        """Return where the pod fits, and why not elsewhere; `kept` is room promised to others, by column."""
        accepted = self.table.acceptance(pod)
        fits = accepted.mask.copy()
        counts = dict(accepted.rejections)
        for resource, short in self.table.insufficient(demand, kept).items():
            fits &= ~short
            count = int((short & accepted.mask).sum())
            if count:
                counts["Too many pods" if resource == PODS else f"Insufficient {resource}"] = count
        for reason, refused in self.inter_pod_constraints.rejections(pod, fits):
            fits &= ~refused
            counts[reason] = counts.get(reason, 0) + int(refused.sum())
        return FilterResult(fits, counts)

    def fit_error(self, counts: Mapping[str, int]) -> str:
        """Return why a pod fits nowhere, by how many nodes have each reason (Kubernetes: framework.FitError)."""
        if not self.table.count:
            return "no nodes available to schedule pods"
        reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
        return f"0/{self.table.count} nodes are available: {reasons}."

    def mark_unschedulable(self, key: Key, message: str, now: Instant) -> None:
        """Say why the pod waits, unless it says so already."""
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
        """Give a pod another status; return whether the server agreed."""
        try:
            self._client.update(POD, {**pod, "status": status}, now, subresource="status")
        except ApiError:
            return False
        return True
