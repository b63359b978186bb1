"""How a picture follows the cluster: not at all, by its own pods, anew before every round, or change by change.

The first is the published fault of KubeFlux: it never heard of pods that ended, nor of pods that others had placed, and
so had to guess how long each would last. The other three are its cures. `own` promises what its name says: of the pods
that ask for this scheduler the picture is true; of all else it is as it was at the start. What a scheduler has decided
itself and has not heard back of yet is *assumed*, as kube-scheduler's cache does it (pkg/scheduler/backend/cache).
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
    """What a picture hears of."""

    NONE = "none"
    OWN = "own"
    REBUILD = "rebuild"
    DELTAS = "deltas"


class CacheSync:
    """Keeps one picture after one store, in one of the four ways."""

    def __init__(self, store: Store, mode: SyncMode, scheduler_name: str, policy: str = "lonode") -> None:
        self._store = store
        self._mode = mode
        self._name = scheduler_name
        self._policy = policy
        self.cache = SchedulerCache(policy)
        self._has_begun = False
        #: Pods that were bound here and will not be heard of again, by when Fluxion's booking of them is over.
        self._bookings: dict[Key, Instant] = {}
        #: Pods that were bound here and are not yet seen to be: where, and what they take.
        self._assumed: dict[Key, tuple[str, Amounts]] = {}
        store.subscribe(NODE, self._on_nodes_changed)
        store.subscribe(POD, self._on_pods_changed)

    def begin_round(self, now: Instant) -> SchedulerCache:
        """Return the picture as it is to be believed in a round that begins now."""
        if not self._has_begun or self._mode is SyncMode.REBUILD:
            self._has_begun = True
            self.cache = self.true_cache()
        if self._mode is SyncMode.NONE:
            self._expire(now)
        return self.cache

    def assume(self, key: Key, node: str, demand: Amounts, now: Instant) -> None:
        """Take note of a decision that is about to be carried out."""
        self.cache.add_pod(key, node, demand)
        self._assumed[key] = (node, demand)
        if self._mode is SyncMode.NONE:
            self._bookings[key] = after(now, _FIXED_DURATION)

    def is_assumed(self, key: Key) -> bool:
        """Return whether a decision about a pod was carried out and is not heard of yet."""
        return key in self._assumed

    def forget_assumed(self, key: Key) -> None:
        """Take note that a decision was refused."""
        self._assumed.pop(key, None)
        self._bookings.pop(key, None)
        self.cache.remove_pod(key)

    def true_cache(self) -> SchedulerCache:
        """Return a picture made from the cluster, and from decisions that were carried out and are not heard of yet."""
        nodes, pods = self._store.all(NODE).values(), self._store.all(POD).values()
        picture = SchedulerCache.build(nodes, pods, self._policy)
        for key, (node, demand) in self._assumed.items():
            picture.add_pod(key, node, demand)
        return picture

    def _expire(self, now: Instant) -> None:
        """Let bookings end that have lasted as long as Fluxion was told, whether the pods are there or not."""
        for key in [key for key, end in self._bookings.items() if end <= now]:
            del self._bookings[key]
            self.cache.remove_pod(key)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        if self._mode is not SyncMode.DELTAS or not self._has_begun:
            return
        for node in batch.objects:
            if batch.type is DELETED:
                self.cache.remove_node(node["metadata"]["name"])
            else:
                self.cache.set_node(node)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            is_over = batch.type is DELETED or is_finished(pod)
            if is_over or node_of_pod(pod):
                self._assumed.pop(key, None)
            if self._has_begun and self._follows(pod):
                self._apply(key, pod, is_over=is_over)

    def _follows(self, pod: KubeObject) -> bool:
        is_own = pod["spec"].get("schedulerName") == self._name
        return self._mode is SyncMode.DELTAS or (self._mode is SyncMode.OWN and is_own)

    def _apply(self, key: Key, pod: KubeObject, *, is_over: bool) -> None:
        node = node_of_pod(pod)
        if is_over or (not node and key not in self._assumed):
            self.cache.remove_pod(key)
        elif node:
            self.cache.add_pod(key, node, demand_of(pod))
