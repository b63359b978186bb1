"""KubeFlux: pods and groups of pods are matched on a graph of the cluster, and bound where the match says.

It hears of pods and nodes through a store: the world's own, or a mirror of a cluster somewhere else. A round begins
when something may have made room or brought pods. In it, the pods that wait are tried in the order they came; a group
is tried when all its members are there, and bound as a whole or not at all (fluence: PreFilter asks Fluxion for the
whole group at its first pod).
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

#: What fluence's users write on the pods of a group.
GROUP_LABEL, SIZE_LABEL = "fluence.pod-group", "fluence.group-size"
#: Pods that did not fit are tried again after so long even if nothing is heard: bookings expire unheard.
RETRY_INTERVAL: Duration = seconds(60)


class KubeFluxSettings(NamedTuple):
    """What a user chooses."""

    scheduler_name: str = "kubeflux"
    sync: SyncMode = SyncMode.DELTAS
    match_policy: str = "lonode"


class KubeFluxScheduler:
    """Binds the pods that ask for it by name."""

    def __init__(
        self,
        world: World,
        client: Client,
        events: EventRecorder,
        settings: KubeFluxSettings,
        audit: AuditSink | None = None,
    ) -> None:
        """`audit` is told, when a round begins, where the picture differs from the cluster, and shown it at its end."""
        self._store = world.store
        self._agenda = world.agenda
        self._client = client
        self._events = events
        self._settings = settings
        self._audit = audit
        self.auditor = Auditor()
        self.cache_sync = CacheSync(world.store, settings.sync, settings.scheduler_name, settings.match_policy)
        #: Pods that wait, in the order they came.
        self._pending: dict[Key, None] = {}
        self._wake_ups: set[Instant] = set()
        self._messages: dict[Key, str] = {}
        world.store.subscribe(POD, self._on_pods_changed)
        world.store.subscribe(NODE, self._on_nodes_changed)

    # What it hears

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        is_news = self._audit is not None
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            if batch.type is DELETED or is_finished(pod) or node_of_pod(pod) or not self._is_responsible_for(pod):
                is_news |= key in self._pending or batch.type is DELETED or is_finished(pod)
                self._pending.pop(key, None)
                self._messages.pop(key, None)
            elif key not in self._pending and not self.cache_sync.is_assumed(key):
                self._pending[key] = None
                is_news = True
        if is_news:
            self._book_round(now)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        if self._pending or self._audit is not None:
            self._book_round(now)

    def _is_responsible_for(self, pod: KubeObject) -> bool:
        spec = pod["spec"]
        name = spec.get("schedulerName")
        return name == self._settings.scheduler_name and not spec.get("schedulingGates") and not is_being_deleted(pod)

    def _book_round(self, at: Instant) -> None:
        if at not in self._wake_ups:
            self._wake_ups.add(at)
            self._agenda.book(at, Rank.WAKE, self._run_round)

    # What it does

    def _run_round(self, now: Instant) -> None:
        self._wake_ups.discard(now)
        picture = self.cache_sync.begin_round(now)
        if self._audit is not None:
            true = self.cache_sync.true_cache()
            self._audit.write_differences(
                self.auditor.update(set(cache_differences(picture.accounts, true.accounts)), now)
            )
        failed: set[object] = set()
        for group in self._groups():
            pods = [self._store.get(POD, key) for key in group]
            members = [pod for pod in pods if pod is not None]
            if len(members) == len(group):
                self._schedule_group(picture, group, members, failed, now)
        if self._audit is not None:
            self._audit.write_cache(picture.accounts)
        if self._pending and not self._wake_ups:
            self._book_round(after(now, RETRY_INTERVAL))

    def _groups(self) -> list[list[Key]]:
        """Return the pods that can be tried, in order: groups whose members are all there, and pods of no group."""
        groups: dict[tuple[str, str], list[Key]] = {}
        tries: list[list[Key]] = []
        for key in self._pending:
            pod = self._store.get(POD, key)
            labels = {} if pod is None else labels_of(pod)
            name, size = labels.get(GROUP_LABEL), labels.get(SIZE_LABEL, "1")
            if name is None or not size.isdecimal() or int(size) < 2:
                tries.append([key])
                continue
            members = groups.setdefault((namespace_of(key), name), [])
            members.append(key)
            if len(members) == int(size):
                tries.append(members)
        return tries

    def _schedule_group(
        self, picture: SchedulerCache, keys: list[Key], pods: list[KubeObject], failed: set[object], now: Instant
    ) -> None:
        """Match a group and bind it, or say why not; groups like one that failed in this round are passed over."""
        demands = [demand_of(pod) for pod in pods]
        largest = {name: max(demand.get(name, 0) for demand in demands) for demand in demands for name in demand}
        allowed = self._allowed(pods[0]["spec"])
        shape = (len(pods), tuple(sorted(largest.items())), allowed)
        places = None if shape in failed or allowed == frozenset() else picture.match([largest] * len(pods), allowed)
        if places is None:
            failed.add(shape)
            for key, pod in zip(keys, pods, strict=True):
                self._record_no_match(key, pod, now)
            return
        for key, pod, node, demand in zip(keys, pods, places, demands, strict=True):
            self.cache_sync.assume(key, node, demand, now)
            self._pending.pop(key, None)
            self._bind(key, pod, node, now)

    def _allowed(self, spec: KubeObject) -> frozenset[str] | None:
        """Return the nodes that a pod's selector and required affinity allow; None for all."""
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
        except ApiError as refusal:
            self.cache_sync.forget_assumed(key)
            self._record_event(pod, "Warning", "FailedScheduling", f"binding rejected: {refusal.message}", now)
            return
        self._record_event(pod, "Normal", "Scheduled", f"Successfully assigned {key} to {node}", now)

    def _record_no_match(self, key: Key, pod: KubeObject, now: Instant) -> None:
        message = "no match on the graph: there is no room for it, as far as is known"
        if self._messages.get(key) != message:
            self._messages[key] = message
            self._record_event(pod, "Warning", "FailedScheduling", message, now)

    def _record_event(self, pod: KubeObject, kind: EventType, reason: str, message: str, now: Instant) -> None:
        action = "Binding" if kind == "Normal" else "Scheduling"
        self._events.record(pod, POD, EventNote(kind, reason, message, action), now)
