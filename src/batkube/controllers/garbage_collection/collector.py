"""Garbage collector: deletes objects whose owners no longer exist, and implements the propagation policies.

Kubernetes: pkg/controller/garbagecollector/garbagecollector.go. The API server records the policy as a finalizer:
`foregroundDeletion` keeps the owner until its blocking dependents are deleted, `orphan` until they are released.
"""

from __future__ import annotations

from batkube.cluster.client import Client
from batkube.cluster.object_meta import is_being_deleted, with_metadata, without_finalizer
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.work_queue import WorkQueue
from batkube.controllers.garbage_collection.object_graph import ObjectGraph
from batkube.kernel.instants import Instant

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class GarbageCollector:
    """Deletes objects whose owners do not exist. Its queue contains uids."""

    def __init__(self, world: World, client: Client, graph: ObjectGraph) -> None:
        self._client = client
        self._graph = graph
        self._queue = WorkQueue(world, self._reconcile)
        graph.subscribe(self._on_object_changed)

    def _on_object_changed(self, uid: str, before: KubeObject | None, after: KubeObject | None, now: Instant) -> None:
        if after is None:
            assert before is not None
            self._queue_related(uid, before, now)
            return
        metadata = after["metadata"]
        references = metadata.get("ownerReferences")
        if is_being_deleted(after):
            if _has_finalizer(after, FOREGROUND) or _has_finalizer(after, ORPHAN):
                self._queue.add(Key(uid), now)
            # A dependent that no longer references an owner does not block it.
            if before is not None and before["metadata"].get("ownerReferences") != references:
                self._queue_related(uid, before, now)
        elif references and (before is None or before["metadata"].get("ownerReferences") != references):
            self._queue.add(Key(uid), now)

    def _queue_related(self, uid: str, deleted: KubeObject, now: Instant) -> None:
        """Queue the dependents of `deleted`, and its owners in foreground deletion, which may have waited for it."""
        for dependent in self._graph.dependents(uid):
            self._queue.add(Key(dependent), now)
        for reference in deleted["metadata"].get("ownerReferences", ()):
            owner = self._graph.get(reference["uid"])
            if owner is not None and _has_finalizer(owner, FOREGROUND):
                self._queue.add(Key(reference["uid"]), now)

    def _reconcile(self, uid: Key, now: Instant) -> None:
        obj = self._graph.get(uid)
        if obj is None:
            return
        if is_being_deleted(obj):
            if _has_finalizer(obj, ORPHAN):
                self._orphan_dependents(uid, obj, now)
            elif _has_finalizer(obj, FOREGROUND):
                self._delete_dependents_first(uid, obj, now)
        elif obj["metadata"].get("ownerReferences"):
            self._attempt_to_delete(uid, obj, now)

    def _attempt_to_delete(self, uid: str, obj: KubeObject, now: Instant) -> None:
        """Delete an object without existing owners; otherwise remove the references to owners that no longer exist.

        Kubernetes: attemptToDeleteItem.
        """
        existing, has_waiting_owner = [], False
        references = obj["metadata"]["ownerReferences"]
        for reference in references:
            owner = self._graph.owner_of(reference, obj)
            if owner is None:
                continue
            if is_being_deleted(owner) and _has_finalizer(owner, FOREGROUND):
                has_waiting_owner = True
            else:
                existing.append(reference)
        if existing:
            if len(existing) < len(references):
                self._update(uid, with_metadata(obj, ownerReferences=existing), now)
            return
        propagation = "Background"
        if has_waiting_owner and self._graph.dependents(uid):
            self._unblock_if_circular(uid, obj, now)
            propagation = "Foreground"
        elif _has_finalizer(obj, ORPHAN):
            propagation = "Orphan"
        elif _has_finalizer(obj, FOREGROUND):
            propagation = "Foreground"
        location = self._graph.location_of(uid)
        if location is not None:
            self._client.delete(location.storage, location.key, now, propagation=propagation, uid=uid)

    def _unblock_if_circular(self, uid: str, obj: KubeObject, now: Instant) -> None:
        """Stop blocking the owners if a dependent of the object is itself in foreground deletion (a cycle).

        Kubernetes: patch.go, unblockOwnerReferencesStrategicMergePatch.
        """
        dependents = [self._graph.get(dependent) for dependent in self._graph.dependents(uid)]
        if any(
            dependent is not None and is_being_deleted(dependent) and _has_finalizer(dependent, FOREGROUND)
            for dependent in dependents
        ):
            references = [
                {**reference, "blockOwnerDeletion": False} for reference in obj["metadata"]["ownerReferences"]
            ]
            self._update(uid, with_metadata(obj, ownerReferences=references), now)

    def _delete_dependents_first(self, uid: str, obj: KubeObject, now: Instant) -> None:
        # Kubernetes: processDeletingDependentsItem.
        blocking = [dependent for dependent in self._graph.dependents(uid) if self._blocks(dependent, uid)]
        if not blocking:
            self._remove_finalizer(uid, obj, FOREGROUND, now)
        for dependent in self._graph.dependents(uid):
            self._queue.add(Key(dependent), now)

    def _blocks(self, dependent: str, owner: str) -> bool:
        obj = self._graph.get(dependent)
        references = () if obj is None else obj["metadata"].get("ownerReferences", ())
        return any(reference["uid"] == owner and reference.get("blockOwnerDeletion") for reference in references)

    def _orphan_dependents(self, uid: str, obj: KubeObject, now: Instant) -> None:
        """Remove the owner from its dependents, then the finalizer from the owner (Kubernetes: orphanDependents)."""
        for dependent in self._graph.dependents(uid):
            child = self._graph.get(dependent)
            if child is not None:
                references = [
                    reference for reference in child["metadata"]["ownerReferences"] if reference["uid"] != uid
                ]
                self._update(dependent, with_metadata(child, ownerReferences=references or None), now)
        self._remove_finalizer(uid, obj, ORPHAN, now)

    def _remove_finalizer(self, uid: str, obj: KubeObject, finalizer: str, now: Instant) -> None:
        self._update(uid, without_finalizer(obj, finalizer), now)

    def _update(self, uid: str, obj: KubeObject, now: Instant) -> None:
        location = self._graph.location_of(uid)
        if location is not None:
            self._client.update(location.storage, obj, now)


def _has_finalizer(obj: KubeObject, finalizer: str) -> bool:
    return finalizer in obj["metadata"].get("finalizers", ())
