"""EndpointSlices: the addresses behind each Service, up to a hundred in an object.

Kubernetes: k8s.io/endpointslice (reconciler.go, utils.go). Hints by topology are not given.
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
    """What the endpoints of a slice have in common, and those endpoints."""

    address_type: str
    ports: list[KubeObject]
    endpoints: list[KubeObject]


class SliceWriter:
    """Brings the slices of one manager and one Service in line with what there is to tell."""

    def __init__(self, store: Store, client: Client, manager: str) -> None:
        self._store = store
        self._client = client
        self._manager = manager

    def managed_slices(self, namespace: str, service: str) -> list[KubeObject]:
        """Return the slices that this manager keeps for a Service."""
        wanted = {SERVICE_NAME: service, MANAGED_BY: self._manager}.items()
        return [
            one
            for _, one in self._store.in_namespace(SLICE, namespace)
            if wanted <= labels_of(one).items() and not is_being_deleted(one)
        ]

    def write(
        self,
        owner: KubeObject,
        labels: dict[str, str],
        groups: Sequence[PortGroup],
        now: Instant,
        annotations: dict[str, str] | None = None,
    ) -> None:
        """Write the slices of `owner`, a Service or its Endpoints; those that nobody needs any more are used first."""
        metadata = owner["metadata"]
        labels = {**labels, SERVICE_NAME: metadata["name"], MANAGED_BY: self._manager}
        slices = self.managed_slices(metadata["namespace"], metadata["name"])
        wanted: list[tuple[KubeObject | None, KubeObject]] = []
        for group in groups:
            mine = [one for one in slices if _belongs_to_group(one, group)]
            wanted += [(old, _slice_body(group, endpoints)) for old, endpoints in _distribute(mine, group.endpoints)]
        kept = {old["metadata"]["name"] for old, _ in wanted if old is not None}
        spare = [one for one in slices if one["metadata"]["name"] not in kept]
        for old, body in wanted:
            if old is None:
                old = next((one for one in spare if one["addressType"] == body["addressType"]), None)
                if old is not None:
                    spare.remove(old)
            self._create_or_update(owner, old, labels, annotations or {}, body, now)
        for one in spare:
            self._client.delete(SLICE, key_of(one), now)

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
        owned = owner["metadata"]
        made: dict[str, Any] = {
            "generateName": f"{owned['name']}-",
            "namespace": owned["namespace"],
            "labels": labels,
            "ownerReferences": [controller_reference(owner)],
        }
        if annotations:
            made["annotations"] = annotations
        self._client.create(
            SLICE, {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": made, **body}, now
        )

    def delete_all(self, namespace: str, service: str, now: Instant) -> None:
        """Remove every slice of a Service."""
        for one in self.managed_slices(namespace, service):
            self._client.delete(SLICE, key_of(one), now)


class EndpointSliceController(ServiceEndpointsController):
    """Keeps the slices of every Service with a selector."""

    def __init__(self, world: World, client: Client) -> None:
        super().__init__(world, client)
        self._writer = SliceWriter(world.store, client, _MANAGER)
        world.store.subscribe(SLICE, self._on_slices_changed)

    def _on_slices_changed(self, batch: Batch, now: Instant) -> None:
        """Look again at a Service of which somebody changed or removed a slice."""
        for key, one in zip(batch.keys, batch.objects, strict=True):
            labels = labels_of(one)
            if labels.get(MANAGED_BY) == _MANAGER and SERVICE_NAME in labels:
                self.queue.add(Key(f"{namespace_of(key)}/{labels[SERVICE_NAME]}"), now)

    def reconcile(self, key: Key, service: KubeObject, now: Instant) -> None:
        """Tell the addresses of the Service's pods; where there is none, an empty slice says so."""
        if not has_backends(service) or is_being_deleted(service):
            return
        metadata = service["metadata"]
        labels = {name: text for name, text in (metadata.get("labels") or {}).items() if name not in _RESERVED}
        if is_headless(service):
            labels[HEADLESS_LABEL] = ""
        try:
            self._writer.write(service, labels, self._port_groups(key, service), now)
        except ApiError as refusal:
            if refusal.code != 403:  # nothing can be made in a namespace that goes
                raise

    def _port_groups(self, key: Key, service: KubeObject) -> list[PortGroup]:
        groups: dict[str, PortGroup] = {}
        families = service["spec"].get("ipFamilies") or ["IPv4"]
        pods = self.backends(key, service, with_leaving=True) if "IPv4" in families else []
        for pod in pods:
            ports = ports_of(service, pod)
            group = groups.setdefault(repr(ports), PortGroup("IPv4", ports, []))
            group.endpoints.append(self._endpoint(service, pod))
        empty = [family for family in families if family != "IPv4" or not groups]
        return [*groups.values(), *(PortGroup(family, [], []) for family in empty)]

    def _endpoint(self, service: KubeObject, pod: KubeObject) -> KubeObject:
        serves, leaves = is_ready(pod), is_being_deleted(pod)
        is_published = bool(service["spec"].get("publishNotReadyAddresses"))
        node = self.store.get(NODE, Key(node_of_pod(pod)))
        zone = ((node or {"metadata": {}})["metadata"].get("labels") or {}).get(_ZONE)
        endpoint = {
            "addresses": [pod["status"]["podIP"]],
            "conditions": {
                "ready": is_published or (serves and not leaves),
                "serving": serves,
                "terminating": leaves,
            },
            "hostname": host_name(service, pod),
            "targetRef": reference_to_pod(pod),
            "nodeName": node_of_pod(pod),
            "zone": zone,
        }
        return {field: value for field, value in endpoint.items() if value}


def _belongs_to_group(one: KubeObject, group: PortGroup) -> bool:
    return bool(one["addressType"] == group.address_type and (one.get("ports") or []) == group.ports)


def _slice_body(group: PortGroup, endpoints: list[KubeObject]) -> KubeObject:
    return {"addressType": group.address_type, "endpoints": endpoints, "ports": group.ports}


def _distribute(
    slices: Sequence[KubeObject], endpoints: Sequence[KubeObject]
) -> list[tuple[KubeObject | None, list[KubeObject]]]:
    """Return which endpoints go into which slice (None: a new one): they stay where they are, others fill the rest."""
    waiting = {_endpoint_id(one): one for one in endpoints}
    shares: list[tuple[KubeObject | None, list[KubeObject]]] = []
    for one in slices:
        stay = [waiting.pop(name) for old in one.get("endpoints") or () if (name := _endpoint_id(old)) in waiting]
        if stay:
            shares.append((one, stay))
    rest = list(waiting.values())
    for _, share in shares:
        share += [rest.pop(0) for _ in range(min(len(rest), _MAX_ENDPOINTS - len(share)))]
    shares += [(None, rest[start : start + _MAX_ENDPOINTS]) for start in range(0, len(rest), _MAX_ENDPOINTS)]
    return shares or [(slices[0] if slices else None, [])]


def _endpoint_id(endpoint: KubeObject) -> tuple[str, str]:
    return endpoint["addresses"][0], (endpoint.get("targetRef") or {}).get("uid", "")
