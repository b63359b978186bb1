"""Mirrors Endpoints created by users to EndpointSlices, for clients that read only slices.

Kubernetes: pkg/controller/endpointslicemirroring/reconciler.go and utils.go.
"""

from __future__ import annotations

import contextlib
import ipaddress

from batkube.cluster.client import ApiError, Client
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.object_meta import annotations_of, labels_of, namespace_of
from batkube.cluster.store import Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.controller import Controller
from batkube.controllers.services.backends import SERVICE
from batkube.controllers.services.endpoint_slices import PortGroup, SliceWriter
from batkube.controllers.services.endpoints import ENDPOINTS, repack_subsets
from batkube.kernel.instants import Instant

_MANAGER = "endpointslicemirroring-controller.k8s.io"
_SKIP_LABEL = "endpointslice.kubernetes.io/skip-mirror"
_LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
_EXCLUDED_ANNOTATIONS = (
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
)
#: Maximum number of mirrored addresses per subset.
_MAX_ADDRESSES = 1000


class EndpointSliceMirroringController(Controller):
    """Mirrors the Endpoints of Services without a selector."""

    storage = ENDPOINTS

    def __init__(self, world: World, client: Client, events: EventRecorder) -> None:
        super().__init__(world, client, events)
        self._writer = SliceWriter(world.store, client, _MANAGER)
        world.store.subscribe(SERVICE, self._on_services_changed)

    def _on_services_changed(self, batch: Batch, now: Instant) -> None:
        for key in batch.keys:
            self.queue.add(key, now)

    def reconcile(self, key: Key, endpoints: KubeObject, now: Instant) -> None:
        """Mirror Endpoints, or delete their mirrored slices."""
        metadata, service = endpoints["metadata"], self.store.get(SERVICE, key)
        labels, annotations = labels_of(endpoints), annotations_of(endpoints)
        is_mirrored = labels.get(_SKIP_LABEL) != "true" and _LEADER_ANNOTATION not in annotations
        if service is None or service["spec"].get("selector") or not is_mirrored:
            self._writer.delete_all(namespace_of(key), metadata["name"], now)
            return
        mirrored_annotations = {name: text for name, text in annotations.items() if name not in _EXCLUDED_ANNOTATIONS}
        with contextlib.suppress(ApiError):
            self._writer.write(endpoints, labels, self._port_groups(endpoints, now), now, mirrored_annotations)

    def _port_groups(self, endpoints: KubeObject, now: Instant) -> list[PortGroup]:
        groups: dict[str, PortGroup] = {}
        for subset in repack_subsets(endpoints.get("subsets") or ()):
            ports = [{"name": "", "protocol": "TCP", **port} for port in subset.get("ports") or ()]
            addresses = [(address, True) for address in subset.get("addresses") or ()]
            addresses += [(address, False) for address in subset.get("notReadyAddresses") or ()]
            if len(addresses) > _MAX_ADDRESSES:
                message = (
                    f"A max of {_MAX_ADDRESSES} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                    f"{len(addresses) - _MAX_ADDRESSES} addresses were skipped"
                )
                self.record_event(endpoints, "Warning", "TooManyAddressesToMirror", message, now)
            for address, ready in addresses[:_MAX_ADDRESSES]:
                family = f"IPv{ipaddress.ip_address(address['ip']).version}"
                group = groups.setdefault(f"{family} {ports!r}", PortGroup(family, ports, []))
                group.endpoints.append(_endpoint(address, ready))
        return list(groups.values())


def _endpoint(address: KubeObject, ready: bool) -> KubeObject:
    endpoint = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
    return endpoint | {field: address[field] for field in ("hostname", "targetRef", "nodeName") if address.get(field)}
