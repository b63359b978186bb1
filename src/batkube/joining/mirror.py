"""Mirror the nodes and pods of a remote cluster in a local store.

Subscribers of the store are notified as in a simulation, so schedulers work unchanged. When a collection is listed
again after a failed watch, the differences are applied as changes. An object that was recreated under its old name is
first deleted, then created.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from batkube.cluster.mapping import NODE, POD
from batkube.cluster.object_meta import key_of
from batkube.cluster.store import Key, KubeObject, Store
from batkube.emulation.client.reflector import CollectionUpdate
from batkube.kernel.instants import Instant

_KINDS = {NODE: "Node", POD: "Pod"}
_decode = msgspec.json.decode


class ClusterMirror:
    """Applies updates to a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def apply(self, storage: str, update: CollectionUpdate, now: Instant) -> None:
        """Apply an update of a collection to the store."""
        # The items of a list have no kind and apiVersion.
        type_meta = {"apiVersion": "v1", "kind": _KINDS[storage]} if update.is_list else {}
        objects: list[KubeObject] = [{**type_meta, **_decode(content)} for content in update.objects]
        if update.is_list:
            self._replace_all(storage, {key_of(obj): obj for obj in objects}, now)
        elif update.is_deletion:
            self._delete(storage, [key_of(obj) for obj in objects], now)
        else:
            for obj in objects:
                self._set(storage, key_of(obj), obj, now)

    def _replace_all(self, storage: str, objects: dict[Key, KubeObject], now: Instant) -> None:
        self._delete(storage, [key for key in self._store.all(storage) if key not in objects], now)
        for key, obj in objects.items():
            self._set(storage, key, obj, now)

    def _set(self, storage: str, key: Key, obj: KubeObject, now: Instant) -> None:
        current = self._store.get(storage, key)
        if current is not None and _uid(current) != _uid(obj):
            self._store.delete(storage, [key], now)
            current = None
        if current is None:
            self._store.create(storage, [key], [obj], now)
        elif current != obj:
            self._store.replace(storage, [key], [obj], now)

    def _delete(self, storage: str, keys: Iterable[Key], now: Instant) -> None:
        for key in keys:
            if self._store.get(storage, key) is not None:
                self._store.delete(storage, [key], now)


def _uid(obj: KubeObject) -> object:
    return obj["metadata"].get("uid")
