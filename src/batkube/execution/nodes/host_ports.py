"""The ports of nodes that pods have taken for themselves; a kubelet refuses a pod that wants one of them.

Kubernetes: pkg/kubelet/lifecycle/predicate.go, with the scheduler's plugin NodePorts.
"""

from __future__ import annotations

from batkube.cluster.pods.host_ports import PORTS_TAKEN, HostPort, conflict, host_ports_of
from batkube.cluster.store import Key, KubeObject

REASON = "NodePorts"
MESSAGE = f"Predicate {REASON} failed: {PORTS_TAKEN}"


class HostPortAllocator:
    """Who has which ports, by node."""

    def __init__(self) -> None:
        #: Only pods with such ports.
        self._allocated: dict[str, dict[Key, list[HostPort]]] = {}

    def allocate(self, node: str, key: Key, pod: KubeObject) -> bool:
        """Take a pod's ports; return whether they were free. A pod keeps those that it has."""
        ports = host_ports_of(pod)
        if not ports:
            return True
        taken = self._allocated.setdefault(node, {})
        if any(conflict(ports, others) for other, others in taken.items() if other != key):
            return False
        taken[key] = ports
        return True

    def release(self, node: str, key: Key) -> None:
        """Let others have the ports of a pod."""
        if node in self._allocated:
            self._allocated[node].pop(key, None)
