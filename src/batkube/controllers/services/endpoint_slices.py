"""EndpointSlices: the endpoints of each Service, up to a hundred per object.

Kubernetes: k8s.io/endpointslice (reconciler.go, utils.go). Topology hints are not supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from batkube.cluster.client import ApiError, Client
from batkube.cluster.mapping import NODE
from batkube.cluster.object_meta import controller_reference, is_being_deleted, key_of, labels_of, namespace_of
from batkube.cluster.pods.accessors import is_ready, node_of_pod
from batkube.cluster.store import Batch, Key, KubeObject, Store
from batkube.cluster.world import World
from batkube.controllers.services.backends import (
    HEADLESS_LABEL,
    ServiceEndpointsController,
    has_backends,
    host_name,
    is_headless,
    ports_of,
    reference_to_pod,
)
from batkube.kernel.instants import Instant

SLICE = "endpointslices.discovery.k8s.io"
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_MANAGER = "endpointslice-controller.k8s.io"
_ZONE = "topology.kubernetes.io/zone"
_MAX_ENDPOINTS = 100
_RESERVED = (SERVICE_NAME, MANAGED_BY, HEADLESS_LABEL)


class PortGroup(NamedTuple):
    """Address type and ports of a slice, and its endpoints."""

    address_type: str
    ports: list[KubeObject]
    endpoints: list[KubeObject]


class SliceWriter:
    """Creates, updates and deletes the EndpointSlices of one manager."""

    def __init__(self, store: Store, client: Client, manager: str) -> None:
        self._store = store
        self._client = client
        self._manager = manager

    def managed_slices(self, namespace: str, service: str) -> list[KubeObject]:
        """Return the slices of a Service that this manager maintains."""
        required = {SERVICE_NAME: service, MANAGED_BY: self._manager}.items()
        return [
            slice_
            for _, slice_ in self._store.in_namespace(SLICE, namespace)
            if required <= labels_of(slice_).items() and not is_being_deleted(slice_)
        ]

    def write(
        self,
        owner: KubeObject,
        labels: dict[str, str],
        groups: Sequence[PortGroup],
        now: Instant,
        annotations: dict[str, str] | None = None,
    ) -> None:
        """Write the slices of `owner`, a Service or Endpoints; reuse surplus slices before creating new ones."""
        metadata = owner["metadata"]
        labels = {**labels, SERVICE_NAME: metadata["name"], MANAGED_BY: self._manager}
        slices = self.managed_slices(metadata["namespace"], metadata["name"])
        bodies: list[tuple[KubeObject | None, KubeObject]] = []
        for group in groups:
            group_slices = [slice_ for slice_ in slices if _belongs_to_group(slice_, group)]
            bodies += [
                (old, _slice_body(group, endpoints)) for old, endpoints in _distribute(group_slices, group.endpoints)
            ]
        used_names = {old["metadata"]["name"] for old, _ in bodies if old is not None}
        surplus = [slice_ for slice_ in slices if slice_["metadata"]["name"] not in used_names]
        for old, body in bodies:
            if old is None:
                old = next((slice_ for slice_ in surplus if slice_["addressType"] == body["addressType"]), None)
                if old is not None:
                    surplus.remove(old)
            self._create_or_update(owner, old, labels, annotations or {}, body, now)
        for slice_ in surplus:
            self._client.delete(SLICE, key_of(slice_), now)

    def _create_or_update(
        self,
        owner: KubeObject,
        old: KubeObject | None,
        labels: dict[str, str],
        annotations: dict[str, str],
        body: KubeObject,
        now: Instant,
    ) -> None:
        if old is not None:
            metadata = {**old["metadata"], "labels": labels}
            if annotations or "annotations" in metadata:
                metadata["annotations"] = annotations
            new = {"apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": metadata, **body}
            if new != old:
                self._client.update(SLICE, new, now)
            return
        owner_metadata = owner["metadata"]
        slice_metadata: dict[str, Any] = {
            "generateName": f"{owner_metadata['name']}-",
            "namespace": owner_metadata["namespace"],
            "labels": labels,
            "ownerReferences": [controller_reference(owner)],
        }
        if annotations:
            slice_metadata["annotations"] = annotations
        self._client.create(
            SLICE,
            {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": slice_metadata, **body},
            now,
        )

    def delete_all(self, namespace: str, service: str, now: Instant) -> None:
        """Delete every slice of a Service."""
        for slice_ in self.managed_slices(namespace, service):
            self._client.delete(SLICE, key_of(slice_), now)


class EndpointSliceController(ServiceEndpointsController):
    """Maintains the EndpointSlices of Services with a selector."""

    def __init__(self, world: World, client: Client) -> None:
        super().__init__(world, client)
        self._writer = SliceWriter(world.store, client, _MANAGER)
        world.store.subscribe(SLICE, self._on_slices_changed)

    def _on_slices_changed(self, batch: Batch, now: Instant) -> None:
        """Queue the Service of a changed or deleted slice."""
        for key, slice_ in zip(batch.keys, batch.objects, strict=True):
            labels = labels_of(slice_)
            if labels.get(MANAGED_BY) == _MANAGER and SERVICE_NAME in labels:
                self.queue.add(Key(f"{namespace_of(key)}/{labels[SERVICE_NAME]}"), now)

    def reconcile(self, key: Key, service: KubeObject, now: Instant) -> None:
        """Write the endpoints of the Service's pods; without any, write an empty slice."""
        if not has_backends(service) or is_being_deleted(service):
            return
        metadata = service["metadata"]
        labels = {name: text for name, text in (metadata.get("labels") or {}).items() if name not in _RESERVED}
        if is_headless(service):
            labels[HEADLESS_LABEL] = ""
        try:
            self._writer.write(service, labels, self._port_groups(key, service), now)
        except ApiError as error:
            if error.code != 403:  # the namespace is being deleted
                raise

    def _port_groups(self, key: Key, service: KubeObject) -> list[PortGroup]:
        groups: dict[str, PortGroup] = {}
        families = service["spec"].get("ipFamilies") or ["IPv4"]
        pods = self.backends(key, service, with_terminating=True) if "IPv4" in families else []
        for pod in pods:
            ports = ports_of(service, pod)
            group = groups.setdefault(repr(ports), PortGroup("IPv4", ports, []))
            group.endpoints.append(self._endpoint(service, pod))
        empty = [family for family in families if family != "IPv4" or not groups]
        return [*groups.values(), *(PortGroup(family, [], []) for family in empty)]

    def _endpoint(self, service: KubeObject, pod: KubeObject) -> KubeObject:
        # Kubernetes: podToEndpoint.
        is_serving, is_terminating = is_ready(pod), is_being_deleted(pod)
        is_published = bool(service["spec"].get("publishNotReadyAddresses"))
        node = self.store.get(NODE, Key(node_of_pod(pod)))
        zone = ((node or {"metadata": {}})["metadata"].get("labels") or {}).get(_ZONE)
        endpoint = {
            "addresses": [pod["status"]["podIP"]],
            "conditions": {
                "ready": is_published or (is_serving and not is_terminating),
                "serving": is_serving,
                "terminating": is_terminating,
            },
            "hostname": host_name(service, pod),
            "targetRef": reference_to_pod(pod),
            "nodeName": node_of_pod(pod),
            "zone": zone,
        }
        return {field: value for field, value in endpoint.items() if value}


