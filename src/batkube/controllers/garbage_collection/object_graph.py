"""Graph of all objects by owner and namespace, for the garbage collector and the namespace controller.

Owners are identified by uid only. A reference to an owner in another namespace is invalid.
Kubernetes: pkg/controller/garbagecollector/graph_builder.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from batkube.cluster.object_meta import namespace_of
from batkube.cluster.store import DELETED, Batch, Key, KubeObject, Store
from batkube.kernel.instants import Instant


class ObjectLocation(NamedTuple):
    """The location of an object in the store."""

    storage: str
    key: Key


#: Called after a change: the uid, and the object before (None if new) and after (None if deleted).
GraphHandler = Callable[[str, KubeObject | None, KubeObject | None, Instant], None]


class ObjectGraph:
    """All objects of the store by uid, owner and namespace."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._locations: dict[str, ObjectLocation] = {}
        #: Uids of dependents by the uid of an owner, which need not exist. Dicts are used as ordered sets.
        self._dependents: dict[str, dict[str, None]] = {}
        self._by_namespace: dict[str, dict[ObjectLocation, None]] = {}
        self._handlers: list[GraphHandler] = []
        store.subscribe_all(self._on_objects_changed)

    def subscribe(self, handler: GraphHandler) -> None:
        """Call `handler` after every change."""
        self._handlers.append(handler)

    def location_of(self, uid: str) -> ObjectLocation | None:
        """Return the location of the object with this uid, or None."""
        return self._locations.get(uid)

    def get(self, uid: str) -> KubeObject | None:
        """Return the existing object with this uid, or None."""
        location = self._locations.get(uid)
        return None if location is None else self._store.get(*location)

    def dependents(self, uid: str) -> list[str]:
        """Return the uids of the objects that reference `uid` as an owner."""
        return list(self._dependents.get(uid, ()))

    def owner_of(self, reference: KubeObject, dependent: KubeObject) -> KubeObject | None:
        """Return the existing owner that `reference` names, or None."""
        owner = self.get(reference["uid"])
        if owner is None:
            return None
        namespace = owner["metadata"].get("namespace")
        return owner if namespace in (None, dependent["metadata"].get("namespace")) else None

    def objects_in(self, namespace: str) -> list[ObjectLocation]:
        """Return the locations of the objects in a namespace."""
        return list(self._by_namespace.get(namespace, ()))

    def _on_objects_changed(self, batch: Batch, now: Instant) -> None:
        for change in batch.changes():
            location = ObjectLocation(batch.kind, change.key)
            before = change.previous
            after = None if batch.type is DELETED else change.object
            if before is not None:
                self._remove(location, before)
            if after is not None:
                self._add(location, after)
            uid = change.object["metadata"].get("uid", "")
            for handler in self._handlers:
                handler(uid, before, after, now)

    def _add(self, location: ObjectLocation, obj: KubeObject) -> None:
        metadata = obj["metadata"]
        uid = metadata.get("uid", "")
        self._locations[uid] = location
        for reference in metadata.get("ownerReferences", ()):
            self._dependents.setdefault(reference["uid"], {})[uid] = None
        namespace = namespace_of(location.key)
        if namespace:
            self._by_namespace.setdefault(namespace, {})[location] = None

    def _remove(self, location: ObjectLocation, obj: KubeObject) -> None:
        metadata = obj["metadata"]
        uid = metadata.get("uid", "")
        self._locations.pop(uid, None)
        for reference in metadata.get("ownerReferences", ()):
            siblings = self._dependents.get(reference["uid"], {})
            siblings.pop(uid, None)
            if not siblings:
                self._dependents.pop(reference["uid"], None)
        namespace = namespace_of(location.key)
        content = self._by_namespace.get(namespace, {})
        content.pop(location, None)
        if not content:
            self._by_namespace.pop(namespace, None)
