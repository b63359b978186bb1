"""Endpoints that users keep by hand are told as slices too, for those who read only slices.

Kubernetes: pkg/controller/endpointslicemirroring.
"""

from __future__ import annotations

import contextlib
import ipaddress

from batkube.cluster.client import Client, Refused
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.references import annotations_of, labels_of, namespace_of
from batkube.cluster.store import Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.controller import Controller
from batkube.controllers.endpoint_slices import PortGroup, SliceWriter
from batkube.controllers.endpoints import ENDPOINTS, packed
from batkube.controllers.service_backends import SERVICE
from batkube.kernel.instants import Instant

_MANAGER = "endpointslicemirroring-controller.k8s.io"
_SKIPPED = "endpointslice.kubernetes.io/skip-mirror"
_LEADER = "control-plane.alpha.kubernetes.io/leader"
_LEFT_OUT = ("endpoints.kubernetes.io/last-change-trigger-time", "kubectl.kubernetes.io/last-applied-configuration")
#: The most addresses of a subset that are mirrored.
_MOST = 1000


class EndpointMirroring(Controller):
    """Keeps slices of the Endpoints whose Service has no selector."""

    storage = ENDPOINTS

    def __init__(self, world: World, client: Client, events: EventRecorder) -> None:
        super().__init__(world, client, events)
        self._writer = SliceWriter(world.store, client, _MANAGER)
        world.store.listen(SERVICE, self._hear_services)

    def _hear_services(self, batch: Batch, now: Instant) -> None:
        for key in batch.keys:
            self.queue.add(key, now)

    def reconcile(self, key: Key, endpoints: KubeObject, now: Instant) -> None:
        """Mirror Endpoints, or remove what was mirrored of them."""
        metadata, service = endpoints["metadata"], self.store.get(SERVICE, key)
        labels, annotations = labels_of(endpoints), annotations_of(endpoints)
        is_mirrored = labels.get(_SKIPPED) != "true" and _LEADER not in annotations
        if service is None or service["spec"].get("selector") or not is_mirrored:
            self._writer.delete_all(namespace_of(key), metadata["name"], now)
            return
        kept = {name: text for name, text in annotations.items() if name not in _LEFT_OUT}
        with contextlib.suppress(Refused):
            self._writer.write(endpoints, labels, self._groups(endpoints, now), now, kept)

    def _groups(self, endpoints: KubeObject, now: Instant) -> list[PortGroup]:
        groups: dict[str, PortGroup] = {}
        for subset in packed(endpoints.get("subsets") or ()):
            ports = [{"name": "", "protocol": "TCP", **port} for port in subset.get("ports") or ()]
            told = [(one, True) for one in subset.get("addresses") or ()]
            told += [(one, False) for one in subset.get("notReadyAddresses") or ()]
            if len(told) > _MOST:
                message = (
                    f"A max of {_MOST} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                    f"{len(told) - _MOST} addresses were skipped"
                )
                self.tell(endpoints, "Warning", "TooManyAddressesToMirror", message, now)
            for address, ready in told[:_MOST]:
                family = f"IPv{ipaddress.ip_address(address['ip']).version}"
                group = groups.setdefault(f"{family} {ports!r}", PortGroup(family, ports, []))
                group.endpoints.append(_endpoint(address, ready))
        return list(groups.values())


def _endpoint(address: KubeObject, ready: bool) -> KubeObject:
    endpoint = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
    return endpoint | {field: address[field] for field in ("hostname", "targetRef", "nodeName") if address.get(field)}