def _belongs_to_group(slice_: KubeObject, group: PortGroup) -> bool:
    return bool(slice_["addressType"] == group.address_type and (slice_.get("ports") or []) == group.ports)


def _slice_body(group: PortGroup, endpoints: list[KubeObject]) -> KubeObject:
    return {"addressType": group.address_type, "endpoints": endpoints, "ports": group.ports}


def _distribute(
    slices: Sequence[KubeObject], endpoints: Sequence[KubeObject]
) -> list[tuple[KubeObject | None, list[KubeObject]]]:
    """Distribute endpoints over slices (None: a new one). Endpoints keep their slice; new ones fill free places.

    Kubernetes: reconcileByPortMapping.
    """
    unassigned = {_endpoint_id(endpoint): endpoint for endpoint in endpoints}
    shares: list[tuple[KubeObject | None, list[KubeObject]]] = []
    for slice_ in slices:
        remaining = [
            unassigned.pop(name) for old in slice_.get("endpoints") or () if (name := _endpoint_id(old)) in unassigned
        ]
        if remaining:
            shares.append((slice_, remaining))
    rest = list(unassigned.values())
    for _, share in shares:
        share += [rest.pop(0) for _ in range(min(len(rest), _MAX_ENDPOINTS - len(share)))]
    shares += [(None, rest[start : start + _MAX_ENDPOINTS]) for start in range(0, len(rest), _MAX_ENDPOINTS)]
    return shares or [(slices[0] if slices else None, [])]


def _endpoint_id(endpoint: KubeObject) -> tuple[str, str]:
    return endpoint["addresses"][0], (endpoint.get("targetRef") or {}).get("uid", "")
