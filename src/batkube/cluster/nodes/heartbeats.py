"""Signs of life: when each kubelet renewed its lease, without a renewal being simulated.

A kubelet renews its lease every ten seconds (Kubernetes: pkg/kubelet, nodeLeaseRenewIntervalFraction of 40 s), which in
a month of a thousand nodes is a quarter of a billion writes that nobody reads. So a renewal is a matter of arithmetic:
from a node's registration on there is one every ten seconds, until the node falls silent. Who has to see them as
objects, such as a kube-controller-manager, has them written (`execution.leases`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from batkube.cluster.store import ADDED, DELETED, Batch, Store
from batkube.kernel.instants import Duration, Instant, seconds

RENEW_INTERVAL: Duration = seconds(10)

NodeListener = Callable[[str, Instant], None]
"""Told of a node by its name."""


class Heartbeats:
    """Knows which nodes are silent, and since when the others are heard of."""

    def __init__(self, store: Store) -> None:
        #: Since when each node renews its lease.
        self._since: dict[str, Instant] = {}
        self._silent: dict[str, Instant] = {}
        self._on_silence: list[NodeListener] = []
        self._on_return: list[NodeListener] = []
        store.subscribe("nodes", self._on_nodes_changed)

    @property
    def silent(self) -> Mapping[str, Instant]:
        """The nodes that are in the store and not heard of, each with the instant it fell silent."""
        return self._silent

    def subscribe(self, on_silence: NodeListener | None = None, on_return: NodeListener | None = None) -> None:
        """Call these when a node falls silent, and when one that did is heard of again; in the order they came."""
        if on_silence is not None:
            self._on_silence.append(on_silence)
        if on_return is not None:
            self._on_return.append(on_return)

    def last_renewal(self, node: str) -> Instant:
        """Return when a silent node last renewed its lease: not at the very instant at which it failed."""
        since, silent = self._since[node], self._silent[node]
        return Instant(since + max(0, (silent - 1 - since) // RENEW_INTERVAL) * RENEW_INTERVAL)

    def stop(self, node: str, now: Instant) -> None:
        """A node fails: its kubelet says nothing any more, and its pods' processes are gone."""
        if node in self._since and node not in self._silent:
            self._silent[node] = now
            for listener in self._on_silence:
                listener(node, now)

    def resume(self, node: str, now: Instant) -> None:
        """A node that failed is back."""
        if self._silent.pop(node, None) is not None:
            self._since[node] = now
            for listener in self._on_return:
                listener(node, now)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is ADDED:
            self._since.update(dict.fromkeys(batch.keys, now))
        elif batch.type is DELETED:
            for name in batch.keys:
                self._since.pop(name, None)
                self._silent.pop(name, None)
