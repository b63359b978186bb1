"""Allocates host ports; a kubelet rejects a pod that requests a port in use.

Kubernetes: pkg/kubelet/lifecycle/predicate.go, which uses kube-scheduler's plugin NodePorts.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.pods.host_ports import PORTS_TAKEN, HostPort, conflict, host_ports_of
from batkube.cluster.store import Key, KubeObject

REASON = "NodePorts"
MESSAGE = f"Predicate {REASON} failed: {PORTS_TAKEN}"


class HostPortAllocator:
    """The host ports of pods, by node."""

    def __init__(self) -> None:
        #: Pods with host ports only.
        self._allocated: dict[str, dict[Key, list[HostPort]]] = {}
        #: The latest containers without host ports; many pods share their containers.
        self._without_ports: object = None

    def allocate(self, nodes: Sequence[str], keys: Sequence[Key], pod: KubeObject) -> bool:
        """Allocate the host ports of pods, all equal to `pod`, one on each node; return whether they were free."""
        containers = pod["spec"]["containers"]
        if containers is self._without_ports:
            return True
        ports = host_ports_of(pod)
        if not ports:
            if "initContainers" not in pod["spec"]:
                self._without_ports = containers
            return True
        for number, (node, key) in enumerate(zip(nodes, keys, strict=True)):
            allocated = self._allocated.setdefault(node, {})
            if any(conflict(ports, other_ports) for other, other_ports in allocated.items() if other != key):
                self.release(nodes[:number], keys, range(number))
                return False
            allocated[key] = ports
        return True

    def release(self, nodes: Sequence[str], keys: Sequence[Key], ranks: Sequence[int]) -> None:
        """Release the host ports of the pods with these ranks, one on each node."""
        if self._allocated:
            for node, rank in zip(nodes, ranks, strict=True):
                self._allocated.get(node, {}).pop(keys[rank], None)
