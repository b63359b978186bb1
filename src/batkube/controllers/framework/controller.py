"""Base class of controllers: objects are reconciled a moment after a change, never during it."""

from __future__ import annotations

from batkube.cluster.client import Client
from batkube.cluster.event_recorder import EventNote, EventRecorder, EventType
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.work_queue import REACTION_TIME, WorkQueue
from batkube.kernel.instants import Duration, Instant


class Controller:
    """Reconciles the objects of one kind. Subclasses implement `reconcile`."""

    #: The kind's name in the store.
    storage: str
    #: Delay between a change and the reconciliation, if longer than the reaction time.
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
        """Bring the cluster closer to the spec of `obj`."""
        raise NotImplementedError

    def on_objects_changed(self, batch: Batch, now: Instant) -> None:
        """Queue changed objects of interest; process deleted ones at once if they are already queued."""
        for key, obj in zip(batch.keys, batch.objects, strict=True):
            if batch.type is DELETED:
                self.queue.expedite(key, now)
            elif self.should_reconcile(obj):
                self.queue.add_after(key, now, self.delay)

    def should_reconcile(self, obj: KubeObject) -> bool:
        """Return whether a changed object needs to be reconciled; by default all do."""
        return True

    def _process(self, key: Key, now: Instant) -> None:
        obj = self.store.get(self.storage, key)
        if obj is not None:
            self.reconcile(key, obj, now)
        else:
            self.reconcile_deleted(key, now)

    def reconcile_deleted(self, key: Key, now: Instant) -> None:
        """Clean up after a queued object that has been deleted; by default do nothing."""

    def write_status(self, obj: KubeObject, status: KubeObject, now: Instant) -> KubeObject:
        """Write the status if it has changed; return the resulting object."""
        if status == obj.get("status", {}):
            return obj
        return self.client.update(self.storage, {**obj, "status": status}, now, subresource="status")

    def record_event(self, obj: KubeObject, kind: EventType, reason: str, message: str, now: Instant) -> None:
        """Record an event of an object, if this controller records events."""
        if self.events is not None:
            self.events.record(obj, self.storage, EventNote(kind, reason, message), now)
