"""Evicts pods that do not tolerate a NoExecute taint of their node, or whose toleration has expired.

Kubernetes: pkg/controller/tainteviction/taint_eviction.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.client import Client
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.nodes.constraints import find_toleration
from batkube.cluster.object_meta import is_being_deleted
from batkube.cluster.pods.accessors import disruption_status, node_of_pod, pods_on
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.controller import Controller
from batkube.kernel.instants import Duration, Instant, bounded_seconds


class TaintEvictionController(Controller):
    """Evicts pods from tainted nodes."""

    storage = POD

    def __init__(self, world: World, client: Client, events: EventRecorder) -> None:
        super().__init__(world, client, events)
        #: When each pod's toleration started.
        self._since: dict[Key, Instant] = {}
        world.store.subscribe(NODE, self._on_nodes_changed)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            return
        for change in batch.changes():
            before = [] if change.previous is None else _no_execute_taints(change.previous)
            if before != _no_execute_taints(change.object):
                for key, _ in pods_on(self.store, [change.key]):
                    self.queue.add(key, now)

    def on_objects_changed(self, batch: Batch, now: Instant) -> None:
        """Queue pods that were bound to a node with NoExecute taints."""
        for change in batch.changes():
            if batch.type is DELETED:
                self._since.pop(change.key, None)
                self.queue.expedite(change.key, now)
                continue
            name = node_of_pod(change.object)
            if not name or (change.previous is not None and node_of_pod(change.previous) == name):
                continue
            node = self.store.get(NODE, Key(name))
            if node is not None and _no_execute_taints(node):
                self.queue.add(change.key, now)

    def reconcile(self, key: Key, pod: KubeObject, now: Instant) -> None:
        """Evict a pod once its toleration has expired."""
        node = self.store.get(NODE, Key(node_of_pod(pod)))
        if node is None or is_being_deleted(pod):
            self._since.pop(key, None)
            return
        toleration = _toleration_time(pod, _no_execute_taints(node))
        if toleration is None:
            if self._since.pop(key, None) is not None:
                self.record_event(pod, "Normal", "TaintManagerEviction", f"Cancelling deletion of Pod {key}", now)
            return
        due = Instant(self._since.setdefault(key, now) + toleration)
        if now < due:
            self.queue.add_after(key, now, Duration(due - now))
            return
        self._evict(key, pod, now)

    def _evict(self, key: Key, pod: KubeObject, now: Instant) -> None:
        self.record_event(pod, "Normal", "TaintManagerEviction", f"Marking for deletion Pod {key}", now)
        message = "Taint manager: deleting due to NoExecute taint"
        self.write_status(pod, disruption_status(pod, "DeletionByTaintManager", message, now), now)
        self.client.delete(POD, key, now)


def _no_execute_taints(node: KubeObject) -> list[KubeObject]:
    return [taint for taint in node["spec"].get("taints") or () if taint["effect"] == "NoExecute"]


def _toleration_time(pod: KubeObject, taints: Sequence[KubeObject]) -> Duration | None:
    """Return how long the pod tolerates all taints; None means forever (Kubernetes: getMinTolerationTime)."""
    limits = []
    for taint in taints:
        toleration = find_toleration(pod["spec"].get("tolerations") or (), taint)
        if toleration is None:
            return Duration(0)
        if toleration.get("tolerationSeconds") is not None:
            limits.append(max(Duration(0), bounded_seconds(toleration["tolerationSeconds"])))
    return min(limits, default=None)
