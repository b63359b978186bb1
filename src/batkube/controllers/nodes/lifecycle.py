"""Node lifecycle: failed heartbeats, taints by node condition, and deletion of pods on removed nodes.

Kubernetes: pkg/controller/nodelifecycle/node_lifecycle_controller.go and pkg/controller/podgc/gc_controller.go (pods of
removed nodes). The real monitor checks every node's lease every five seconds. Here, when heartbeats stop, the check at
which the grace period will have passed is calculated (`cluster.heartbeats`), and the controller acts only then.
"""

from __future__ import annotations

import functools

from batkube.cluster.client import Client
from batkube.cluster.event_recorder import EventNote, EventRecorder
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.nodes.constraints import UNSCHEDULABLE_TAINT
from batkube.cluster.object_meta import condition_of, status_with_condition, with_condition
from batkube.cluster.pods.accessors import disruption_status, is_finished, is_ready, node_of_pod, pods_on
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.controller import Controller
from batkube.controllers.framework.work_queue import REACTION_TIME
from batkube.controllers.nodes.eviction_rate import EvictionRateLimiter
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Duration, Instant, duration, rfc3339, seconds

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"

#: The taint for each condition and status.
_TAINTS = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_MANAGED_TAINTS = frozenset((*_TAINTS.values(), UNSCHEDULABLE_TAINT))
#: --node-monitor-period and --node-monitor-grace-period of kube-controller-manager, with the defaults of 1.34.
_MONITOR_PERIOD: Duration = seconds(5)
_MONITOR_GRACE: Duration = seconds(50)
#: Interval at which the controller checks whether another node may get a NoExecute taint (Kubernetes:
#: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go, NodeEvictionPeriod).
_EVICTION_PERIOD: Duration = duration("100ms")
#: A starting manager polls its informers at this interval and begins once they have synced (client-go:
#: cache.WaitForCacheSync).
_STARTUP_DELAY: Duration = duration("100ms")
#: The conditions that kubelets post, and their status when kubelets stop posting (Kubernetes: tryUpdateNodeHealth).
_KUBELET_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_UNKNOWN = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
#: The pod garbage collector runs every twenty seconds. It deletes a pod at the first run at least forty seconds after
#: it found its node missing. On a real cluster each run is slightly late, so the second run after that counts.
_COLLECTOR_PERIOD: Duration = seconds(20)
_QUARANTINE: Duration = seconds(40)


class NodeLifecycleController(Controller):
    """Marks unresponsive nodes as Unknown, and sets taints according to node conditions."""

    storage = NODE

    def __init__(
        self, world: World, client: Client, events: EventRecorder | None = None, *, detects_immediately: bool = False
    ) -> None:
        """With `detects_immediately`, failures are detected without delay: for clusters without other controllers."""
        super().__init__(world, client, events, reaction=Duration(0) if detects_immediately else REACTION_TIME)
        self._agenda = world.agenda
        self._heartbeats = world.heartbeats
        self._detects_immediately = detects_immediately
        #: The time of the monitor's first check; the others follow every five seconds.
        self._first_check = Instant(world.clock.now + _STARTUP_DELAY)
        self._eviction_limiter = EvictionRateLimiter(world.clock.now)
        #: Nodes without NoExecute taint only because too many nodes have failed.
        self._unevictable_nodes: dict[Key, None] = {}
        world.heartbeats.subscribe(self._on_node_silent)

    # Heartbeats

    def _on_node_silent(self, node: str, now: Instant) -> None:
        if self._detects_immediately:
            self._mark_node_unknown(node, now)
            self._process(Key(node), now)
            return
        # The monitor sees the last renewal at one check, and acts at the first check more than the grace period later.
        last_seen_at = self._next_monitor_check(self._heartbeats.last_renewal(node))
        detected_at = self._next_monitor_check(Instant(last_seen_at + _MONITOR_GRACE + 1))
        self._agenda.book(detected_at, Rank.RECONCILE, functools.partial(self._mark_if_still_silent, node, now))

    def _next_monitor_check(self, instant: Instant) -> Instant:
        """Return the monitor's first check at or after this instant."""
        return self._next_tick(_MONITOR_PERIOD, instant)

    def _next_tick(self, period: Duration, instant: Instant) -> Instant:
        """Return the first tick of a periodic task at or after this instant."""
        return Instant(instant + (self._first_check - instant) % period)

    def _mark_if_still_silent(self, node: str, since: Instant, now: Instant) -> None:
        """Mark a node as Unknown if it has been unresponsive since `since` without interruption."""
        if self._heartbeats.silent.get(node) == since:
            self._mark_node_unknown(node, now)

    def _mark_node_unknown(self, name: str, now: Instant) -> None:
        """Set the node's conditions to Unknown and its pods to not ready."""
        node = self.store.get(NODE, Key(name))
        if node is None:
            return
        status = node.get("status", {})
        conditions = status.get("conditions") or []
        for kind in _KUBELET_CONDITIONS:
            old = condition_of(node, kind) or {}
            conditions = with_condition(conditions, {**old, "type": kind, **_UNKNOWN}, now)
        self.write_status(node, {**status, "conditions": conditions}, now)
        self.record_event(node, "Normal", "NodeNotReady", f"Node {name} status is now: NodeNotReady", now)
        for _, pod in pods_on(self.store, [name]):
            if is_ready(pod):
                self._mark_pod_not_ready(pod, now)

    def _mark_pod_not_ready(self, pod: KubeObject, now: Instant) -> None:
        """Set a pod to not ready (Kubernetes: pkg/controller/util/node/controller_utils.go, MarkPodsNotReady)."""
        status = status_with_condition(pod, {**(condition_of(pod, "Ready") or {}), "status": "False"}, now)
        self.client.update(POD, {**pod, "status": status}, now, subresource="status")
        if self.events is not None:
            self.events.record(pod, POD, EventNote("Warning", "NodeNotReady", "Node is not ready"), now)

    # Taints

    def reconcile(self, key: Key, node: KubeObject, now: Instant) -> None:
        """Set the taints that the node's conditions require."""
        current = node["spec"].get("taints") or []
        desired = _with_condition_taints(node, current, now)
        if not self._detects_immediately:
            desired = self._rate_limited_taints(key, node, desired, now)
        if desired != current:
            spec = {name: value for name, value in node["spec"].items() if name != "taints"}
            if desired:
                spec["taints"] = desired
            self.client.update(NODE, {**node, "spec": spec}, now)

    def _rate_limited_taints(
        self, key: Key, node: KubeObject, desired: list[KubeObject], now: Instant
    ) -> list[KubeObject]:
        """Return the taints to set now. NoExecute taints are added at a limited rate, and removed at monitor checks."""
        evicting = [taint for taint in node["spec"].get("taints") or () if _is_evicting_taint(taint)]
        others = [taint for taint in desired if not _is_evicting_taint(taint)]
        if len(others) < len(desired):
            return desired if self._may_evict(key, node, bool(evicting), now) else others
        self._unevictable_nodes.pop(key, None)
        next_check = self._next_monitor_check(now)
        for other in self._unevictable_nodes:
            self.queue.add_after(other, now, Duration(next_check - now))
        if evicting and now != next_check:
            self.queue.add_after(key, now, Duration(next_check - now))
            return [*others, *evicting]
        return desired

    def _may_evict(self, key: Key, node: KubeObject, is_evicting: bool, now: Instant) -> bool:
        """Decide whether a failed node may have a NoExecute taint, which it has already if `is_evicting`.

        Kubernetes: doNoExecuteTaintingPass.
        """
        was_fully_disrupted = self._eviction_limiter.is_fully_disrupted
        self._eviction_limiter.update(self.store.all(NODE).values(), now)
        if self._eviction_limiter.is_fully_disrupted and not was_fully_disrupted:
            for other in self.store.entries(NODE):
                self.queue.add(other, now)
        if is_evicting and not self._eviction_limiter.is_fully_disrupted:
            return True
        next_eviction = self._eviction_limiter.next_eviction_at(node)
        if next_eviction is None:
            self._unevictable_nodes[key] = None
            return False
        due = self._next_tick(_EVICTION_PERIOD, max(now, next_eviction))
        if now < due:
            self.queue.add_after(key, now, Duration(due - now))
            return False
        self._unevictable_nodes.pop(key, None)
        self._eviction_limiter.record_eviction(node, now)
        return True


