"""IP addresses for simulated nodes and pods: always the lowest free one, so that runs are repeatable."""

from __future__ import annotations

import heapq
import ipaddress

from batkube.cluster.store import KubeObject


class AddressPool:
    """The addresses of one network."""

    def __init__(self, network: str) -> None:
        self._network = ipaddress.ip_network(network)
        self._used = 0
        #: Released addresses, by their index in the network (a heap).
        self._free: list[int] = []

    def allocate(self) -> str:
        """Return a free address; if all are taken, start again with the first."""
        if self._free:
            return str(self._network[heapq.heappop(self._free)])
        # The first address is the network's own, and the last one is for broadcast.
        self._used = self._used % (self._network.num_addresses - 2) + 1
        return str(self._network[self._used])

    def release(self, address: str) -> None:
        """Release `address` for reuse."""
        heapq.heappush(self._free, int(ipaddress.ip_address(address)) - int(self._network.network_address))


def internal_ip_of(node: KubeObject | None) -> str:
    """Return the InternalIP of a node, or ""."""
    addresses = (node or {}).get("status", {}).get("addresses") or ()
    return next((address["address"] for address in addresses if address["type"] == "InternalIP"), "")
