"""What a node's condition means for pods: taints while it is not well, and the end of its pods when it is gone.

Kubernetes: pkg/controller/nodelifecycle (taints by condition) and pkg/controller/podgc (pods of vanished nodes).
"""

from __future__ import annotations

from batkube.cluster.client import Client
from batkube.cluster.pods import is_finished, node_of_pod
from batkube.cluster.references import condition_of, with_condition
from batkube.cluster.scheduling_rules import UNSCHEDULABLE_TAINT
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.work_queue import WorkQueue
from batkube.kernel.instants import Duration, Instant, rfc3339, seconds

NODE, POD = "nodes", "pods"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"

#: By condition and status: the taint that it means.
_TAINTS = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_OWN = frozenset((*_TAINTS.values(), UNSCHEDULABLE_TAINT))
#: How long a node must be gone before its pods are given up.
_QUARANTINE: Duration = seconds(40)


class NodeLifecycle:
    """Taints nodes as their conditions say."""

    def __init__(self, world: World, client: Client) -> None:
        self._store = world.store
        self._client = client
        self._queue = WorkQueue(world, self._reconcile)
        world.store.listen(NODE, self._hear)

    def _hear(self, batch: Batch, now: Instant) -> None:
        if batch.type is not DELETED:
            for key in batch.keys:
                self._queue.add(key, now)

    def _reconcile(self, key: Key, now: Instant) -> None:
        node = self._store.get(NODE, key)
        if node is None:
            return
        present = node["spec"].get("taints") or []
        wanted = _with_own_taints(node, present, now)
        if wanted != present:
            spec = {name: value for name, value in node["spec"].items() if name != "taints"}
            if wanted:
                spec["taints"] = wanted
            self._client.update(NODE, {**node, "spec": spec}, now)


def _with_own_taints(node: KubeObject, present: list[KubeObject], now: Instant) -> list[KubeObject]:
    """Return the taints that `node` should have: everybody else's, and ours by its conditions."""
    meant = []
    for (condition, status), taint in _TAINTS.items():
        found = condition_of(node, condition)
        if found is not None and found["status"] == status:
            meant.append((taint, "NoSchedule"))
            if condition == "Ready":
                meant.append((taint, "NoExecute"))
    if condition_of(node, "Ready") is None:
        # Nobody has heard of this node yet; what admission gave it stays.
        meant.append((NOT_READY, "NoSchedule"))
    if node["spec"].get("unschedulable"):
        meant.append((UNSCHEDULABLE_TAINT, "NoSchedule"))
    kept = [taint for taint in present if not _is_own(taint) or (taint["key"], taint["effect"]) in meant]
    known = [(taint["key"], taint["effect"]) for taint in kept]
    at = rfc3339(now)
    new = [{"key": key, "effect": effect, "timeAdded": at} for key, effect in meant if (key, effect) not in known]
    return [*kept, *new]


def _is_own(taint: KubeObject) -> bool:
    effects = ("NoSchedule", "NoExecute") if taint["key"] in (NOT_READY, UNREACHABLE) else ("NoSchedule",)
    return taint["key"] in _OWN and taint["effect"] in effects


class PodsOfLostNodes:
    """Deletes the pods of nodes that do not exist."""

    def __init__(self, world: World, client: Client) -> None:
        self._store = world.store
        self._client = client
        self._queue = WorkQueue(world, self._reconcile)
        world.store.listen(NODE, self._hear_nodes)
        world.store.listen(POD, self._hear_pods)

    def _hear_nodes(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            gone = frozenset(batch.keys)
            for key, (pod, _) in self._store.entries(POD).items():
                if node_of_pod(pod) in gone:
                    self._queue.add_after(key, now, _QUARANTINE)

    def _hear_pods(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            return
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            node = node_of_pod(pod)
            if node and self._store.get(NODE, Key(node)) is None:
                self._queue.add_after(key, now, _QUARANTINE)

    def _reconcile(self, key: Key, now: Instant) -> None:
        pod = self._store.get(POD, key)
        if pod is None or not node_of_pod(pod) or self._store.get(NODE, Key(node_of_pod(pod))) is not None:
            return
        if not is_finished(pod):
            status = pod.get("status", {})
            condition = {
                "type": "DisruptionTarget",
                "status": "True",
                "lastProbeTime": None,
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
            }
            conditions = with_condition(status.get("conditions") or [], condition, now)
            changed = {**pod, "status": {**status, "phase": "Failed", "conditions": conditions}}
            self._client.update(POD, changed, now, subresource="status")
        self._client.delete(POD, key, now, grace_s=0)
