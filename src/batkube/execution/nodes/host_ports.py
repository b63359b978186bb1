"""Allocates host ports; a kubelet rejects a pod that requests a port in use.

Kubernetes: pkg/kubelet/lifecycle/predicate.go, which uses kube-scheduler's plugin NodePorts.
"""

from __future__ import annotations

from batkube.cluster.pods.host_ports import PORTS_TAKEN, HostPort, conflict, host_ports_of
from batkube.cluster.store import Key, KubeObject

REASON = "NodePorts"
MESSAGE = f"Predicate {REASON} failed: {PORTS_TAKEN}"


class HostPortAllocator:
    """The host ports of pods, by node."""

    def __init__(self) -> None:
        #: Pods with host ports only.
        self._allocated: dict[str, dict[Key, list[HostPort]]] = {}

    def allocate(self, node: str, key: Key, pod: KubeObject) -> bool:
        """Allocate a pod's host ports; return whether they were free."""
        ports = host_ports_of(pod)
        if not ports:
            return True
        allocated = self._allocated.setdefault(node, {})
        if any(conflict(ports, other_ports) for other, other_ports in allocated.items() if other != key):
            return False
        allocated[key] = ports
        return True

    def release(self, node: str, key: Key) -> None:
        """Release the host ports of a pod."""
        if node in self._allocated:
            self._allocated[node].pop(key, None)
