"""IP addresses for simulated nodes and pods: the lowest that is free, so that two runs give out the same ones."""

from __future__ import annotations

import heapq
import ipaddress

from batkube.cluster.store import KubeObject


class AddressPool:
    """The addresses of one network."""

    def __init__(self, network: str) -> None:
        self._network = ipaddress.ip_network(network)
        self._used = 0
        #: Addresses given back, lowest first, by their place in the network.
        self._free: list[int] = []

    def allocate(self) -> str:
        """Return an address that nobody has; when all are taken, the first again."""
        if self._free:
            return str(self._network[heapq.heappop(self._free)])
        # The first address of a network is its own name, and the last one is for broadcast.
        self._used = self._used % (self._network.num_addresses - 2) + 1
        return str(self._network[self._used])

    def release(self, address: str) -> None:
        """Let somebody else have `address`."""
        heapq.heappush(self._free, int(ipaddress.ip_address(address)) - int(self._network.network_address))


def internal_ip_of(node: KubeObject | None) -> str:
    """Return the address that a node has within the cluster, "" if there is none."""
    addresses = (node or {}).get("status", {}).get("addresses") or ()
    return next((one["address"] for one in addresses if one["type"] == "InternalIP"), "")
