"""A client that writes to the store directly, for runs without an API server.

Without an attached program, defaults, admission and finalizers have no observable effect. So nodes and pods are stored
as they are given.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.object_meta import key_of, name_of, namespace_of, with_metadata
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import Instant, after, bounded_seconds, rfc3339

_DEFAULT_GRACE_S = 30
_PENDING: KubeObject = {"phase": "Pending"}


class StoreClient:
    """Implements `cluster.client.Client` on the store."""

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
        self, storage: str, template: KubeObject, keys: Sequence[Key], uids: Sequence[str], now: Instant
    ) -> None:
        """Add pods that share the parts of their template."""
        metadata = {**template["metadata"], "namespace": namespace_of(keys[0]), "creationTimestamp": rfc3339(now)}
        pods: list[KubeObject] = [
            {**template, "metadata": {**metadata, "name": name_of(key), "uid": uid}, "status": _PENDING}
            for key, uid in zip(keys, uids, strict=True)
        ]
        self._store.create(storage, keys, pods, now)

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
