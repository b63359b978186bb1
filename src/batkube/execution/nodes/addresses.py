"""IP addresses for simulated nodes and pods: always the lowest free one, so that runs are repeatable."""

from __future__ import annotations

import heapq
import ipaddress
from socket import inet_aton, inet_ntoa

from batkube.cluster.store import KubeObject


class AddressPool:
    """The addresses of one network."""

    def __init__(self, network: str) -> None:
        addresses = ipaddress.ip_network(network)
        self._first, self._count = int(addresses.network_address), addresses.num_addresses
        self._used = 0
        #: Released addresses, by their index in the network (a heap).
        self._free: list[int] = []

    def allocate(self) -> str:
        """Return a free address; if all are taken, start again with the first."""
        if self._free:
            return self._text_of(heapq.heappop(self._free))
        # The first address is the network's own, and the last one is for broadcast.
        self._used = self._used % (self._count - 2) + 1
        return self._text_of(self._used)

    def _text_of(self, index: int) -> str:
        """Return the address at an index of the network."""
        return inet_ntoa((self._first + index).to_bytes(4))

    def release(self, address: str) -> None:
        """Release `address` for reuse."""
        heapq.heappush(self._free, int.from_bytes(inet_aton(address)) - self._first)


def internal_ip_of(node: KubeObject | None) -> str:
    """Return the InternalIP of a node, or ""."""
    addresses = (node or {}).get("status", {}).get("addresses") or ()
    return next((address["address"] for address in addresses if address["type"] == "InternalIP"), "")
