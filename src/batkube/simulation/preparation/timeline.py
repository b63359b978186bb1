"""The timeline of a run: read and check it before the run, and execute its events at their times."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from batkube.cluster.mapping import kube_name
from batkube.cluster.store import KubeObject
from batkube.cluster.world import World
from batkube.components.access import Access
from batkube.components.nodes import NodeCreator
from batkube.execution.nodes.cordon_log import CordonLog
from batkube.execution.timeline.event_runner import EventRunner
from batkube.execution.timeline.events import ClusterTimeline, TimelineEvent
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import Instant
from batkube.platforms.model import Platform
from batkube.programs.program import RunServer
from batkube.workloads.fields import Place
from batkube.workloads.model import ObjectManifest
from batkube.workloads.timeline.entries import EventAction, Manifest, Scaling

if TYPE_CHECKING:
    from batkube.api.manifests import ManifestClient

_IMMEDIATE_DETECTION = FidelityNote(
    "events", "no controller monitors node leases, so the failure of a node was detected at once"
)

_PENDING_EVENTS = FidelityNote("events", "were still pending at the end of the run, which does not wait for them")


def read_timeline(events: Path | Sequence[object], source: str, platform: Platform) -> ClusterTimeline:
    """Return the timeline of an events file, or of the entries in `source`, for a platform. Raises InputError."""
    from batkube.workloads.timeline.reader import parse_events, read_events

    if isinstance(events, Path):
        return ClusterTimeline(read_events(events), platform)
    return ClusterTimeline(parse_events(list(events), Place(Path(source)) / "events", Path()), platform)


def objects_of_events(timeline: ClusterTimeline) -> list[ObjectManifest]:
    """Return the objects that events apply, in order of time, to validate them."""
    objects = [
        ObjectManifest(
            at=entry.schedule.at,
            fields=dict(manifest),
            workload="events",
            source=str(entry.place.path),
            place=f"{entry.place.at} ({manifest['kind']} {manifest['metadata']['name']})",
        )
        for entry, manifest in timeline.applied_objects
    ]
    return sorted(objects, key=lambda manifest: manifest.at)


def check_event_kinds(timeline: ClusterTimeline, objects: Sequence[ObjectManifest], kubernetes: str) -> None:
    """Raise InputError if an event deletes or scales an object of a kind that is neither served nor in `objects`."""
    if not timeline.changed_kinds:
        return
    from batkube.cluster.kinds import KindTable

    served = {name.lower() for kind in KindTable.builtin(kubernetes).resources() for name in (kind.kind, kind.plural)}
    served |= {manifest.kind.lower() for manifest in objects}
    for entry, kind in timeline.changed_kinds:
        if kind.lower() not in served:
            (entry.place / entry.action).reject(
                f"refers to the kind {kind!r}, which the API does not serve", "check the kind"
            )


def note_pending_events(timeline: ClusterTimeline, notes: FidelityNotes, now: Instant) -> None:
    """Note the events that were still pending at the end of a run."""
    entries = timeline.pending_entries(now)
    if entries:
        notes.add(
            _PENDING_EVENTS, example=f"{Path(entries[0].place.path).name}: {entries[0].place.at}", count=len(entries)
        )


def start_timeline(
    world: World,
    access: Access,
    nodes: NodeCreator,
    timeline: ClusterTimeline,
    server: RunServer | None,
    are_nodes_watched: bool,
    cordons: CordonLog | None = None,
) -> None:
    """Start the events of the timeline. If no controller monitors nodes, failures are detected at once.

    `cordons` records the cordons of others than the timeline.
    """
    if not timeline:
        return
    client = access.client("kubectl")
    if not are_nodes_watched:
        from batkube.controllers.nodes.lifecycle import NodeLifecycleController
        from batkube.execution.nodes.registration import NodeRecovery

        NodeLifecycleController(world, client, detects_immediately=True)
        NodeRecovery(world, client)
        world.heartbeats.subscribe(lambda node, now: world.notes.add(_IMMEDIATE_DETECTION, example=f"node {node}"))
    machines = {kube_name(machine.name): machine for machine in timeline.machines}
    objects = (
        None if server is None else functools.partial(_execute_object_event, server.api.manifest_client(server.token))
    )
    EventRunner(world, client, timeline.events(world.streams), machines, nodes.add, objects, cordons).start()


def _execute_object_event(manifests: ManifestClient, event: TimelineEvent) -> str:
    """Apply, delete or scale objects as kubectl does, and return their names."""
    if isinstance(event.detail, Scaling):
        changes = [manifests.scale(*event.detail)]
    else:
        change = manifests.apply if event.action is EventAction.APPLY else manifests.delete
        changes = [change(cast("KubeObject", manifest)) for manifest in cast("tuple[Manifest, ...]", event.detail)]
    return ", ".join(f"{resource.kind} {key}" for resource, key in changes)
