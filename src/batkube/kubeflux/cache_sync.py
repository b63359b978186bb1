"""Keeps a scheduler's cache in sync with the cluster, in one of four modes.

* `none`: never, the published fault of KubeFlux. It is notified neither of pods that end nor of
  pods of other schedulers, and books every pod for a fixed duration instead.
* `own`: by changes of the pods that request this scheduler. Everything else stays as it was at the
  start.
* `rebuild`: rebuilt from the cluster before every round.
* `deltas`: by all changes of nodes and pods.

A binding that the scheduler has made and has not been notified of yet is *assumed*, as in
kube-scheduler (pkg/scheduler/backend/cache).
"""

from __future__ import annotations

import enum

from batkube.cluster.mapping import NODE, POD
from batkube.cluster.pods.accessors import is_finished, node_of_pod
from batkube.cluster.pods.resources import Amounts, demand_of
from batkube.cluster.store import DELETED, Batch, Key, KubeObject, Store
from batkube.kernel.instants import Duration, Instant, after, seconds
from batkube.kubeflux.scheduler_cache import FIXED_DURATION_S, SchedulerCache

_FIXED_DURATION: Duration = seconds(FIXED_DURATION_S)


class SyncMode(enum.StrEnum):
    """The changes that update the cache."""

    NONE = "none"
    OWN = "own"
    REBUILD = "rebuild"
    DELTAS = "deltas"


class CacheSync:
    """Keeps one cache in sync with one store."""

    def __init__(self, store: Store, mode: SyncMode, scheduler_name: str, policy: str = "lonode") -> None:
        self._store = store
        self._mode = mode
        self._name = scheduler_name
        self._policy = policy
        self.cache = SchedulerCache(policy)
        self._is_initialized = False
        #: In mode `none`: when Fluxion's booking of each bound pod ends.
        self._bookings: dict[Key, Instant] = {}
        #: Assumed pods, with their node and demand.
        self._assumed: dict[Key, tuple[str, Amounts]] = {}
        store.subscribe(NODE, self._on_nodes_changed)
        store.subscribe(POD, self._on_pods_changed)

    def begin_round(self, now: Instant) -> SchedulerCache:
        """Return the cache for a scheduling round that begins now."""
        if not self._is_initialized or self._mode is SyncMode.REBUILD:
            self._is_initialized = True
            self.cache = self.build_cache()
        if self._mode is SyncMode.NONE:
            self._expire(now)
        return self.cache

    def assume(self, key: Key, node: str, demand: Amounts, now: Instant) -> None:
        """Record a binding that is about to be made."""
        self.cache.add_pod(key, node, demand)
        self._assumed[key] = (node, demand)
        if self._mode is SyncMode.NONE:
            self._bookings[key] = after(now, _FIXED_DURATION)

    def is_assumed(self, key: Key) -> bool:
        """Return whether a pod is assumed to be bound."""
        return key in self._assumed

    def forget_assumed(self, key: Key) -> None:
        """Remove an assumed pod whose binding was rejected."""
        self._assumed.pop(key, None)
        self._bookings.pop(key, None)
        self.cache.remove_pod(key)

    def build_cache(self) -> SchedulerCache:
        """Return a new cache with the nodes and pods of the cluster, and the assumed pods."""
        nodes, pods = self._store.all(NODE).values(), self._store.all(POD).values()
        cache = SchedulerCache.build(nodes, pods, self._policy)
        for key, (node, demand) in self._assumed.items():
            cache.add_pod(key, node, demand)
        return cache

    def _expire(self, now: Instant) -> None:
        """Remove pods whose booking has ended, even if they still run."""
        for key in [key for key, end in self._bookings.items() if end <= now]:
            del self._bookings[key]
            self.cache.remove_pod(key)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        if self._mode is not SyncMode.DELTAS or not self._is_initialized:
            return
        for node in batch.objects:
            if batch.type is DELETED:
                self.cache.remove_node(node["metadata"]["name"])
            else:
                self.cache.set_node(node)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            is_gone = batch.type is DELETED or is_finished(pod)
            if is_gone or node_of_pod(pod):
                self._assumed.pop(key, None)
            if self._is_initialized and self._follows(pod):
                self._apply(key, pod, is_gone=is_gone)

    def _follows(self, pod: KubeObject) -> bool:
        is_own = pod["spec"].get("schedulerName") == self._name
        return self._mode is SyncMode.DELTAS or (self._mode is SyncMode.OWN and is_own)

    def _apply(self, key: Key, pod: KubeObject, *, is_gone: bool) -> None:
        node = node_of_pod(pod)
        if is_gone or (not node and key not in self._assumed):
            self.cache.remove_pod(key)
        elif node:
            self.cache.add_pod(key, node, demand_of(pod))
