"""The pods behind a Service, and what all controllers of endpoints do: look at a Service when one of its pods changed.

Kubernetes: k8s.io/endpointslice/util/controller_utils.go.
"""

from __future__ import annotations

from typing import Any

from batkube.cluster.client import Client
from batkube.cluster.object_meta import is_being_deleted, labels_of, namespace_of
from batkube.cluster.pods.accessors import is_finished, is_ready, node_of_pod
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.controller import Controller
from batkube.controllers.framework.pod_control import POD
from batkube.kernel.instants import Instant

SERVICE = "services"
HEADLESS_LABEL = "service.kubernetes.io/headless"


class ServiceEndpointsController(Controller):
    """Looks after something that every Service with a selector has."""

    storage = SERVICE

    def __init__(self, world: World, client: Client) -> None:
        super().__init__(world, client)
        world.store.subscribe(POD, self._on_pods_changed)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        for change in batch.changes():
            if (
                change.previous is not None
                and batch.type is not DELETED
                and _endpoint_fields(change.previous) == _endpoint_fields(change.object)
            ):
                continue
            pods = [pod for pod in (change.previous, change.object) if pod is not None]
            for key, service in self.store.in_namespace(SERVICE, namespace_of(change.key)):
                if any(selects(service, pod) for pod in pods):
                    self.queue.add(key, now)

    def backends(self, key: Key, service: KubeObject, *, with_leaving: bool) -> list[KubeObject]:
        """Return the pods of a Service that have an address and have not ended."""
        return [
            pod
            for _, pod in self.store.in_namespace(POD, namespace_of(key))
            if selects(service, pod)
            and not is_finished(pod)
            and pod.get("status", {}).get("podIP")
            and (with_leaving or not is_being_deleted(pod))
        ]


def has_backends(service: KubeObject) -> bool:
    """Return whether somebody looks for the pods of a Service; of others, users say what is behind them."""
    return service["spec"].get("type") != "ExternalName" and bool(service["spec"].get("selector"))


def selects(service: KubeObject, pod: KubeObject) -> bool:
    """Return whether a pod is one of a Service's."""
    selector = service["spec"].get("selector")
    return bool(selector) and selector.items() <= labels_of(pod).items()


def is_headless(service: KubeObject) -> bool:
    """Return whether a Service has no address of its own."""
    return service["spec"].get("clusterIP", "") in ("", "None")


def host_name(service: KubeObject, pod: KubeObject) -> str:
    """Return the name under which a pod is known within the Service, if it has one there."""
    spec = pod["spec"]
    name: str = spec.get("hostname", "") if spec.get("subdomain") == service["metadata"]["name"] else ""
    return name


def reference_to_pod(pod: KubeObject) -> KubeObject:
    """Return how an endpoint names its pod."""
    metadata = pod["metadata"]
    return {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}


def ports_of(service: KubeObject, pod: KubeObject) -> list[KubeObject]:
    """Return the ports at which a pod serves, by number; a port's name that no container of it has is left out."""
    ports = []
    for port in service["spec"].get("ports") or ():
        number = _find_port(port, pod)
        if number is not None:
            fields = {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")}
            if "appProtocol" in port:
                fields["appProtocol"] = port["appProtocol"]
            ports.append(fields)
    return ports


def _find_port(port: KubeObject, pod: KubeObject) -> int | None:
    """Return the port's number in a pod (Kubernetes: endpointslice.FindPort)."""
    target = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    sidecars = [one for one in pod["spec"].get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in [*pod["spec"]["containers"], *sidecars]:
        for one in container.get("ports") or ():
            if one.get("name") == target and one.get("protocol", "TCP") == port.get("protocol", "TCP"):
                number: int = one["containerPort"]
                return number
    return None


def _endpoint_fields(pod: KubeObject) -> tuple[Any, ...]:
    """Return what of a pod its endpoints depend on."""
    metadata, status = pod["metadata"], pod.get("status", {})
    return (
        metadata.get("labels"),
        is_being_deleted(pod),
        node_of_pod(pod),
        status.get("podIP"),
        is_finished(pod),
        is_ready(pod),
    )
