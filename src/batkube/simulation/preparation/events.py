"""The events of a run: read and check the timetable before the run, and execute its events at their times."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from batkube.cluster.mapping import NODE, ResourceModel, kube_name
from batkube.cluster.store import DELETED, Batch, KubeObject
from batkube.cluster.store_client import StoreClient
from batkube.cluster.world import World
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.execution.timeline.event_runner import EventRunner
from batkube.execution.timeline.events import ClusterTimeline, TimelineEvent
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import Instant
from batkube.outputs.writers.streaming_csv import MachineStatesWriter
from batkube.platforms.model import Platform
from batkube.programs.program import RunServer
from batkube.workloads.events.entries import EventAction, Manifest, Scaling
from batkube.workloads.fields import Place
from batkube.workloads.model import ObjectManifest

if TYPE_CHECKING:
    from batkube.api.manifests import ManifestClient
    from batkube.execution.nodes.power_switches import PowerSwitches, SleepCounts

_IMMEDIATE_DETECTION = FidelityNote(
    "events", "no controller monitors node leases, so the failure of a node was detected at once"
)

_PENDING_EVENTS = FidelityNote("events", "were still pending at the end of the run, which does not wait for them")


def read_timetable(events: Path | Sequence[object], source: str, platform: Platform) -> ClusterTimeline:
    """Return the timetable of an events file, or of the entries in `source`, for a platform. Raises InputError."""
    from batkube.workloads.events.reader import parse_events, read_events

    if isinstance(events, Path):
        return ClusterTimeline(read_events(events), platform)
    return ClusterTimeline(parse_events(list(events), Place(Path(source)) / "events", Path()), platform)


def objects_of_events(timetable: ClusterTimeline) -> list[ObjectManifest]:
    """Return the objects that events apply, in order of time, to validate them."""
    objects = [
        ObjectManifest(
            at=entry.schedule.at,
            fields=dict(manifest),
            workload="events",
            source=str(entry.place.path),
            place=f"{entry.place.at} ({manifest['kind']} {manifest['metadata']['name']})",
        )
        for entry, manifest in timetable.applied_objects
    ]
    return sorted(objects, key=lambda manifest: manifest.at)


def check_event_kinds(timetable: ClusterTimeline, objects: Sequence[ObjectManifest]) -> None:
    """Raise InputError if an event deletes or scales an object of a kind that is neither served nor in `objects`."""
    if not timetable.changed_kinds:
        return
    from batkube.cluster.kinds import KindTable

    served = {name.lower() for one in KindTable.builtin().resources() for name in (one.kind, one.plural)}
    served |= {manifest.kind.lower() for manifest in objects}
    for entry, kind in timetable.changed_kinds:
        if kind.lower() not in served:
            (entry.place / entry.action).reject(
                f"refers to the kind {kind!r}, which the API does not serve", "check the kind"
            )


def note_pending_events(timetable: ClusterTimeline, notes: FidelityNotes, now: Instant) -> None:
    """Note the events that were still pending at the end of a run."""
    entries = timetable.pending_entries(now)
    if entries:
        notes.add(
            _PENDING_EVENTS, example=f"{Path(entries[0].place.path).name}: {entries[0].place.at}", count=len(entries)
        )


def start_timeline(
    world: World, timetable: ClusterTimeline, model: ResourceModel, server: RunServer | None, *, are_nodes_watched: bool
) -> None:
    """Start the events of the timetable. If no controller monitors nodes, failures are detected at once."""
    if not timetable:
        return
    client = StoreClient(world.store) if server is None else server.api.client("kubectl")
    if not are_nodes_watched:
        from batkube.controllers.nodes.lifecycle import NodeLifecycleController
        from batkube.execution.nodes.registration import NodeRecovery

        NodeLifecycleController(world, client, detects_immediately=True)
        NodeRecovery(world, client)
        world.heartbeats.subscribe(lambda node, now: world.notes.add(_IMMEDIATE_DETECTION, example=f"node {node}"))
    machines = {kube_name(machine.name): machine for machine in timetable.machines}
    objects = (
        None if server is None else functools.partial(_carry_out_object_event, server.api.manifest_client(server.token))
    )
    EventRunner(world, client, timetable.events(world.streams), machines, model, objects).start()


def record_machine_states(
    world: World,
    accounts: NodeAllocations,
    states: MachineStatesWriter,
    switches: PowerSwitches | None,
    *,
    may_go: bool,
) -> Callable[[int, Instant], None]:
    """Record the states of machines and the usage of pods; return the listener for the number of busy machines.

    `may_go` means that nodes can be added and removed.
    """
    asleep: Container[str] = () if switches is None else switches.sleeping_nodes
    availability = UnavailableMachineCounter(world, accounts, states.record_states, asleep) if may_go else None
    change = states.record_states if availability is None else availability.update

    def switch(counts: SleepCounts, now: Instant) -> None:
        states.record_power_states(*counts, now)
        if availability is not None:
            availability.update(accounts.busy_node_count, now)

    if switches is not None:
        switches.on_change = switch

    def record(busy: int, now: Instant) -> None:
        accounts.record_usage(now)
        change(busy, now)

    return record


class UnavailableMachineCounter:
    """Counts unavailable machines: their nodes are absent, silent, or cordoned and idle.

    Sleeping machines are counted elsewhere. Nodes that programs create are counted while they exist.
    """

    def __init__(
        self,
        world: World,
        accounts: NodeAllocations,
        on_change: Callable[[int, Instant, int, int], None],
        asleep: Container[str],
    ) -> None:
        """`on_change` gets the number of busy machines, the instant, and the counts of unavailable and created ones."""
        self._asleep = asleep
        self._silent = world.heartbeats.silent
        self._machines = world.machines
        self._accounts = accounts
        self._on_change = on_change
        self._missing = dict.fromkeys(world.machines.names)
        self._created: dict[str, None] = {}
        self._cordoned: dict[str, None] = {}
        world.store.subscribe(NODE, self._on_nodes_changed)
        world.heartbeats.subscribe(self._on_heartbeat_changed, self._on_heartbeat_changed)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        for name, node in zip(batch.keys, batch.objects, strict=True):
            self._cordoned.pop(name, None)
            self._missing.pop(name, None)
            self._created.pop(name, None)
            is_described = self._machines.is_described(name)
            if batch.type is not DELETED and not is_described:
                self._created[name] = None
            if batch.type is DELETED and is_described:
                self._missing[name] = None
            elif batch.type is not DELETED and node["spec"].get("unschedulable"):
                self._cordoned[name] = None
        self._on_heartbeat_changed("", now)

    def _on_heartbeat_changed(self, node: str, now: Instant) -> None:
        self.update(self._accounts.busy_node_count, now)

    def update(self, busy: int, now: Instant) -> None:
        """Report the number of busy machines."""
        kept = [name for name in self._cordoned if name not in self._silent and not self._accounts.is_busy(name)]
        absent = sum(name not in self._asleep for name in (*self._missing, *self._silent, *kept))
        self._on_change(busy, now, absent, len(self._created))


def _carry_out_object_event(manifests: ManifestClient, event: TimelineEvent) -> str:
    """Apply, delete or scale objects as kubectl does, and return their names."""
    if isinstance(event.detail, Scaling):
        done = [manifests.scale(*event.detail)]
    else:
        act = manifests.apply if event.action is EventAction.APPLY else manifests.delete
        done = [act(cast("KubeObject", one)) for one in cast("tuple[Manifest, ...]", event.detail)]
    return ", ".join(f"{resource.kind} {key}" for resource, key in done)
