"""Who owns whom, and what a namespace holds, over all kinds: what garbage collection and namespaces look things up in.

Owners are found by uid alone, as references name them; a reference across namespaces refers to nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from batkube.cluster.object_meta import namespace_of
from batkube.cluster.store import DELETED, Batch, Key, KubeObject, Store
from batkube.kernel.instants import Instant


class ObjectLocation(NamedTuple):
    """Where an object is in the store."""

    storage: str
    key: Key


#: Told of a change: the uid, the object before (None when it is new) and after (None when it is gone).
GraphHandler = Callable[[str, KubeObject | None, KubeObject | None, Instant], None]


class ObjectGraph:
    """Every object of the store by uid, by owner and by namespace."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._locations: dict[str, ObjectLocation] = {}
        #: Uids by the uid of an owner, which need not exist. Dicts for their order.
        self._dependents: dict[str, dict[str, None]] = {}
        self._by_namespace: dict[str, dict[ObjectLocation, None]] = {}
        self._listeners: list[GraphHandler] = []
        store.subscribe_all(self._on_objects_changed)

    def subscribe(self, listener: GraphHandler) -> None:
        """Call `listener` after every change."""
        self._listeners.append(listener)

    def location_of(self, uid: str) -> ObjectLocation | None:
        """Return where the object with this uid is, or None."""
        return self._locations.get(uid)

    def get(self, uid: str) -> KubeObject | None:
        """Return the live object with this uid, or None."""
        place = self._locations.get(uid)
        return None if place is None else self._store.get(*place)

    def dependents(self, uid: str) -> list[str]:
        """Return the uids of the objects that name `uid` as an owner."""
        return list(self._dependents.get(uid, ()))

    def owner_of(self, reference: KubeObject, dependent: KubeObject) -> KubeObject | None:
        """Return the live owner that `reference` of `dependent` means, or None."""
        owner = self.get(reference["uid"])
        if owner is None:
            return None
        namespace = owner["metadata"].get("namespace")
        return owner if namespace in (None, dependent["metadata"].get("namespace")) else None

    def objects_in(self, namespace: str) -> list[ObjectLocation]:
        """Return where the objects of a namespace are."""
        return list(self._by_namespace.get(namespace, ()))

    def _on_objects_changed(self, batch: Batch, now: Instant) -> None:
        for change in batch.changes():
            place = ObjectLocation(batch.kind, change.key)
            before = change.previous
            after = None if batch.type is DELETED else change.object
            if before is not None:
                self._remove(place, before)
            if after is not None:
                self._add(place, after)
            uid = change.object["metadata"].get("uid", "")
            for listener in self._listeners:
                listener(uid, before, after, now)

    def _add(self, place: ObjectLocation, obj: KubeObject) -> None:
        metadata = obj["metadata"]
        uid = metadata.get("uid", "")
        self._locations[uid] = place
        for reference in metadata.get("ownerReferences", ()):
            self._dependents.setdefault(reference["uid"], {})[uid] = None
        namespace = namespace_of(place.key)
        if namespace:
            self._by_namespace.setdefault(namespace, {})[place] = None

    def _remove(self, place: ObjectLocation, obj: KubeObject) -> None:
        metadata = obj["metadata"]
        uid = metadata.get("uid", "")
        self._locations.pop(uid, None)
        for reference in metadata.get("ownerReferences", ()):
            siblings = self._dependents.get(reference["uid"], {})
            siblings.pop(uid, None)
            if not siblings:
                self._dependents.pop(reference["uid"], None)
        namespace = namespace_of(place.key)
        content = self._by_namespace.get(namespace, {})
        content.pop(place, None)
        if not content:
            self._by_namespace.pop(namespace, None)
