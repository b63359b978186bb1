"""What becomes of nodes that are not heard of, what a node's condition means for pods, and the end of lost pods.

Kubernetes: pkg/controller/nodelifecycle (health by leases, taints by condition) and pkg/controller/podgc (pods of
vanished nodes). The real monitor looks at every node's lease every five seconds. Here, when a node falls silent, the
look at which the monitor will have had enough is worked out (`cluster.heartbeats`), and nothing is done until then.
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

#: By condition and status: the taint that it means.
_TAINTS = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_MANAGED_TAINTS = frozenset((*_TAINTS.values(), UNSCHEDULABLE_TAINT))
#: kube-controller-manager's --node-monitor-period and --node-monitor-grace-period, as they are in 1.34.
_MONITOR_PERIOD: Duration = seconds(5)
_MONITOR_GRACE: Duration = seconds(50)
#: Whether one more node may get a taint that evicts pods is asked every tenth of a second
#: (pkg/controller/nodelifecycle/scheduler, NodeEvictionPeriod).
_EVICTION_PERIOD: Duration = duration("100ms")
#: A manager that comes up asks so often whether it has heard of all objects, and begins when it has (client-go:
#: cache.WaitForCacheSync).
_STARTUP_DELAY: Duration = duration("100ms")
#: The conditions that a kubelet posts, and what is said of them when it does not (tryUpdateNodeHealth).
_KUBELET_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_UNKNOWN = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
#: The collector of lost pods looks every twenty seconds, and gives up pods at the first look forty seconds after the
#: one that found them lost: on a cluster each look is a little late, so that the time is over by then.
_COLLECTOR_PERIOD: Duration = seconds(20)
_QUARANTINE: Duration = seconds(40)


class NodeLifecycleController(Controller):
    """Says of silent nodes that nobody knows how they are, and taints nodes as their conditions say."""

    storage = NODE

    def __init__(
        self, world: World, client: Client, events: EventRecorder | None = None, *, notices_at_once: bool = False
    ) -> None:
        """With `notices_at_once` silence is noticed as it falls: for clusters that have no other controllers."""
        super().__init__(world, client, events, reaction=Duration(0) if notices_at_once else REACTION_TIME)
        self._agenda = world.agenda
        self._heartbeats = world.heartbeats
        self._detects_immediately = notices_at_once
        #: The monitor looks at this instant and every five seconds from then on.
        self._first_check = Instant(world.clock.now + _STARTUP_DELAY)
        self._eviction_limiter = EvictionRateLimiter(world.clock.now)
        #: Nodes that have no taint that evicts pods, or none any more, only because too many are lost.
        self._spared_nodes: dict[Key, None] = {}
        world.heartbeats.subscribe(self._on_node_silent)

    # Silence

    def _on_node_silent(self, node: str, now: Instant) -> None:
        if self._detects_immediately:
            self._mark_node_unknown(node, now)
            self._process(Key(node), now)
            return
        # A look sees the last renewal; the first look more than the grace period after that one has had enough.
        seen = self._next_monitor_check(self._heartbeats.last_renewal(node))
        noticed = self._next_monitor_check(Instant(seen + _MONITOR_GRACE + 1))
        self._agenda.book(noticed, Rank.RECONCILE, functools.partial(self._mark_if_still_silent, node, now))

    def _next_monitor_check(self, instant: Instant) -> Instant:
        """Return the monitor's first look at this instant or later."""
        return self._next_tick(_MONITOR_PERIOD, instant)

    def _next_tick(self, period: Duration, instant: Instant) -> Instant:
        """Return when what is done every `period` is next done, at this instant or later."""
        return Instant(instant + (self._first_check - instant) % period)

    def _mark_if_still_silent(self, node: str, since: Instant, now: Instant) -> None:
        """Mark a node that is silent still, and not again."""
        if self._heartbeats.silent.get(node) == since:
            self._mark_node_unknown(node, now)

    def _mark_node_unknown(self, name: str, now: Instant) -> None:
        """Say that nobody knows how a node is, and that its pods are not ready."""
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
        """Say that a pod is not ready (Kubernetes: controller/util/node, MarkPodsNotReady)."""
        status = status_with_condition(pod, {**(condition_of(pod, "Ready") or {}), "status": "False"}, now)
        self.client.update(POD, {**pod, "status": status}, now, subresource="status")
        if self.events is not None:
            self.events.record(pod, POD, EventNote("Warning", "NodeNotReady", "Node is not ready"), now)

    # Taints

    def reconcile(self, key: Key, node: KubeObject, now: Instant) -> None:
        """Give a node the taints that its conditions mean."""
        present = node["spec"].get("taints") or []
        wanted = _with_condition_taints(node, present, now)
        if not self._detects_immediately:
            wanted = self._rate_limited_taints(key, node, wanted, now)
        if wanted != present:
            spec = {name: value for name, value in node["spec"].items() if name != "taints"}
            if wanted:
                spec["taints"] = wanted
            self.client.update(NODE, {**node, "spec": spec}, now)

    def _rate_limited_taints(
        self, key: Key, node: KubeObject, wanted: list[KubeObject], now: Instant
    ) -> list[KubeObject]:
        """Return the taints there should be now: those that evict pods come to one node at a time, and go at a look."""
        had = [taint for taint in node["spec"].get("taints") or () if _is_evicting_taint(taint)]
        others = [taint for taint in wanted if not _is_evicting_taint(taint)]
        if len(others) < len(wanted):
            return wanted if self._may_evict(key, node, bool(had), now) else others
        self._spared_nodes.pop(key, None)
        look = self._next_monitor_check(now)
        for spared in self._spared_nodes:
            self.queue.add_after(spared, now, Duration(look - now))
        if had and now != look:
            self.queue.add_after(key, now, Duration(look - now))
            return [*others, *had]
        return wanted

    def _may_evict(self, key: Key, node: KubeObject, does: bool, now: Instant) -> bool:
        """Return whether a lost node may have a taint that evicts its pods, which it `does` already or not."""
        was_all_lost = self._eviction_limiter.is_fully_disrupted
        self._eviction_limiter.update(self.store.all(NODE).values(), now)
        if self._eviction_limiter.is_fully_disrupted and not was_all_lost:
            for other in self.store.entries(NODE):
                self.queue.add(other, now)
        if does and not self._eviction_limiter.is_fully_disrupted:
            return True
        turn = self._eviction_limiter.next_eviction_at(node)
        if turn is None:
            self._spared_nodes[key] = None
            return False
        due = self._next_tick(_EVICTION_PERIOD, max(now, turn))
        if now < due:
            self.queue.add_after(key, now, Duration(due - now))
            return False
        self._spared_nodes.pop(key, None)
        self._eviction_limiter.record_eviction(node, now)
        return True


