"""Pods behind a Service, and the base class of the endpoint controllers.

A Service is reconciled when one of its pods changes. Kubernetes: k8s.io/endpointslice/util/controller_utils.go.
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
    """Reconciles Services with a selector."""

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

    def backends(self, key: Key, service: KubeObject, *, with_terminating: bool) -> list[KubeObject]:
        """Return the unfinished pods of a Service that have an IP address."""
        return [
            pod
            for _, pod in self.store.in_namespace(POD, namespace_of(key))
            if selects(service, pod)
            and not is_finished(pod)
            and pod.get("status", {}).get("podIP")
            and (with_terminating or not is_being_deleted(pod))
        ]


def has_backends(service: KubeObject) -> bool:
    """Return whether endpoints are derived from a selector; for other Services users provide them."""
    return service["spec"].get("type") != "ExternalName" and bool(service["spec"].get("selector"))


def selects(service: KubeObject, pod: KubeObject) -> bool:
    """Return whether the Service selects the pod."""
    selector = service["spec"].get("selector")
    return bool(selector) and selector.items() <= labels_of(pod).items()


def is_headless(service: KubeObject) -> bool:
    """Return whether the Service has no cluster IP."""
    return service["spec"].get("clusterIP", "") in ("", "None")


def host_name(service: KubeObject, pod: KubeObject) -> str:
    """Return the host name of a pod within the Service's domain, if it has one (Kubernetes: ShouldSetHostname)."""
    spec = pod["spec"]
    name: str = spec.get("hostname", "") if spec.get("subdomain") == service["metadata"]["name"] else ""
    return name


def reference_to_pod(pod: KubeObject) -> KubeObject:
    """Return the target reference of an endpoint."""
    metadata = pod["metadata"]
    return {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}


def ports_of(service: KubeObject, pod: KubeObject) -> list[KubeObject]:
    """Return the ports of a pod with their numbers; a named port that no container has is skipped."""
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
    """Return the number of a port in a pod (Kubernetes: endpointslice.FindPort)."""
    target = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    sidecars = [
        container for container in pod["spec"].get("initContainers") or () if container.get("restartPolicy") == "Always"
    ]
    for container in [*pod["spec"]["containers"], *sidecars]:
        for container_port in container.get("ports") or ():
            if container_port.get("name") == target and container_port.get("protocol", "TCP") == port.get(
                "protocol", "TCP"
            ):
                number: int = container_port["containerPort"]
                return number
    return None


def _endpoint_fields(pod: KubeObject) -> tuple[Any, ...]:
    """Return the fields of a pod that its endpoints depend on (Kubernetes: podEndpointsChanged)."""
    metadata, status = pod["metadata"], pod.get("status", {})
    return (
        metadata.get("labels"),
        is_being_deleted(pod),
        node_of_pod(pod),
        status.get("podIP"),
        is_finished(pod),
        is_ready(pod),
    )
