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
    """Writes pods, their subresources and Events over HTTP."""

    def __init__(self, cluster: ClusterConnection) -> None:
        self._cluster = cluster

    def create(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Create an Event, or post an object to a subresource of the pod that it names."""
        path = _collection(storage, obj["metadata"].get("namespace", "default"))
        if subresource:
            path = f"{path}/{obj['metadata']['name']}/{subresource}"
        return self._send("POST", path, obj)

    def update(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Update an object or a subresource; the server rejects an outdated resourceVersion (409)."""
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
        """Delete a pod; its own grace period applies if `grace_s` is None."""
        path = f"{_collection(storage, namespace_of(key))}/{name_of(key)}"
        query = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        try:
            self._cluster.delete(path, **query)
        except ApiStatusError as error:
            raise ApiError(error.code, error.reason, str(error)) from error
        except ClusterUnreachable as error:
            raise ApiError(503, "ServiceUnavailable", str(error)) from error

    def _send(self, method: str, path: str, obj: KubeObject) -> KubeObject:
        try:
            return self._cluster.create(path, obj) if method == "POST" else self._cluster.replace(path, obj)
        except ApiStatusError as error:
            raise ApiError(error.code, error.reason, str(error)) from error
        except ClusterUnreachable as error:
            raise ApiError(503, "ServiceUnavailable", str(error)) from error


def _collection(storage: str, namespace: str) -> str:
    assert storage in (POD, EVENT), f"{storage} cannot be written to a remote cluster"
    return f"/api/v1/namespaces/{namespace}/{storage}"