def _with_condition_taints(node: KubeObject, present: list[KubeObject], now: Instant) -> list[KubeObject]:
    """Return the taints that `node` should have: everybody else's, and ours by its conditions."""
    due = []
    for (condition, status), taint in _TAINTS.items():
        state = condition_of(node, condition)
        if state is not None and state["status"] == status:
            due.append((taint, "NoSchedule"))
            if condition == "Ready":
                due.append((taint, "NoExecute"))
    if condition_of(node, "Ready") is None:
        # Nobody has heard of this node yet; what admission gave it stays.
        due.append((NOT_READY, "NoSchedule"))
    if node["spec"].get("unschedulable"):
        due.append((UNSCHEDULABLE_TAINT, "NoSchedule"))
    kept = [taint for taint in present if not _is_managed(taint) or (taint["key"], taint["effect"]) in due]
    known = [(taint["key"], taint["effect"]) for taint in kept]
    at = rfc3339(now)
    new = [{"key": key, "effect": effect, "timeAdded": at} for key, effect in due if (key, effect) not in known]
    return [*kept, *new]


def _is_evicting_taint(taint: KubeObject) -> bool:
    return taint["key"] in (NOT_READY, UNREACHABLE) and taint["effect"] == "NoExecute"


def _is_managed(taint: KubeObject) -> bool:
    effects = ("NoSchedule", "NoExecute") if taint["key"] in (NOT_READY, UNREACHABLE) else ("NoSchedule",)
    return taint["key"] in _MANAGED_TAINTS and taint["effect"] in effects


class PodGarbageCollector(Controller):
    """Deletes the pods of nodes that do not exist."""

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
        """Queue pods that were bound to a node that is not there."""
        if batch.type is DELETED:
            return
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            node = node_of_pod(pod)
            if node and self.store.get(NODE, Key(node)) is None:
                self.queue.add_after(key, now, self._deletion_delay(now))

    def reconcile(self, key: Key, pod: KubeObject, now: Instant) -> None:
        """Delete a pod whose node is still not there; one that ran has failed."""
        if not node_of_pod(pod) or self.store.get(NODE, Key(node_of_pod(pod))) is not None:
            return
        if not is_finished(pod):
            status = disruption_status(pod, "DeletionByPodGC", "PodGC: node no longer exists", now)
            self.write_status(pod, {**status, "phase": "Failed"}, now)
        self.client.delete(POD, key, now, grace_s=0)
