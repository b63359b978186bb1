"""Host ports: ports of the node that pods request; two pods of a node cannot have the same one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from batkube.cluster.store import KubeObject

PORTS_TAKEN = "node(s) didn't have free ports for the requested pod ports"
_ANY_ADDRESS = ("", "0.0.0.0")


class HostPort(NamedTuple):
    """A port of a node, at one of its addresses or at all of them ("")."""

    address: str
    protocol: str
    number: int


def host_ports_of(pod: KubeObject) -> list[HostPort]:
    """Return the host ports that a pod requests (Kubernetes: pkg/scheduler/util/utils.go, GetHostPorts)."""
    spec = pod["spec"]
    init_containers = spec.get("initContainers") or ()
    sidecars = [container for container in init_containers if container.get("restartPolicy") == "Always"]
    return [
        HostPort(port.get("hostIP", ""), port.get("protocol", "TCP"), port["hostPort"])
        for container in (*spec["containers"], *sidecars)
        for port in container.get("ports") or ()
        if port.get("hostPort", 0) > 0
    ]


def conflict(ports: Iterable[HostPort], others: Iterable[HostPort]) -> bool:
    """Return whether two pods request the same port at the same address; "all addresses" includes every address."""
    taken = list(others)
    return any(
        (port.protocol, port.number) == (other.protocol, other.number)
        and (port.address in _ANY_ADDRESS or other.address in _ANY_ADDRESS or port.address == other.address)
        for port in ports
        for other in taken
    )
