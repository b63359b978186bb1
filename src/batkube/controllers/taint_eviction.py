"""Pods that do not tolerate a NoExecute taint of their node are deleted, at once or after the time they tolerate it.

Kubernetes: pkg/controller/tainteviction.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.client import Client
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.pods import disrupted_status, node_of_pod, pods_on
from batkube.cluster.references import is_being_deleted
from batkube.cluster.scheduling_rules import tolerates
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.controller import Controller
from batkube.kernel.instants import Duration, Instant, bounded_seconds


class TaintEviction(Controller):
    """Evicts pods from tainted nodes."""

    storage = POD

    def __init__(self, world: World, client: Client, events: EventRecorder) -> None:
        super().__init__(world, client, events)
        #: Since when each pod's toleration runs out.
        self._since: dict[Key, Instant] = {}
        world.store.listen(NODE, self._hear_nodes)

    def _hear_nodes(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            return
        for change in batch.changes():
            before = [] if change.previous is None else _evicting(change.previous)
            if before != _evicting(change.object):
                for key, _ in pods_on(self.store, [change.key]):
                    self.queue.add(key, now)

    def hear(self, batch: Batch, now: Instant) -> None:
        """Queue pods that have come to a node with such taints."""
        for change in batch.changes():
            if batch.type is DELETED:
                self._since.pop(change.key, None)
                self.queue.hurry(change.key, now)
                continue
            name = node_of_pod(change.object)
            if not name or (change.previous is not None and node_of_pod(change.previous) == name):
                continue
            node = self.store.get(NODE, Key(name))
            if node is not None and _evicting(node):
                self.queue.add(change.key, now)

    def reconcile(self, key: Key, pod: KubeObject, now: Instant) -> None:
        """Evict a pod whose time on its node is over."""
        node = self.store.get(NODE, Key(node_of_pod(pod)))
        if node is None or is_being_deleted(pod):
            self._since.pop(key, None)
            return
        tolerated = _tolerated_for(pod, _evicting(node))
        if tolerated is None:
            if self._since.pop(key, None) is not None:
                self.tell(pod, "Normal", "TaintManagerEviction", f"Cancelling deletion of Pod {key}", now)
            return
        due = Instant(self._since.setdefault(key, now) + tolerated)
        if now < due:
            self.queue.add_after(key, now, Duration(due - now))
            return
        self._evict(key, pod, now)

    def _evict(self, key: Key, pod: KubeObject, now: Instant) -> None:
        self.tell(pod, "Normal", "TaintManagerEviction", f"Marking for deletion Pod {key}", now)
        why = "Taint manager: deleting due to NoExecute taint"
        self.write_status(pod, disrupted_status(pod, "DeletionByTaintManager", why, now), now)
        self.client.delete(POD, key, now)


def _evicting(node: KubeObject) -> list[KubeObject]:
    return [taint for taint in node["spec"].get("taints") or () if taint["effect"] == "NoExecute"]


def _tolerated_for(pod: KubeObject, taints: Sequence[KubeObject]) -> Duration | None:
    """Return for how long the pod tolerates all the taints; None for ever."""
    limits = []
    for taint in taints:
        toleration = tolerates(pod["spec"].get("tolerations") or (), taint)
        if toleration is None:
            return Duration(0)
        if toleration.get("tolerationSeconds") is not None:
            limits.append(max(Duration(0), bounded_seconds(toleration["tolerationSeconds"])))
    return min(limits, default=None)
