"""Endpoints: the addresses behind each Service, in one object, as they were before there were slices.

Kubernetes: pkg/controller/endpoint, with the packing of api/v1/endpoints (RepackSubsets). What is left out is the
annotation with the instant of the last change, by which real clusters measure how slow their network is.
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
#: No more addresses than this are told of one Service.
_MAX_ADDRESSES = 1000
#: Where the addresses of a subset stand, those that are ready first.
_ADDRESS_FIELDS = ("addresses", "notReadyAddresses")
_MANAGER = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}


class EndpointsController(ServiceEndpointsController):
    """Keeps the Endpoints of every Service with a selector."""

    def on_objects_changed(self, batch: Batch, now: Instant) -> None:
        """Queue what has changed, and what is gone."""
        for key in batch.keys:
            self.queue.add(key, now)

    def reconcile_deleted(self, key: Key, now: Instant) -> None:
        """Remove the Endpoints of a Service that was deleted."""
        if self.store.get(ENDPOINTS, key) is not None:
            with contextlib.suppress(ApiError):
                self.client.delete(ENDPOINTS, key, now)

    def reconcile(self, key: Key, service: KubeObject, now: Instant) -> None:
        """Tell the addresses of the Service's pods, those that are ready apart from those that are not."""
        if not has_backends(service):
            return
        publishes_all = bool(service["spec"].get("publishNotReadyAddresses"))
        subsets = []
        for pod in self.backends(key, service, with_leaving=publishes_all):
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
        present = self.store.get(ENDPOINTS, key)
        if present is None:
            owned = service["metadata"]
            metadata: KubeObject = {"name": owned["name"], "namespace": owned["namespace"]}
        else:
            metadata = present["metadata"]
        annotations = dict(metadata.get("annotations") or {})
        annotations.pop(_OVER_CAPACITY, None)
        if _truncate(subsets):
            annotations[_OVER_CAPACITY] = "truncated"
        metadata = {**metadata, "labels": labels}
        if annotations or "annotations" in metadata:
            metadata["annotations"] = annotations
        wanted: KubeObject = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata}
        if subsets:
            wanted["subsets"] = subsets
        if present is None:
            with contextlib.suppress(ApiError):  # nothing can be made in a namespace that goes
                self.client.create(ENDPOINTS, wanted, now)
        elif wanted != present:
            self.client.update(ENDPOINTS, wanted, now)


def repack_subsets(subsets: Iterable[KubeObject]) -> list[KubeObject]:
    """Return the same addresses and ports in as few subsets as can be: ports with the same addresses go together.

    An address that one subset calls ready and another not, for the same port, is not ready.
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
        places = [addresses[name] for name in sorted(addresses)]
        groups.setdefault(repr(places), ([], places))[0].extend(ports)
    return [_subset(ports, places) for ports, places in groups.values() if places]


def _subset(ports: list[KubeObject], places: list[tuple[str, KubeObject]]) -> KubeObject:
    subset: KubeObject = {}
    for field in _ADDRESS_FIELDS:
        if those := [address for place, address in places if place == field]:
            subset[field] = those
    return {**subset, "ports": ports} if ports else subset


def _truncate(subsets: list[KubeObject]) -> bool:
    """Keep no more addresses than may be told, those that are ready first; return whether some were left out."""
    has_too_many = sum(len(subset.get(field, ())) for subset in subsets for field in _ADDRESS_FIELDS) > _MAX_ADDRESSES
    room = _MAX_ADDRESSES
    for field in _ADDRESS_FIELDS if has_too_many else ():
        for subset in subsets:
            kept = subset.get(field, [])[:room]
            room -= len(kept)
            subset.pop(field, None)
            if kept:
                subset[field] = kept
    return has_too_many
