"""A client of a remote cluster with the interface that components use (`cluster.client.Client`)."""

from __future__ import annotations

from batkube.cluster.client import ApiError
from batkube.cluster.event_recorder import EVENT
from batkube.cluster.mapping import POD
from batkube.cluster.object_meta import key_of, name_of, namespace_of
from batkube.cluster.store import Key, KubeObject
from batkube.emulation.client.connection import ApiStatusError, ClusterConnection, ClusterUnreachable
from batkube.kernel.instants import Instant


class RemoteClient:
    """Writes to a cluster over HTTP: pods, their sub-resources, and events."""

    def __init__(self, access: ClusterConnection) -> None:
        self._cluster = access

    def create(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Create an event, or post an object to a sub-resource of the pod it names."""
        path = _collection(storage, obj["metadata"].get("namespace", "default"))
        if subresource:
            path = f"{path}/{obj['metadata']['name']}/{subresource}"
        return self._send("POST", path, obj)

    def update(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Update an object or its status, unless it has changed since it was read (resourceVersion)."""
        key = key_of(obj)
        path = f"{_collection(storage, namespace_of(key))}/{name_of(key)}"
        return self._send("PUT", f"{path}/{subresource}" if subresource else path, obj)

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
        """Delete a pod, within its grace period unless another is given."""
        path = f"{_collection(storage, namespace_of(key))}/{name_of(key)}"
        query = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        try:
            self._cluster.delete(path, **query)
        except ApiStatusError as refusal:
            raise ApiError(refusal.code, refusal.reason, str(refusal)) from refusal
        except ClusterUnreachable as error:
            raise ApiError(503, "ServiceUnavailable", str(error)) from error

    def _send(self, method: str, path: str, obj: KubeObject) -> KubeObject:
        try:
            return self._cluster.create(path, obj) if method == "POST" else self._cluster.replace(path, obj)
        except ApiStatusError as refusal:
            raise ApiError(refusal.code, refusal.reason, str(refusal)) from refusal
        except ClusterUnreachable as error:
            raise ApiError(503, "ServiceUnavailable", str(error)) from error


def _collection(storage: str, namespace: str) -> str:
    assert storage in (POD, EVENT), f"{storage} are not written here"
    return f"/api/v1/namespaces/{namespace}/{storage}"
