"""A mirror: the nodes and pods of a cluster somewhere else, kept in a store of our own.

Whoever listens to the store hears of the cluster as those hear who live on a world: what decides in a simulation
decides here, unchanged. After a lost watch a collection is listed again, and what has changed meanwhile, came or went,
is told as changes; an object that was made anew under an old name is one that went and one that came.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from batkube.cluster.object_meta import key_of
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import Instant


class CollectionUpdate(msgspec.Struct, frozen=True):
    """An update of a collection: a full list, or one changed object."""

    kind: str
    objects: list[KubeObject]
    is_list: bool = False
    is_deletion: bool = False


class ClusterMirror:
    """Applies updates to a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def apply(self, news: CollectionUpdate, now: Instant) -> None:
        """Bring the store up to date with a piece of news."""
        if news.is_list:
            self._replace_all(news.kind, {key_of(obj): obj for obj in news.objects}, now)
        elif news.is_deletion:
            self._delete(news.kind, [key_of(obj) for obj in news.objects], now)
        else:
            for obj in news.objects:
                self._set(news.kind, key_of(obj), obj, now)

    def _replace_all(self, kind: str, objects: dict[Key, KubeObject], now: Instant) -> None:
        self._delete(kind, [key for key in self._store.all(kind) if key not in objects], now)
        for key, obj in objects.items():
            self._set(kind, key, obj, now)

    def _set(self, kind: str, key: Key, obj: KubeObject, now: Instant) -> None:
        known = self._store.get(kind, key)
        if known is not None and _uid(known) != _uid(obj):
            self._store.delete(kind, [key], now)
            known = None
        if known is None:
            self._store.create(kind, [key], [obj], now)
        elif known != obj:
            self._store.replace(kind, [key], [obj], now)

    def _delete(self, kind: str, keys: Iterable[Key], now: Instant) -> None:
        for key in keys:
            if self._store.get(kind, key) is not None:
                self._store.delete(kind, [key], now)


def _uid(obj: KubeObject) -> object:
    return obj["metadata"].get("uid")
