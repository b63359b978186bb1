"""Endpoints: the addresses of each Service in one object, the predecessor of EndpointSlices.

Kubernetes: pkg/controller/endpoint/endpoints_controller.go, pkg/api/v1/endpoints/util.go. The annotation with the time
of the last change, which real clusters use to measure propagation delays, is not set.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from batkube.cluster.client import ApiError
from batkube.cluster.object_meta import labels_of
from batkube.cluster.pods.accessors import is_ready
from batkube.cluster.store import Batch, Key, KubeObject
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

ENDPOINTS = "endpoints"
_OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
#: Maximum number of addresses of a Service.
_MAX_ADDRESSES = 1000
#: The address fields of a subset, ready ones first.
_ADDRESS_FIELDS = ("addresses", "notReadyAddresses")
_MANAGER = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}


class EndpointsController(ServiceEndpointsController):
    """Maintains the Endpoints of Services with a selector."""

    def on_objects_changed(self, batch: Batch, now: Instant) -> None:
        """Queue changed and deleted Services."""
        for key in batch.keys:
            self.queue.add(key, now)

    def reconcile_deleted(self, key: Key, now: Instant) -> None:
        """Delete the Endpoints of a deleted Service."""
        if self.store.get(ENDPOINTS, key) is not None:
            with contextlib.suppress(ApiError):
                self.client.delete(ENDPOINTS, key, now)

    def reconcile(self, key: Key, service: KubeObject, now: Instant) -> None:
        """Write the addresses of the Service's pods, separated by readiness."""
        if not has_backends(service):
            return
        publishes_all = bool(service["spec"].get("publishNotReadyAddresses"))
        subsets = []
        for pod in self.backends(key, service, with_terminating=publishes_all):
            field = "addresses" if publishes_all or is_ready(pod) else "notReadyAddresses"
            address = {"ip": pod["status"]["podIP"], "nodeName": pod["spec"]["nodeName"]}
            if name := host_name(service, pod):
                address["hostname"] = name
            address["targetRef"] = reference_to_pod(pod)
            ports = [{field: value for field, value in port.items() if value != ""} for port in ports_of(service, pod)]
            if ports or (is_headless(service) and not service["spec"].get("ports")):
                subsets.append({field: [address], "ports": ports})
        self._write(key, service, repack_subsets(subsets), now)

    def _write(self, key: Key, service: KubeObject, subsets: list[KubeObject], now: Instant) -> None:
        labels = {**labels_of(service), **_MANAGER}
        labels.pop(HEADLESS_LABEL, None)
        if is_headless(service):
            labels[HEADLESS_LABEL] = ""
        existing = self.store.get(ENDPOINTS, key)
        if existing is None:
            service_metadata = service["metadata"]
            metadata: KubeObject = {"name": service_metadata["name"], "namespace": service_metadata["namespace"]}
        else:
            metadata = existing["metadata"]
        annotations = dict(metadata.get("annotations") or {})
        annotations.pop(_OVER_CAPACITY, None)
        if _truncate(subsets):
            annotations[_OVER_CAPACITY] = "truncated"
        metadata = {**metadata, "labels": labels}
        if annotations or "annotations" in metadata:
            metadata["annotations"] = annotations
        endpoints: KubeObject = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata}
        if subsets:
            endpoints["subsets"] = subsets
        if existing is None:
            with contextlib.suppress(ApiError):  # the namespace may be being deleted
                self.client.create(ENDPOINTS, endpoints, now)
        elif endpoints != existing:
            self.client.update(ENDPOINTS, endpoints, now)


def repack_subsets(subsets: Iterable[KubeObject]) -> list[KubeObject]:
    """Merge addresses and ports into as few subsets as possible: ports with equal addresses share a subset.

    An address that is ready in one subset and not ready in another, for the same port, counts as not ready.
    """
    by_port: dict[str, tuple[list[KubeObject], dict[tuple[str, str], tuple[str, KubeObject]]]] = {}
    for subset in subsets:
        for port in subset.get("ports") or (None,):
            ports = [] if port is None else [port]
            _, addresses = by_port.setdefault(repr(ports), (ports, {}))
            for field in _ADDRESS_FIELDS:
                for address in subset.get(field) or ():
                    addresses[address["ip"], (address.get("targetRef") or {}).get("uid", "")] = field, address
    groups: dict[str, tuple[list[KubeObject], list[tuple[str, KubeObject]]]] = {}
    for ports, addresses in by_port.values():
        addresses_of_port = [addresses[name] for name in sorted(addresses)]
        groups.setdefault(repr(addresses_of_port), ([], addresses_of_port))[0].extend(ports)
    return [_subset(ports, addresses_of_port) for ports, addresses_of_port in groups.values() if addresses_of_port]


def _subset(ports: list[KubeObject], addresses: list[tuple[str, KubeObject]]) -> KubeObject:
    subset: KubeObject = {}
    for field in _ADDRESS_FIELDS:
        if matching := [address for address_field, address in addresses if address_field == field]:
            subset[field] = matching
    return {**subset, "ports": ports} if ports else subset


def _truncate(subsets: list[KubeObject]) -> bool:
    """Drop addresses beyond the maximum, unready ones first; return whether any were dropped.

    Kubernetes: truncateEndpoints.
    """
    has_too_many = sum(len(subset.get(field, ())) for subset in subsets for field in _ADDRESS_FIELDS) > _MAX_ADDRESSES
    remaining_count = _MAX_ADDRESSES
    for field in _ADDRESS_FIELDS if has_too_many else ():
        for subset in subsets:
            remaining = subset.get(field, [])[:remaining_count]
            remaining_count -= len(remaining)
            subset.pop(field, None)
            if remaining:
                subset[field] = remaining
    return has_too_many
