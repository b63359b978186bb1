"""Records the changes of a world as the deltas of playback.

A recorder subscribes to the store, so it sees exactly what a client of the API could see. Pods belong to the job
execution or the Job object that they were created for. It only appends to its lists, so another thread may read them.
"""

from __future__ import annotations

from batkube.cluster.mapping import NODE, POD
from batkube.cluster.object_meta import labels_of
from batkube.cluster.pods.accessors import is_finished, node_of_pod, phase_of
from batkube.cluster.pods.resources import allocatable_of
from batkube.cluster.store import ADDED, DELETED, Batch, ChangeType, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import START, Instant
from batkube.outputs.playback.deltas import Delta, DeltaKind
from batkube.outputs.playback.model import NodeStatus, RecordedNode, RecordedPod
from batkube.outputs.writers.nodes_csv import POOL_LABELS, RACK_LABELS, ZONE_LABELS, first_label
from batkube.page.live.jobs import LiveJobs, LivePod

#: The phase of pods that are deleted before they end, as in pods.csv.
_DELETED = "Deleted"


class Recorder:
    """The nodes, jobs, pods and deltas of a world since the recorder was created."""

    def __init__(self, world: World, origin: Instant = START) -> None:
        """Record from now on. Recorded instants count from `origin`."""
        self._origin = origin
        self.nodes: list[RecordedNode] = []
        self.pods: list[RecordedPod] = []
        self.deltas: list[Delta] = []
        self.jobs = LiveJobs(world, self.deltas)
        self._clock = world.clock
        self._node_numbers: dict[str, int] = {}
        self._statuses: dict[str, NodeStatus] = {}
        self._silent = world.heartbeats.silent
        #: The pods that exist and have not ended.
        self._members: dict[Key, LivePod] = {}
        now = world.clock.now
        self._record_nodes(ADDED, list(world.store.all(NODE).items()), now)
        self._record_pods(ADDED, list(world.store.all(POD).items()), now)
        world.store.subscribe(NODE, self._on_nodes_changed)
        world.store.subscribe(POD, self._on_pods_changed)
        world.heartbeats.subscribe(self._on_heartbeat_changed, self._on_heartbeat_changed)
        self._store = world.store

    @property
    def now(self) -> Instant:
        """The current instant, as recorded."""
        return self._at(self._clock.now)

    def _at(self, now: Instant) -> Instant:
        """Return an instant as recorded; an instant before the run becomes its start."""
        return max(START, Instant(now - self._origin))

    def _append(self, now: Instant, kind: DeltaKind, number: int, *, node: str = "", text: str = "") -> None:
        self.deltas.append(Delta(self._at(now), kind, number, node, text))

    # Nodes

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        self._record_nodes(batch.type, list(zip(batch.keys, batch.objects, strict=True)), now)

    def _record_nodes(self, change: ChangeType, nodes: list[tuple[Key, KubeObject]], now: Instant) -> None:
        for name, node in nodes:
            if change is DELETED:
                self._append(now, DeltaKind.NODE_REMOVED, self._node_numbers[name])
                del self._statuses[name]
                continue
            if name not in self._node_numbers:
                self._node_numbers[name] = len(self.nodes)
                self.nodes.append(_node_of(len(self.nodes), name, node))
            if change is ADDED:
                self._statuses[name] = NodeStatus.READY
                self._append(now, DeltaKind.NODE_ADDED, self._node_numbers[name])
            self._record_status(name, node, now)

    def _on_heartbeat_changed(self, name: str, now: Instant) -> None:
        node = self._store.get(NODE, Key(name))
        if node is not None:
            self._record_status(name, node, now)

    def _record_status(self, name: str, node: KubeObject, now: Instant) -> None:
        status = NodeStatus.READY
        if name in self._silent:
            status = NodeStatus.FAILED
        elif node.get("spec", {}).get("unschedulable"):
            status = NodeStatus.CORDONED
        if self._statuses[name] is not status:
            self._statuses[name] = status
            self._append(now, DeltaKind.NODE_STATUS, self._node_numbers[name], text=status)

    # Pods

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        self._record_pods(batch.type, list(zip(batch.keys, batch.objects, strict=True)), now)

    def _record_pods(self, change: ChangeType, pods: list[tuple[Key, KubeObject]], now: Instant) -> None:
        for key, pod in pods:
            if change is ADDED:
                self._add_pod(key, pod, now)
            member = self._members.get(key)
            if member is None:
                continue
            if not member.is_bound and node_of_pod(pod):
                member.is_bound = True
                self._append(now, DeltaKind.POD_BOUND, member.number, node=node_of_pod(pod))
            if not member.is_running and phase_of(pod) == "Running":
                member.is_running = True
                self._append(now, DeltaKind.POD_STARTED, member.number, node=node_of_pod(pod))
                self.jobs.on_pod_started(member, self._at(now))
            if change is DELETED or is_finished(pod):
                phase = phase_of(pod) if is_finished(pod) else _DELETED
                self._append(now, DeltaKind.POD_ENDED, member.number, node=node_of_pod(pod), text=phase)
                self.jobs.on_pod_ended(member, phase, self._at(now))
                del self._members[key]

    def _add_pod(self, key: Key, pod: KubeObject, now: Instant) -> None:
        member = self.jobs.record_pod(key, pod, len(self.pods), self._at(now))
        created = RecordedPod(
            number=member.number,
            name=key.removeprefix("default/"),
            job=None if member.group is None else member.group.number,
            node="",
            created=self._at(now),
            bound=None,
            started=None,
            ended=None,
            phase="Pending",
            attempts=0,
            reason="",
            owner=member.owner,
            requests=member.requests,
        )
        self.pods.append(created)
        self._members[key] = member
        self._append(now, DeltaKind.POD_QUEUED, member.number)


def _node_of(number: int, name: str, node: KubeObject) -> RecordedNode:
    labels = labels_of(node)
    zone, rack, pool = (first_label(labels, names) for names in (ZONE_LABELS, RACK_LABELS, POOL_LABELS))
    return RecordedNode(number, name, number, allocatable_of(node), zone, rack, pool, ())
