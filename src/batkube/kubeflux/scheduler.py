"""KubeFlux: matches pods and groups of pods on a graph of the cluster, and binds them accordingly.

It is notified of pods and nodes through a store: the world's own, or a mirror of another cluster. A
round starts when a change may have freed resources or created pods. It tries the pending pods in
the order of their arrival. A group is tried when all its members exist, and is bound completely or
not at all. Imitates fluence, whose PreFilter requests resources for the whole group at its first
pod (flux-k8s sig-scheduler-plugins/pkg/fluence/fluence.go).
"""

from __future__ import annotations

from typing import NamedTuple

from batkube.cluster.client import ApiError, Client
from batkube.cluster.event_recorder import EventNote, EventRecorder, EventType
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.nodes.constraints import NodeConstraints
from batkube.cluster.object_meta import is_being_deleted, labels_of, name_of, namespace_of
from batkube.cluster.pods.accessors import is_finished, node_of_pod
from batkube.cluster.pods.resources import demand_of
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Duration, Instant, after, seconds
from batkube.kubeflux.audit import Auditor, AuditSink, cache_differences
from batkube.kubeflux.cache_sync import CacheSync, SyncMode
from batkube.kubeflux.scheduler_cache import SchedulerCache

#: The labels of the pods of a group in fluence.
GROUP_LABEL, SIZE_LABEL = "fluence.pod-group", "fluence.group-size"
#: The interval at which pending pods are retried without a change: bookings expire silently.
RETRY_INTERVAL: Duration = seconds(60)


class KubeFluxSettings(NamedTuple):
    """The user's settings."""

    scheduler_name: str = "kubeflux"
    sync: SyncMode = SyncMode.DELTAS
    match_policy: str = "lonode"


