"""Records what changes in a world, as the deltas of playback.

A recorder subscribes to the store, and so it sees what a client of the API could see. Pods belong to the job execution
or the Job object that they were created for. It only appends to its lists: another thread may read them meanwhile.

It runs within the run's own thread, at each change. Batches in which all pods have the same new status, or are bound by
a scheduler's decision, are therefore recorded as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.decisions import Binding
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.object_meta import labels_of
from batkube.cluster.pods.accessors import TERMINAL_PHASES, is_finished, node_of_pod, phase_of
from batkube.cluster.pods.resources import allocatable_of
from batkube.cluster.store import ADDED, DELETED, Batch, ChangeType, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import START, Instant
from batkube.outputs.playback.deltas import DeltaKind
from batkube.outputs.playback.model import NodeStatus, RecordedNode
from batkube.outputs.writers.nodes_csv import POOL_LABELS, RACK_LABELS, ZONE_LABELS, first_label
from batkube.page.columns import STATUS_NUMBERS
from batkube.page.live.delta_columns import DeltaColumns
from batkube.page.live.jobs import LiveJobs, LivePod

#: The phase of pods that are deleted before they end, as in pods.csv.
_DELETED = "Deleted"
_NS_PER_MICROSECOND = 1000


class Recorder:
    """The nodes, jobs, pods and deltas of a world since the recorder was created."""

    def __init__(self, world: World, origin: Instant = START) -> None:
        """Record from now on. Recorded instants count from `origin`."""
        self._origin = origin
        self.nodes: list[RecordedNode] = []
        self.pods: list[LivePod] = []
        self.deltas = DeltaColumns()
        self.jobs = LiveJobs(world, self.deltas)
        self._clock = world.clock
        self._node_numbers: dict[str, int] = {}
        self._statuses: dict[str, NodeStatus] = {}
        self._silent = world.heartbeats.silent
        #: The pods that exist and have not ended.
        self._members: dict[Key, LivePod] = {}
        now = world.clock.now
        self._record_nodes(ADDED, list(world.store.all(NODE).items()), now)
        pods = world.store.all(POD)
        self._add_pods(list(pods), list(pods.values()), self._micros(now))
        world.store.subscribe(NODE, self._on_nodes_changed)
        world.store.subscribe(POD, self._on_pods_changed)
        world.heartbeats.subscribe(self._on_heartbeat_changed, self._on_heartbeat_changed)
        self._store = world.store

    @property
    def now(self) -> Instant:
        """The current instant, as recorded: what precedes a run counts as its start."""
        return max(START, Instant(self._clock.now - self._origin))

    def _micros(self, now: Instant) -> int:
        """Return an instant as recorded, in microseconds."""
        return max(START, now - self._origin) // _NS_PER_MICROSECOND

    # Nodes

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        self._record_nodes(batch.type, list(zip(batch.keys, batch.objects, strict=True)), now)

    def _record_nodes(self, change: ChangeType, nodes: list[tuple[Key, KubeObject]], now: Instant) -> None:
        for name, node in nodes:
            if change is DELETED:
                self.deltas.append(self._micros(now), DeltaKind.NODE_REMOVED, self._node_numbers[name])
                del self._statuses[name]
                continue
            if name not in self._node_numbers:
                self._node_numbers[name] = len(self.nodes)
                self.nodes.append(_node_of(len(self.nodes), name, node))
            if change is ADDED:
                self._statuses[name] = NodeStatus.READY
                self.deltas.append(self._micros(now), DeltaKind.NODE_ADDED, self._node_numbers[name])
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
            number, value = self._node_numbers[name], STATUS_NUMBERS[status]
            self.deltas.append(self._micros(now), DeltaKind.NODE_STATUS, number, value)

    # Pods

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        time = self._micros(now)
        if batch.type is ADDED:
            self._add_pods(batch.keys, batch.objects, time)
        elif batch.type is DELETED:
            self._update_pods(batch.keys, batch.objects, time, are_deleted=True)
        elif batch.status is not None:
            self._record_phase(batch.keys, batch.status.get("phase", ""), time)
        elif isinstance(batch.decision, Binding):
            self._bind(batch.keys, batch.objects, time)
        else:
            self._update_pods(batch.keys, batch.objects, time)

    def _add_pods(self, keys: Sequence[Key], pods: Sequence[KubeObject], time: int) -> None:
        members = self.jobs.new_pods(keys, pods, len(self.pods), time)
        self.pods.extend(members)
        self._members.update(zip(keys, members, strict=True))
        self.deltas.extend(time, DeltaKind.POD_QUEUED, [member.number for member in members])
        # Clients may bind a pod when they create it; a recorder may be created while pods run.
        if any(node_of_pod(pod) or is_finished(pod) for pod in pods):
            self._update_pods(keys, pods, time)

    def _bind(self, keys: Sequence[Key], pods: Sequence[KubeObject], time: int) -> None:
        """Record the nodes of pods that are not bound yet."""
        numbers, values = [], []
        for key, pod in zip(keys, pods, strict=True):
            member = self._members.get(key)
            if member is not None and not member.is_bound and (node := node_of_pod(pod)):
                member.is_bound = True
                numbers.append(member.number)
                values.append(self._node_numbers.get(node, -1))
        if numbers:
            self.deltas.extend(time, DeltaKind.POD_BOUND, numbers, values)

    def _record_phase(self, keys: Sequence[Key], phase: str, time: int) -> None:
        """Record the phase that pods have reached."""
        if phase == "Running":
            found = [self._members.get(key) for key in keys]
            members = [member for member in found if member is not None and not member.is_running]
            for member in members:
                member.is_running = True
            self.deltas.extend(time, DeltaKind.POD_STARTED, [member.number for member in members])
            self.jobs.on_pods_started(members, time)
        elif phase in TERMINAL_PHASES:
            self._end_pods(keys, phase, time)

    def _end_pods(self, keys: Sequence[Key], phase: str, time: int) -> None:
        found = [self._members.pop(key, None) for key in keys]
        members = [member for member in found if member is not None]
        self.deltas.extend(time, DeltaKind.POD_ENDED, [member.number for member in members], text=phase)
        self.jobs.on_pods_ended(members, phase, time)

    def _update_pods(
        self, keys: Sequence[Key], pods: Sequence[KubeObject], time: int, *, are_deleted: bool = False
    ) -> None:
        """Record whatever has changed of each pod."""
        for key, pod in zip(keys, pods, strict=True):
            if key in self._members:
                phase = phase_of(pod)
                self._bind([key], [pod], time)
                self._record_phase([key], phase, time)
                if are_deleted and phase not in TERMINAL_PHASES:
                    self._end_pods([key], _DELETED, time)


def _node_of(number: int, name: str, node: KubeObject) -> RecordedNode:
    labels = labels_of(node)
    zone, rack, pool = (first_label(labels, names) for names in (ZONE_LABELS, RACK_LABELS, POOL_LABELS))
    return RecordedNode(number, name, number, allocatable_of(node), zone, rack, pool, ())