def _with_condition_taints(node: KubeObject, current: list[KubeObject], now: Instant) -> list[KubeObject]:
    """Return the node's taints: those of other components, and ours according to its conditions."""
    required = []
    for (condition, status), taint in _TAINTS.items():
        state = condition_of(node, condition)
        if state is not None and state["status"] == status:
            required.append((taint, "NoSchedule"))
            if condition == "Ready":
                required.append((taint, "NoExecute"))
    if condition_of(node, "Ready") is None:
        # The kubelet has not registered its conditions yet; the taint set by admission stays.
        required.append((NOT_READY, "NoSchedule"))
    if node["spec"].get("unschedulable"):
        required.append((UNSCHEDULABLE_TAINT, "NoSchedule"))
    remaining = [taint for taint in current if not _is_managed(taint) or (taint["key"], taint["effect"]) in required]
    remaining_keys = [(taint["key"], taint["effect"]) for taint in remaining]
    at = rfc3339(now)
    new = [
        {"key": key, "effect": effect, "timeAdded": at}
        for key, effect in required
        if (key, effect) not in remaining_keys
    ]
    return [*remaining, *new]


def _is_evicting_taint(taint: KubeObject) -> bool:
    return taint["key"] in (NOT_READY, UNREACHABLE) and taint["effect"] == "NoExecute"


def _is_managed(taint: KubeObject) -> bool:
    effects = ("NoSchedule", "NoExecute") if taint["key"] in (NOT_READY, UNREACHABLE) else ("NoSchedule",)
    return taint["key"] in _MANAGED_TAINTS and taint["effect"] in effects


class PodGarbageCollector(Controller):
    """Deletes pods of nodes that do not exist."""

    storage = POD

    def __init__(self, world: World, client: Client) -> None:
        super().__init__(world, client)
        self._first_check = Instant(world.clock.now + _STARTUP_DELAY)
        world.store.subscribe(NODE, self._on_nodes_changed)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            for key, _ in pods_on(self.store, batch.keys):
                self.queue.add_after(key, now, self._deletion_delay(now))

    def _deletion_delay(self, now: Instant) -> Duration:
        return Duration((self._first_check - now) % _COLLECTOR_PERIOD + _QUARANTINE)

    def on_objects_changed(self, batch: Batch, now: Instant) -> None:
        """Queue pods that were bound to a node that does not exist."""
        if batch.type is DELETED:
            return
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            node = node_of_pod(pod)
            if node and self.store.get(NODE, Key(node)) is None:
                self.queue.add_after(key, now, self._deletion_delay(now))

    def reconcile(self, key: Key, pod: KubeObject, now: Instant) -> None:
        """Delete a pod whose node still does not exist; an unfinished pod is marked as Failed first."""
        if not node_of_pod(pod) or self.store.get(NODE, Key(node_of_pod(pod))) is not None:
            return
        if not is_finished(pod):
            status = disruption_status(pod, "DeletionByPodGC", "PodGC: node no longer exists", now)
            self.write_status(pod, {**status, "phase": "Failed"}, now)
        self.client.delete(POD, key, now, grace_s=0)
