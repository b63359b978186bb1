"""A client that writes to the store directly, for runs with policies alone.

Without programs and objects, defaults, admission and finalizers have no observable effect. So nodes and pods are stored
as they are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from batkube.cluster import decisions
from batkube.cluster.decisions import Binding, Decision
from batkube.cluster.object_meta import key_of, namespace_of, with_metadata
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import Instant, after, bounded_seconds, rfc3339

_DEFAULT_GRACE_S = 30
_PENDING: KubeObject = {"phase": "Pending"}


class StoreClient:
    """Implements `cluster.client.BulkClient` on the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Add an object; an eviction deletes its pod."""
        if subresource == "eviction":
            self.delete(storage, key_of(obj), now)
        else:
            self._store.create(storage, [key_of(obj)], [obj], now)
        return obj

    def create_copies(
        self, storage: str, template: KubeObject, keys: Sequence[Key], uids: Iterable[str], now: Instant
    ) -> None:
        """Add pods that share one object: only their keys have their names, and nothing reads their uids."""
        metadata = template["metadata"] | {"namespace": namespace_of(keys[0]), "creationTimestamp": rfc3339(now)}
        pod = template | {"metadata": metadata, "status": _PENDING}
        self._store.create(storage, keys, [pod] * len(keys), now)

    def restore(self, storage: str, objects: Sequence[KubeObject], now: Instant) -> None:
        """Add objects that existed before the run began."""
        self._store.create(storage, list(map(key_of, objects)), objects, now)

    def update(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Replace the stored object by `obj`."""
        self._store.replace(storage, [key_of(obj)], [obj], now)
        return obj

    def delete(
        self,
        storage: str,
        key: Key,
        now: Instant,
        *,
        propagation: str | None = None,
        grace_s: int | None = None,
        uid: str | None = None,
    ) -> None:
        """Delete an object. A bound pod is marked as being deleted; its kubelet stops it within its grace period."""
        obj = self._store.get(storage, key)
        if obj is None:
            return
        if storage != "pods" or grace_s == 0 or "nodeName" not in obj["spec"]:
            self._store.delete(storage, [key], now)
            return
        grace = obj["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE_S) if grace_s is None else grace_s
        deadline = rfc3339(after(now, bounded_seconds(grace)))
        deleted_pod = with_metadata(obj, deletionTimestamp=deadline, deletionGracePeriodSeconds=grace)
        self._store.replace(storage, [key], [deleted_pod], now)

    def bind(self, binding: Binding, now: Instant) -> None:
        """Bind pods to nodes."""
        decisions.bind(self._store, binding, now, in_full=False)

    def update_all(self, storage: str, objects: Sequence[KubeObject], now: Instant) -> None:
        """Replace stored objects."""
        self._store.replace(storage, list(map(key_of, objects)), objects, now)

    def set_statuses(
        self,
        storage: str,
        keys: Sequence[Key],
        statuses: KubeObject | Sequence[KubeObject],
        now: Instant,
        decision: Decision | None = None,
    ) -> None:
        """Replace the status of objects."""
        self._store.set_statuses(storage, keys, statuses, now, decision)

    def delete_all(
        self, storage: str, keys: Sequence[Key], now: Instant, *, grace_s: int = 0, decision: Decision | None = None
    ) -> None:
        """Delete objects: at once, or bound pods within a grace period."""
        if grace_s:
            for key in keys:
                self.delete(storage, key, now, grace_s=grace_s)
        else:
            self._store.delete(storage, keys, now, decision)
