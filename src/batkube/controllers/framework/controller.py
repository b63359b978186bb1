"""What every controller does: when an object has changed it looks at it, a moment later, never within the change."""

from __future__ import annotations

from batkube.cluster.client import Client
from batkube.cluster.event_recorder import EventNote, EventRecorder, EventType
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.work_queue import REACTION_TIME, WorkQueue
from batkube.kernel.instants import Duration, Instant


class Controller:
    """Looks after the objects of one kind. What that means, each says in its own `reconcile`."""

    #: The name of the kind in the store.
    storage: str
    #: How long after a change an object is looked at, where that is more than a reaction.
    delay = Duration(0)

    def __init__(
        self, world: World, client: Client, events: EventRecorder | None = None, *, reaction: Duration = REACTION_TIME
    ) -> None:
        self.store = world.store
        self.client = client
        self.events = events
        self.queue = WorkQueue(world, self._process, reaction)
        world.store.subscribe(self.storage, self.on_objects_changed)

    def reconcile(self, key: Key, obj: KubeObject, now: Instant) -> None:
        """Bring what there is closer to what `obj` asks for."""
        raise NotImplementedError

    def on_objects_changed(self, batch: Batch, now: Instant) -> None:
        """Queue what has changed, is there, and concerns this controller; what is gone waits for nothing any more."""
        for key, obj in zip(batch.keys, batch.objects, strict=True):
            if batch.type is DELETED:
                self.queue.expedite(key, now)
            elif self.should_reconcile(obj):
                self.queue.add_after(key, now, self.delay)

    def should_reconcile(self, obj: KubeObject) -> bool:
        """Return whether an object is to be looked at when it has changed; as a rule all are."""
        return True

    def _process(self, key: Key, now: Instant) -> None:
        obj = self.store.get(self.storage, key)
        if obj is not None:
            self.reconcile(key, obj, now)
        else:
            self.reconcile_deleted(key, now)

    def reconcile_deleted(self, key: Key, now: Instant) -> None:
        """Do what is left to do when an object that was to be looked at is there no more: nothing, as a rule."""

    def write_status(self, obj: KubeObject, status: KubeObject, now: Instant) -> KubeObject:
        """Tell how things stand, unless that is told; return the object as it is then."""
        if status == obj.get("status", {}):
            return obj
        return self.client.update(self.storage, {**obj, "status": status}, now, subresource="status")

    def record_event(self, obj: KubeObject, kind: EventType, reason: str, message: str, now: Instant) -> None:
        """Record an event of an object, where there is somebody to record it."""
        if self.events is not None:
            self.events.record(obj, self.storage, EventNote(kind, reason, message), now)