class KubeFluxScheduler:
    """Binds the pods that request it by name."""

    def __init__(
        self,
        world: World,
        client: Client,
        events: EventRecorder,
        settings: KubeFluxSettings,
        audit: AuditSink | None = None,
    ) -> None:
        """`audit` receives the cache's differences at the start of a round and the cache at its end."""
        self._store = world.store
        self._agenda = world.agenda
        self._client = client
        self._events = events
        self._settings = settings
        self._audit = audit
        self._auditor = Auditor()
        self.cache_sync = CacheSync(world.store, settings.sync, settings.scheduler_name, settings.match_policy)
        #: Pending pods in the order of their arrival.
        self._pending: dict[Key, None] = {}
        self._booked_rounds: set[Instant] = set()
        #: The last message in an event of each pending pod.
        self._messages: dict[Key, str] = {}
        world.store.subscribe(POD, self._on_pods_changed)
        world.store.subscribe(NODE, self._on_nodes_changed)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        needs_round = self._audit is not None
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            if batch.type is DELETED or is_finished(pod) or node_of_pod(pod) or not self._is_responsible_for(pod):
                needs_round |= key in self._pending or batch.type is DELETED or is_finished(pod)
                self._pending.pop(key, None)
                self._messages.pop(key, None)
            elif key not in self._pending and not self.cache_sync.is_assumed(key):
                self._pending[key] = None
                needs_round = True
        if needs_round:
            self._book_round(now)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        if self._pending or self._audit is not None:
            self._book_round(now)

    def _is_responsible_for(self, pod: KubeObject) -> bool:
        spec = pod["spec"]
        name = spec.get("schedulerName")
        return name == self._settings.scheduler_name and not spec.get("schedulingGates") and not is_being_deleted(pod)

    def _book_round(self, at: Instant) -> None:
        if at not in self._booked_rounds:
            self._booked_rounds.add(at)
            self._agenda.book(at, Rank.WAKE, self._run_round)

    def _run_round(self, now: Instant) -> None:
        self._booked_rounds.discard(now)
        cache = self.cache_sync.begin_round(now)
        if self._audit is not None:
            differences = set(cache_differences(cache.accounts, self.cache_sync.build_cache().accounts))
            self._audit.write_differences(self._auditor.update(differences, now))
        failed: set[object] = set()
        for group in self._groups():
            pods = [self._store.get(POD, key) for key in group]
            members = [pod for pod in pods if pod is not None]
            if len(members) == len(group):
                self._schedule_group(cache, group, members, failed, now)
        if self._audit is not None:
            self._audit.write_cache(cache.accounts)
        if self._pending and not self._booked_rounds:
            self._book_round(after(now, RETRY_INTERVAL))

    def _groups(self) -> list[list[Key]]:
        """Return the pods to try, in order: complete groups, and pods without a group."""
        groups: list[list[Key]] = []
        members_of: dict[tuple[str, str], list[Key]] = {}
        for key in self._pending:
            pod = self._store.get(POD, key)
            labels = {} if pod is None else labels_of(pod)
            name, size = labels.get(GROUP_LABEL), labels.get(SIZE_LABEL, "1")
            if name is None or not size.isdecimal() or int(size) < 2:
                groups.append([key])
                continue
            members = members_of.setdefault((namespace_of(key), name), [])
            members.append(key)
            if len(members) == int(size):
                groups.append(members)
        return groups

    def _schedule_group(
        self, cache: SchedulerCache, keys: list[Key], pods: list[KubeObject], failed: set[object], now: Instant
    ) -> None:
        """Match a group and bind it, or record why not. Groups equal to a failed one are not matched."""
        demands = [demand_of(pod) for pod in pods]
        largest = {name: max(demand.get(name, 0) for demand in demands) for demand in demands for name in demand}
        allowed = self._allowed_nodes(pods[0]["spec"])
        group_shape = (len(pods), tuple(sorted(largest.items())), allowed)
        is_unmatchable = group_shape in failed or allowed == frozenset()
        nodes = None if is_unmatchable else cache.match([largest] * len(pods), allowed)
        if nodes is None:
            failed.add(group_shape)
            for key, pod in zip(keys, pods, strict=True):
                self._record_no_match(key, pod, now)
            return
        for key, pod, node, demand in zip(keys, pods, nodes, demands, strict=True):
            self.cache_sync.assume(key, node, demand, now)
            self._pending.pop(key, None)
            self._bind(key, pod, node, now)

    def _allowed_nodes(self, spec: KubeObject) -> frozenset[str] | None:
        """Return the nodes that a pod's selector and required affinity allow, or None for all."""
        if not spec.get("nodeSelector") and not (spec.get("affinity") or {}).get("nodeAffinity"):
            return None
        rules = NodeConstraints(spec)
        nodes = self._store.all(NODE).values()
        names = [node["metadata"]["name"] for node in nodes if rules.accepts_labels(node)]
        return None if len(names) == len(nodes) else frozenset(names)

    def _bind(self, key: Key, pod: KubeObject, node: str, now: Instant) -> None:
        metadata = {"name": name_of(key), "namespace": namespace_of(key), "uid": pod["metadata"]["uid"]}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        try:
            self._client.create(POD, binding, now, subresource="binding")
        except ApiError as error:
            self.cache_sync.forget_assumed(key)
            self._record_event(pod, "Warning", "FailedScheduling", f"binding rejected: {error.message}", now)
            return
        self._record_event(pod, "Normal", "Scheduled", f"Successfully assigned {key} to {node}", now)

    def _record_no_match(self, key: Key, pod: KubeObject, now: Instant) -> None:
        message = "no match on the graph: not enough free capacity according to the scheduler's cache"
        if self._messages.get(key) != message:
            self._messages[key] = message
            self._record_event(pod, "Warning", "FailedScheduling", message, now)

    def _record_event(self, pod: KubeObject, kind: EventType, reason: str, message: str, now: Instant) -> None:
        action = "Binding" if kind == "Normal" else "Scheduling"
        self._events.record(pod, POD, EventNote(kind, reason, message, action), now)
